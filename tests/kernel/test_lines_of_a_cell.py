"""Cost per line in a real kernel: what `prof.lines()` says of a `%%mtprofile` cell."""

import pytest
from conftest import Kernel

#: (place, source, phases with time) of every line, and nothing that changes from run to run.
LINES = """[
    (row.where.partition(' ')[0], row.line, row.source, [
        phase for phase in ('forward', 'backward', 'optimizer', 'other') if getattr(row, phase + '_ns')
    ])
    for row in sorted(prof.lines(), key=lambda row: row.line) if row.has_ops
]"""


def test_a_profiled_cell_knows_the_cost_of_its_lines_without_any_flag(kernel: Kernel) -> None:
    ran = kernel.run(
        "%%mtprofile -q -o prof\n"
        "w = torch.ones(4, requires_grad=True)\n"
        "opt = torch.optim.SGD([w], lr=0.1)\n"
        "def loss_of(w):\n"
        "    return w.exp().sum()\n"
        "for step in range(3):\n"
        "    loss = loss_of(w)\n"
        "    loss.backward()\n"
        "    opt.step()\n"
        "loss.item() > 0"
    )

    assert (ran.status, ran.result) == ("ok", "True")
    assert kernel.value(LINES) == [
        ("Cell", 2, "w = torch.ones(4, requires_grad=True)", ["other"]),
        ("Cell", 5, "return w.exp().sum()", ["forward", "backward"]),
        ("Cell", 7, "loss = loss_of(w)", []),
        ("Cell", 8, "loss.backward()", ["backward"]),
        ("Cell", 9, "opt.step()", ["optimizer"]),
        ("Cell", 10, "loss.item() > 0", ["other"]),
    ]
    assert kernel.value("[name for name in globals() if 'mark' in name] + [loss_of.__code__.co_names]") == [
        ("exp", "sum")
    ]
    assert kernel.value("[name for name in vars(__import__('builtins')) if 'mtprof' in name]") == []


SMALL = """\
import asyncio
def small(i):
    return i * 2 + 1
async def several(n):
    for i in range(n):
        small(i)
        await asyncio.sleep(0)
"""


@pytest.mark.parametrize(
    "code", ["for i in range(100_000):\n    total += small(i)", "await asyncio.gather(several(1_000), several(2_000))"]
)
def test_lines_and_functions_add_up_to_the_time_of_the_program(kernel: Kernel, code: str) -> None:
    kernel.run(SMALL)
    kernel.run(f"%%mtprofile -q -o prof\ntotal = 0\nx = torch.ones(3)\n{code}")

    program_ns = kernel.value("prof.summary().wall_ns - prof.trace.own_ns")
    assert kernel.value("sum(row.own_ns for row in prof.functions())") == program_ns
    assert 0 < kernel.value("sum(row.time_ns for row in prof.lines())") <= program_ns
    assert kernel.value("sum(one.profiler_ns for one in prof.trace.outside.values())") > 0


def test_a_cell_is_called_by_its_number_and_shown_as_it_was_typed(kernel: Kernel) -> None:
    kernel.run("%%mtprofile -q -o prof\nx = 1\n%time y = torch.ones(3)")

    assert kernel.value("[(row.line, row.source) for row in prof.lines() if row.has_ops]") == [
        (3, "%time y = torch.ones(3)")
    ]
    assert kernel.value("prof.lines()[0].where == prof.trace.label") is True
    assert kernel.value("list(prof.trace.sources.values())") == [
        "%%mtprofile -q -o prof\nx = 1\n%time y = torch.ones(3)"
    ]


def test_time_outside_ops_is_told_by_line(kernel: Kernel) -> None:
    kernel.run(
        "%%mtprofile -q -o prof\n"
        "import time\n"
        "def wait():\n"
        "    time.sleep(0.05)\n"
        "for step in range(2):\n"
        "    y = torch.ones(4).exp()\n"
        "    wait()\n"
    )

    assert kernel.value("[(row.line, row.has_ops) for row in sorted(prof.lines(), key=lambda row: row.line)]") == [
        *((line, False) for line in (2, 3, 4, 5)),
        (6, True),
        (7, False),
    ]
    rows = "{row.line: row for row in prof.lines()}"
    slept = f"{rows}[4].outside_ns + {rows}[4].outside_error_ns >= 10**8"
    assert kernel.value(f"[{slept}, {rows}[7].total_ns >= 10**8, {rows}[4].self_ns]") == [True, True, 0]
    outside = "sum(row.outside_ns for row in prof.lines())"
    in_ops, wall = "sum(row.self_ns for row in prof.lines())", "prof.trace.ended_ns - prof.trace.began_ns"
    assert kernel.value(f"10**8 <= {outside} <= {wall} - {in_ops}") is True


def test_a_cell_without_ops_tells_where_its_time_went(kernel: Kernel) -> None:
    ran = kernel.run("%%mtprofile -o prof\nimport time\ntime.sleep(0.05)")

    assert kernel.value("[(row.line, row.outside_ns >= 5 * 10**7) for row in prof.lines()][0]") == (3, True)
    assert "time.sleep(0.05)" in ran.panels[0]["text/plain"]


def test_the_value_that_a_cell_returns_of_itself_has_its_lines(kernel: Kernel) -> None:
    kernel.run("%%mtprofile -q -r\nx = torch.ones(3)\ny = x.sin()")

    assert kernel.value("[row.line for row in sorted(Out[max(Out)].lines(), key=lambda row: row.line)]") == [2, 3]


def test_lines_are_known_up_to_the_failure(kernel: Kernel) -> None:
    ran = kernel.run("%%mtprofile -q -o prof\nx = torch.ones(3)\ny = x.sin()\nx @ torch.ones(4)\nz = x.cos()")

    assert ran.status == "error"
    assert "mtprof_nb" not in ran.traceback
    assert kernel.value("sorted({row.line for row in prof.lines()})") == [2, 3, 4]


def test_awaiting_cells_have_their_lines(kernel: Kernel) -> None:
    kernel.run(
        "%%mtprofile -q -o prof\n"
        "import asyncio\n"
        "async def work():\n"
        "    await asyncio.sleep(0)\n"
        "    return torch.ones(2).sin()\n"
        "y = await work() + (await work()).cos()"
    )

    assert kernel.value("sorted({row.line for row in prof.lines() if row.has_ops})") == [5, 6]


def test_what_an_inner_cell_magic_runs_has_its_own_lines(kernel: Kernel) -> None:
    kernel.run("%%mtprofile -q -o prof\n%%capture out\nx = torch.ones(2)\ny = x.sin()")

    sources = kernel.value("sorted(row.source for row in prof.lines())")
    assert sources == ["%%capture out", "x = torch.ones(2)", "y = x.sin()"]


def test_a_statement_has_a_line(kernel: Kernel) -> None:
    kernel.run("%mtprofile -q -o prof torch.ones(2).sin()")

    assert kernel.value("[(row.line, row.source) for row in prof.lines()]") == [(1, "torch.ones(2).sin()")]


def test_a_cell_that_is_not_profiled_after_all_still_runs(kernel: Kernel) -> None:
    ran = kernel.run(
        "with torch.profiler.profile():\n"
        "    get_ipython().run_cell('%%mtprofile -q\\nx = torch.ones(2)\\ndef f():\\n    return x\\ny = f()')\n"
        "y.sum().item()"
    )

    assert (ran.status, ran.result) == ("ok", "2.0")
    assert kernel.value("[name for name in vars(__import__('builtins')) if 'mtprof' in name]") == []


def test_a_cell_run_again_and_again_has_the_same_lines(kernel: Kernel) -> None:
    for _ in range(3):
        kernel.run("%%mtprofile -q -o prof\nx = torch.ones(2)\ny = x.sin()")
        assert kernel.value("sorted({row.line for row in prof.lines()})") == [2, 3]


def test_an_unloaded_extension_marks_nothing(kernel: Kernel) -> None:
    kernel.run("%unload_ext mtprof_nb")
    try:
        assert kernel.value("len(get_ipython().ast_transformers)") == 0
    finally:
        kernel.run("%load_ext mtprof_nb")
    assert kernel.value("len(get_ipython().ast_transformers)") == 1
