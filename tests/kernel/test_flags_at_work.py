"""The flags of the magics at work in a kernel: each does what its help says."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mtprof_nb import load
from mtprof_nb.capture.registry import HOOK_KINDS

if TYPE_CHECKING:
    from conftest import Kernel

FLAGS = (
    *("--with-stack", "--record-shapes", "--profile-memory", "--with-flops", "--with-modules", "--all", "--activities"),
    *("--hook", "--schedule", "--max-events", "--name", "--out", "--return", "--quiet", "--sort", "--limit", "--dump"),
    *("--text", "--show-all", "--html", "--help"),
)
OPS = "torch.ones(2, 2).mm(torch.ones(2, 2))"


@pytest.mark.parametrize("magic", ["%%mtprofile --with-stak\nran = True", "%mtprofile --with-stak ran = True"])
def test_a_bad_flag_is_one_line_without_a_traceback_before_anything_runs(kernel: Kernel, magic: str) -> None:
    ran = kernel.run("ran = False")
    ran = kernel.run(magic)

    assert (ran.status, ran.reply["ename"]) == ("error", "UsageError")
    assert ran.stderr.count("\n") == 1
    assert "did you mean --with-stack?" in ran.stderr
    assert (ran.traceback, ran.panels, kernel.value("ran")) == ("", [], False)


@pytest.mark.parametrize("flags", ["--activities cuda", "--activities tpu", "--schedule wait=1", "--hook mindtorch_v3"])
def test_what_cannot_be_recorded_here_is_refused_before_the_cell_runs(kernel: Kernel, flags: str) -> None:
    ran = kernel.run(f"%%mtprofile {flags}\nran = True")

    assert (ran.reply.get("ename"), ran.traceback, kernel.value("'ran' in globals()")) == ("UsageError", "", False)


def test_code_beside_the_magic_is_refused(kernel: Kernel) -> None:
    ran = kernel.run("%%mtprofile x = 1\ny = 2")

    assert ran.reply["ename"] == "UsageError"
    assert "code begins on the next line" in ran.stderr
    assert kernel.value("'y' in globals()") is False


def test_a_cell_with_nothing_below_the_magic_is_refused_as_for_any_magic(kernel: Kernel) -> None:
    ran = kernel.run("%%mtprofile -q")

    assert ran.reply["ename"] == "UsageError"
    assert "cell body is empty" in ran.stderr


CUT = """\
%%mtprofile -q --max-events 400
import time
x = torch.ones(300, 300)
for i in range(1_000):
    y = x @ x
time.sleep(0.5)
"""


def test_the_figures_of_a_cell_beyond_max_events_are_of_the_part_that_was_recorded(kernel: Kernel) -> None:
    kernel.run(CUT)
    kernel.run("import mtprof_nb as mtp; p = mtp.last(); s = p.summary(); t = p.trace")
    wall_ns, in_ops_ns, outside_ns, profiler_ns = kernel.value("s.wall_ns, s.in_ops_ns, s.outside_ns, s.profiler_ns")

    assert in_ops_ns + outside_ns + profiler_ns == wall_ns
    # The sleep and most of the loop are not covered.
    assert kernel.value("t.ended_ns - t.began_ns") == wall_ns
    assert kernel.value("t.unrecorded[0].ended_ns - t.ended_ns") > 500_000_000
    assert in_ops_ns > 0
    assert kernel.value("sum(row.outside_ns or 0 for row in p.lines())") <= outside_ns
    assert kernel.value("int((t.samples.time_ns >= t.ended_ns).sum())") == 0
    sentence = kernel.value("' '.join(s.notes)")
    assert sentence.startswith("This recording covers the first ")


@pytest.mark.parametrize("cell", ["%%mtprofile -h\nran = True", "%%mtprofile --help", "%mtprofile -h"])
def test_help_names_every_flag_and_runs_nothing(kernel: Kernel, cell: str) -> None:
    ran = kernel.run(cell)

    assert ran.status == "ok"
    assert [flag for flag in FLAGS if flag not in ran.stdout] == []
    assert kernel.value("'ran' in globals()") is False
    assert ran.panels == []


@pytest.mark.parametrize("question", ["%%mtprofile?", "%mtprofile?", "?%%mtprofile"])
def test_a_question_mark_shows_the_same_help(kernel: Kernel, question: str) -> None:
    (page,) = kernel.run(question).reply["payload"]

    assert [flag for flag in FLAGS if flag not in page["data"]["text/plain"]] == []


def test_a_variable_holds_the_profile(kernel: Kernel) -> None:
    ran = kernel.run("%%mtprofile -o prof\nx = torch.ones(3)\nx.sum()")

    assert ran.result == "tensor(3.)"
    assert kernel.value("'aten::sum' in {row.key for row in prof.key_averages()}") is True
    assert kernel.value("prof is __import__('mtprof_nb').last()") is True


def test_the_profile_is_the_value_of_the_cell_where_that_is_asked_for(kernel: Kernel) -> None:
    ran = kernel.run("%%mtprofile -r\nx = torch.ones(3)\nx.sum()")

    assert len(ran.of("execute_result")) == 1
    assert "0x" not in str(ran.result)
    assert kernel.value("Out[max(Out)] is __import__('mtprof_nb').last()") is True
    assert kernel.value("'aten::sum' in {event.name for event in Out[max(Out)].events()}") is True
    assert len(ran.panels) == 1


def test_the_profile_is_the_value_of_a_statement_where_that_is_asked_for(kernel: Kernel) -> None:
    kernel.run("p = %mtprofile -qr torch.ones(3)")

    assert kernel.value("p is __import__('mtprof_nb').last()") is True


def test_the_last_profile_is_always_at_hand(kernel: Kernel) -> None:
    kernel.run("%%mtprofile -q --name first\ntorch.ones(3)")
    first = kernel.last("prof.name")
    kernel.run("%%mtprofile -q\ntorch.ones(3)\n1 / 0")

    assert (first, kernel.last("prof.name")[:6]) == ("first", "Cell [")


def test_quiet_shows_nothing(kernel: Kernel) -> None:
    ran = kernel.run("%%mtprofile -q\nx = torch.ones(3)\nprint(1)\n2")

    assert [kind for kind, _ in ran.messages] == ["stream", "execute_result"]


@pytest.mark.parametrize("suffix", ["json", "json.gz"])
def test_the_trace_is_dumped(kernel: Kernel, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"trace.{suffix}"
    kernel.run(f"%%mtprofile -q -D {path}\n{OPS}")
    text = gzip.decompress(path.read_bytes()) if suffix.endswith("gz") else path.read_bytes()

    assert "aten::mm" in {event["name"] for event in json.loads(text)["traceEvents"]}


def test_the_recording_is_saved_and_loads_in_another_process_with_its_lines(kernel: Kernel, tmp_path: Path) -> None:
    kernel.run(f"%%mtprofile -q -D {tmp_path / 'run.mtp'}\n{OPS}")
    expected = kernel.last("[(row.where, row.source, row.count) for row in prof.lines()]")
    loaded = load(tmp_path / "run.mtp")

    assert [(row.where, row.source, row.count) for row in loaded.lines()] == [tuple(row) for row in expected]
    assert expected[0][0].startswith("Cell [")
    assert loaded.name == kernel.last("prof.name")


def test_the_panel_is_written_as_a_page_with_the_name_and_the_failure_of_the_cell(
    kernel: Kernel, tmp_path: Path
) -> None:
    kernel.run(f"%%mtprofile -q --name mine -H {tmp_path / 'page.html'}\n{OPS}\n1 / 0")
    page = (tmp_path / "page.html").read_text()

    assert "<title>mine</title>" in page
    assert "ZeroDivisionError" in page[page.index("<noscript>") : page.index("</noscript>")]


@pytest.mark.parametrize("key", ["count", "calls"])
def test_the_table_is_written_as_text_sorted_and_limited(kernel: Kernel, tmp_path: Path, key: str) -> None:
    path = tmp_path / "table.txt"
    kernel.run(f"%%mtprofile -q -T '{path}' -s {key} -l 2\nfor i in range(5):\n    {OPS}")
    expected = kernel.last("prof.key_averages().table(sort_by='count', row_limit=2)")

    assert path.read_text() == expected


def test_a_file_that_cannot_be_written_is_told_in_one_line_and_the_rest_goes_on(kernel: Kernel, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    ran = kernel.run(f"%%mtprofile -D {folder}/t.json -o prof\nimport shutil\nshutil.rmtree('{folder}')\n{OPS};")

    assert ran.status == "ok"
    assert ran.stderr.count("\n") == 1
    assert "could not be written" in ran.stderr
    assert "mtprof_nb.last() has it" in ran.stderr
    assert len(ran.panels) == 1
    assert kernel.value("len(prof.trace) > 0") is True


def test_rows_are_sorted_and_limited_and_the_rest_is_counted(kernel: Kernel) -> None:
    ran = kernel.run("%%mtprofile -s count -l 1\nx = torch.ones(3)\nfor i in range(7):\n    x = x.mul(x)")
    (panel,) = ran.panels

    assert "aten::mul" in panel["text/plain"]
    assert "aten::ones" not in panel["text/plain"]
    assert "showing 1 of" in panel["text/plain"].lower()


def test_a_label_is_the_title_and_the_cell_s_number_otherwise(kernel: Kernel) -> None:
    named = kernel.run("%%mtprofile --name 'my <b>label</b>'\ntorch.ones(3)")
    plain = kernel.run("%%mtprofile\ntorch.ones(3)")
    number = plain.reply["execution_count"]

    assert "my <b>label</b>" in named.panels[0]["text/plain"]
    assert "my &lt;b&gt;label&lt;/b&gt;" in named.panels[0]["text/html"]
    assert f"Cell [{number}]" in plain.panels[0]["text/plain"]
    assert f"Cell [{number}]" in plain.panels[0]["text/html"]


def test_every_recording_flag_reaches_the_profile(kernel: Kernel) -> None:
    ran = kernel.run(
        f"%%mtprofile --all --max-events 1000000\nimport torch.nn as nn\nnn.Linear(2, 2)(torch.ones(1, 2));\n{OPS}"
    )
    keys = kernel.last("sorted(dict(next(e for e in prof.events() if e.name == 'aten::mm')))")

    assert (ran.status, ran.stderr) == ("ok", "")
    assert {"input_shapes", "stack", "flops", "cpu_memory_allocated_delta"} <= set(keys)
    assert kernel.last("prof.trace.recorded.with_modules and prof.trace.recorded.with_stack") is True


def test_frames_of_ipython_are_shown_where_all_is_asked_for(kernel: Kernel) -> None:
    (hidden,) = kernel.run(f"%%mtprofile --with-stack -l 500\n{OPS};").panels
    (shown,) = kernel.run(f"%%mtprofile --with-stack --show-all -l 500\n{OPS};").panels

    assert "interactiveshell.py" not in hidden["text/plain"]
    assert "interactiveshell.py" in shown["text/plain"]


def test_the_other_hook_is_used_where_it_is_named(kernel: Kernel) -> None:
    kernel.run(f"%%mtprofile --hook kineto -q\n{OPS}")

    assert kernel.last("prof.trace.hooks") == ("kineto",)
    assert "aten::mm" in kernel.ops()


def test_events_beyond_the_limit_are_dropped_and_the_cell_goes_on(kernel: Kernel) -> None:
    ran = kernel.run("%%mtprofile --max-events 5\nfor i in range(20):\n    x = torch.ones(1)\nx.item()")

    assert (ran.status, ran.result) == ("ok", "1.0")
    assert kernel.last("len(prof.trace)") <= 5
    assert kernel.last("prof.trace.dropped") > 0


def test_a_schedule_records_its_steps_and_keeps_all_its_windows(kernel: Kernel) -> None:
    ran = kernel.run(
        "%%mtprofile -q --schedule wait=1,active=1,repeat=2\n"
        "import mtprof_nb\nfor i in mtprof_nb.steps(range(6)):\n    x = torch.ones(1)"
    )

    assert (ran.status, ran.stderr) == ("ok", "")
    assert kernel.last("[int(e.step) for e in prof.events() if e.name == 'aten::ones']") == [1, 3]


def test_a_schedule_without_steps_says_so_in_one_line(kernel: Kernel) -> None:
    ran = kernel.run("%%mtprofile -q --schedule wait=1,active=1\ntorch.ones(1);")

    assert ran.status == "ok"
    assert "0 steps recorded: call step()" in ran.stderr
    assert ran.stderr.count("\n") == 1


def test_the_notebook_sets_flags_for_all_its_cells(kernel: Kernel) -> None:
    assert kernel.run("%mtprofile_config --record-shapes -q").messages == []
    assert kernel.run("%mtprofile_config").stdout == "--record-shapes --quiet\n"
    quiet = kernel.run(f"%%mtprofile\n{OPS};")
    recorded = kernel.last("prof.trace.recorded.record_shapes")
    loud = kernel.run(f"%%mtprofile --no-quiet --no-record-shapes\n{OPS};")

    assert (quiet.panels, recorded) == ([], True)
    assert len(loud.panels) == 1
    assert kernel.last("prof.trace.recorded.record_shapes") is False
    assert kernel.run("%mtprofile_config --out x").reply["ename"] == "UsageError"


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("%%mtprofile --with-", {"--with-stack", "--with-flops", "--with-modules"}),
        ("%mtprofile -q --rec", {"--record-shapes"}),
        ("%%mtprofile --hook ", {"auto", *HOOK_KINDS}),
        ("%%mtprofile -s self_cpu_t", {"self_cpu_time_total"}),
        ("%mtprofile_config --sho", {"--show-all"}),
    ],
)
def test_tab_completes_flags_and_their_values(kernel: Kernel, code: str, expected: set[str]) -> None:
    found = kernel.complete(code + "\ntorch.ones(1)" * code.startswith("%%"), len(code))

    assert set(found) == expected


def test_tab_completes_the_code_of_the_cell_as_ever(kernel: Kernel) -> None:
    kernel.run("long_name_of_a_tensor = 1")
    cell = "%%mtprofile\nlong_name_of"

    assert "long_name_of_a_tensor" in kernel.complete(cell, len(cell))
