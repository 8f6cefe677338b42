"""Results of the magics in a notebook: the ops of a cell or a statement, its value, its history, the panel."""

from __future__ import annotations

import re

import pytest
from conftest import WIDGET, Kernel

OPS = "torch.ones(2, 2).mm(torch.ones(2, 2))"


def test_the_ops_of_the_cell_are_recorded_and_those_of_other_cells_are_not(kernel: Kernel) -> None:
    kernel.run("torch.zeros(2)")
    kernel.run(f"%%mtprofile\ny = {OPS}")
    kernel.run("torch.arange(2)")

    assert {"aten::ones", "aten::mm"} <= set(kernel.ops())
    assert not {"aten::zeros", "aten::arange"} & set(kernel.ops())


def test_what_the_repr_of_the_last_value_computes_is_not_the_cell_s(kernel: Kernel) -> None:
    shown = kernel.run("%%mtprofile\ntorch.ones(3) * 1.5")

    assert shown.result == "tensor([1.5000, 1.5000, 1.5000])"
    assert "aten::mul" in kernel.ops()
    assert not {"aten::abs", "aten::ne", "aten::masked_select", "aten::item"} & set(kernel.ops())


def test_every_repr_counts_where_every_expression_is_shown(kernel: Kernel) -> None:
    kernel.run("%config InteractiveShell.ast_node_interactivity = 'all'")
    try:
        ran = kernel.run("%%mtprofile\ntorch.ones(1)\ntorch.zeros(1)")
    finally:
        kernel.run("%config InteractiveShell.ast_node_interactivity = 'last_expr'")

    assert [content["data"]["text/plain"] for content in ran.of("execute_result")] == ["tensor([1.])", "tensor([0.])"]
    assert {"aten::ones", "aten::zeros"} <= set(kernel.ops())


def test_a_nested_cell_that_shows_a_value_does_not_end_the_recording(kernel: Kernel) -> None:
    ran = kernel.run("%%mtprofile\nget_ipython().run_cell('5')\ny = torch.zeros(3)")

    assert len(ran.panels) == 1
    assert "aten::zeros" in kernel.ops()


def test_a_statement_is_recorded_and_its_value_is_the_value_of_the_line(kernel: Kernel) -> None:
    ran = kernel.run(f"%mtprofile {OPS}.sum().item()")

    assert (ran.status, ran.result, len(ran.panels)) == ("ok", "8.0", 1)
    assert "aten::mm" in kernel.ops()


def test_a_statement_assigns_in_the_user_s_namespace(kernel: Kernel) -> None:
    ran = kernel.run("%mtprofile a, b = 1, 2\nc = %mtprofile -q a + b\nc")

    assert (ran.result, len(ran.panels)) == ("3", 1)
    assert kernel.value("(a, b, c)") == (1, 2, 3)


def test_a_statement_sees_the_locals_of_the_function_it_stands_in(kernel: Kernel) -> None:
    ran = kernel.run("def f(inner):\n    value = %mtprofile -q inner + 1\n    return value\nf(4)")

    assert (ran.status, ran.result) == ("ok", "5")


def test_a_semicolon_silences_the_value_of_a_statement(kernel: Kernel) -> None:
    ran = kernel.run("%mtprofile 5;")

    assert (ran.status, ran.result, len(ran.panels)) == ("ok", None, 1)


def test_a_statement_that_awaits_is_sent_to_the_cell_magic(kernel: Kernel) -> None:
    ran = kernel.run("import asyncio\n%mtprofile await asyncio.sleep(0)")

    assert (ran.status, ran.reply["ename"]) == ("error", "UsageError")
    assert "put %%mtprofile on the first line" in ran.stderr
    assert ran.traceback == ""


def test_a_statement_is_wanted(kernel: Kernel) -> None:
    ran = kernel.run("%mtprofile -q")

    assert ran.reply["ename"] == "UsageError"
    assert "needs a statement" in ran.stderr


def test_nothing_is_expanded_in_the_code_or_the_flags(kernel: Kernel) -> None:
    kernel.run("x = 'expanded'")
    cell = kernel.run("%%mtprofile --name '$x {x}'\nprint('$x {x}')")
    line = kernel.run("%mtprofile -q print('$x {x}')")

    assert (cell.stdout, line.stdout) == ("$x {x}\n", "$x {x}\n")
    assert kernel.last("'ok'") == "ok"
    assert "$x {x}" in cell.panels[0]["text/plain"]


def test_the_page_and_its_text_are_one_output_then_come_the_widget_and_the_saved_panel(kernel: Kernel) -> None:
    ran = kernel.run(f"%%mtprofile\n{OPS};", allow_stdin=True)
    page, widget, script = (content["data"] for content in ran.of("display_data"))

    assert set(page) == {"text/html", "text/markdown", "text/plain"}
    assert "aten::mm" in page["text/html"]
    assert "aten::mm" in page["text/plain"]
    assert "0x" not in page["text/plain"]
    assert (set(widget), widget["text/plain"]) == ({WIDGET, "text/plain"}, "")
    assert (set(script), script["text/plain"]) == ({"application/javascript", "text/plain"}, "")
    assert len(script["application/javascript"]) < 100_000
    assert not re.search("<script|<style", page["text/html"])


def test_a_panel_that_is_the_value_of_a_cell_is_shown_in_the_same_three_outputs(kernel: Kernel) -> None:
    kernel.run(f"%%mtprofile -q\n{OPS};")
    ran = kernel.run("import mtprof_nb\nmtprof_nb.last().operators()", allow_stdin=True)
    page, widget, _ = (content["data"] for content in ran.of("display_data"))

    assert "aten::mm" in page["text/html"]
    assert set(widget) == {WIDGET, "text/plain"}
    assert ran.of("execute_result") == []
    assert "aten::mm" in kernel.value("repr(_)")


def test_the_text_names_no_address_and_no_id(kernel: Kernel) -> None:
    first = kernel.run("%%mtprofile -r --name same\nx = 1")
    second = kernel.run("%%mtprofile -r --name same\nx = 1")

    assert first.result == second.result


def test_the_panel_asks_no_network(kernel: Kernel) -> None:
    (panel,) = kernel.run(f"%%mtprofile --all\n{OPS};").panels

    assert "http://" not in panel["text/html"].replace("http://www.w3.org", "")
    assert "https://" not in panel["text/html"]
    assert "<script" not in panel["text/html"]


def test_no_file_appears_in_the_working_directory_and_no_port_is_opened(kernel: Kernel) -> None:
    listening = "sorted(line.split()[1] for line in open('/proc/self/net/tcp') if line.split()[3] == '0A')"
    before = kernel.value("sorted(__import__('os').listdir('.'))"), kernel.value(listening)
    kernel.run(f"%%mtprofile --all\n{OPS}")

    assert (kernel.value("sorted(__import__('os').listdir('.'))"), kernel.value(listening)) == before


def test_stacks_name_the_lines_of_the_cell_and_no_frame_of_ours(kernel: Kernel) -> None:
    ran = kernel.run(f"%%mtprofile --with-stack -q\ndef f():\n    return {OPS}\n\nf();")
    stack = kernel.last("list(next(e for e in prof.events() if e.name == 'aten::mm').stack)")

    assert ran.status == "ok"
    assert [frame.split(":", 1)[1] for frame in stack] == ["3:f", "5:<module>"]


def test_steps_are_taken_in_the_cell_or_by_the_loop(kernel: Kernel) -> None:
    kernel.run("%%mtprofile -q\nimport mtprof_nb\nfor i in range(3):\n    torch.ones(1)\n    mtprof_nb.step()")
    by_hand = kernel.last("sorted({int(e.step) for e in prof.events() if e.name == 'aten::ones'})")
    kernel.run("%%mtprofile -q\nfor i in mtprof_nb.steps(range(3)):\n    torch.ones(1)")
    by_loop = kernel.last("sorted({int(e.step) for e in prof.events() if e.name == 'aten::ones'})")

    assert by_hand == by_loop == [0, 1, 2]


def test_the_history_holds_what_was_typed(kernel: Kernel) -> None:
    typed = "%%mtprofile -q\nx = 'paste'\nx"
    number = kernel.run(typed).reply["execution_count"]

    assert kernel.value(f"_i{number}") == typed
    assert kernel.run(f"%history {number}").stdout == typed + "\n"
    assert kernel.history(number) == typed
    # `In` holds what was compiled, as for every magic; it runs again.
    assert kernel.value(f"In[{number}]").endswith("\nx = 'paste'\nx")
    assert kernel.run(f"%rerun {number}").result == "'paste'"


def test_the_last_value_and_out_are_the_cell_s(kernel: Kernel) -> None:
    number = kernel.run("%%mtprofile\n40 + 2").reply["execution_count"]

    assert kernel.value(f"(_, Out[{number}], _{number})") == (42, 42, 42)


def test_no_name_is_left_in_the_namespace(kernel: Kernel) -> None:
    before = kernel.value("sorted(n for n in globals() if not n.startswith('_'))")
    hidden = kernel.value("sorted(n for n in globals() if n.startswith('_') and not n.strip('_i').isdigit())")
    kernel.run(f"%%mtprofile --all -r\n{OPS}")
    kernel.run(f"%mtprofile {OPS}")

    assert kernel.value("sorted(n for n in globals() if not n.startswith('_'))") == before
    assert kernel.value("sorted(n for n in globals() if n.startswith('_') and not n.strip('_i').isdigit())") == hidden


def test_the_magic_can_be_called_as_a_function(kernel: Kernel) -> None:
    ran = kernel.run(f"value = get_ipython().run_cell_magic('mtprofile', '', 'y = {OPS}\\ny.sum().item()')\nvalue")

    assert (ran.status, ran.result, len(ran.panels)) == ("ok", "8.0", 1)
    assert kernel.value("'y' in globals()") is True
    assert "aten::mm" in kernel.ops()


@pytest.mark.parametrize("outer", ["%%time", "%%capture captured"])
def test_another_magic_may_stand_on_top(kernel: Kernel, outer: str) -> None:
    ran = kernel.run(f"{outer}\n%%mtprofile\ny = {OPS}\ny.sum()")

    assert ran.status == "ok"
    assert "aten::mm" in kernel.ops()
    # What is captured is the whole output of the cell, the panel too.
    assert len(ran.panels) == (outer == "%%time")
    if outer != "%%time":
        assert kernel.value("len(captured.outputs)") == 2


def test_a_cell_that_is_asked_for_silently_is_recorded_and_publishes_nothing(kernel: Kernel) -> None:
    ran = kernel.run(f"%%mtprofile -o prof\ny = {OPS}", silent=True)

    assert (ran.status, ran.messages) == ("ok", [])
    assert kernel.value("'aten::mm' in {event.name for event in prof.events()}") is True


def test_running_a_cell_again_closes_the_widgets_of_its_first_run(kernel: Kernel) -> None:
    cell = f"%%mtprofile\n{OPS};"
    counted = "len(__import__('ipywidgets').widgets.widget._instances)"
    kernel.run(cell, cell_id="same")
    once = kernel.value(counted)
    for _ in range(3):
        kernel.run(cell, cell_id="same")

    assert kernel.value(counted) == once


@pytest.mark.parametrize("value", ["prof", "mtprof_nb.last()"])
def test_a_profile_that_is_the_value_of_a_cell_shows_its_panel(kernel: Kernel, value: str) -> None:
    kernel.run(f"import mtprof_nb\nwith mtprof_nb.profile(name='mine') as prof:\n    {OPS}")
    watched, executed = kernel.run(value, allow_stdin=True), kernel.run(value)

    assert [page["text/plain"].splitlines()[0] for page in watched.panels] == ["mine"]
    assert watched.of("execute_result") == []
    (result,) = executed.of("execute_result")
    assert set(result["data"]) == {"text/html", "text/markdown", "text/plain"}


@pytest.mark.parametrize("cell", ["%%mtprofile -r\n{ops}", "%mtprofile -r {ops}", "prof.show()\nprof"])
def test_a_panel_that_the_cell_shows_is_not_shown_again_by_its_value(kernel: Kernel, cell: str) -> None:
    kernel.run(f"import mtprof_nb\nwith mtprof_nb.profile() as prof:\n    {OPS}")
    for allow_stdin in (True, False):
        ran = kernel.run(cell.format(ops=OPS), allow_stdin=allow_stdin)

        assert len(ran.panels) == 1
        assert ran.result is not None
        assert ran.result.startswith("<profile ")


def test_a_profile_that_records_nothing_yet_has_a_value_too(kernel: Kernel) -> None:
    ran = kernel.run("import mtprof_nb\nmtprof_nb.profile(name='none yet')", allow_stdin=True)

    assert ran.status == "ok"
    assert "Nothing was recorded" in ran.panels[0]["text/plain"]


def test_show_returns_its_panel_which_is_displayed_once_a_cell(kernel: Kernel) -> None:
    kernel.run(f"import mtprof_nb\nwith mtprof_nb.profile(name='mine') as prof:\n    {OPS}")
    shown = kernel.run("prof.show()", allow_stdin=True)
    kept = kernel.run("box = prof.show()", allow_stdin=True)
    again = kernel.run("box", allow_stdin=True)

    assert [len(ran.panels) for ran in (shown, kept, again)] == [1, 1, 1]
    assert [ran.of("execute_result") for ran in (shown, kept, again)] == [[], [], []]
    assert kernel.value("type(box).__name__") == "Panel"


@pytest.mark.parametrize(
    ("cell", "where"),
    [
        ("%%mtprofile -q\ny = x @ x", "Cell [{}]:2"),
        ("%%capture shown\n%%mtprofile -q\ny = x @ x", "Cell [{}] (inner):2"),
        ("%%capture shown\n%%capture more\n%%mtprofile -q\ny = x @ x", "Cell [{}] (inner):2"),
        ("%%mtprofile -q\n%%capture shown\ny = x @ x", "Cell [{}] (inner):1"),
        ("%%time\n%%mtprofile -q\ny = x @ x", "<timed exec>:2"),
        ("%%mtprofile -q\n%%time\ny = x @ x", "Cell [{}]:2"),
        ("get_ipython().run_cell('%%mtprofile -q\\ny = x @ x');", "Cell [{}] (inner):2"),
        ("get_ipython().run_cell('%%capture c\\n%%mtprofile -q\\ny = x @ x');", "Cell [{}] (inner):2"),
        ("get_ipython().run_cell('%%mtprofile -q\\ny = x @ x', store_history=True);", "Cell [{}]:2"),
    ],
)
def test_a_profile_and_its_lines_have_the_number_of_the_cell_that_ran(kernel: Kernel, cell: str, where: str) -> None:
    kernel.run("import mtprof_nb\nx = torch.ones(8, 8)")

    number = kernel.run(cell).reply["execution_count"]

    assert kernel.value("mtprof_nb.last().name") == f"Cell [{number}]"
    hottest = "next(f'{row.where}:{row.line}' for row in mtprof_nb.last().lines() if row.count)"
    assert kernel.value(hottest) == where.format(number)


@pytest.mark.parametrize("request_", [{"store_history": False}, {"silent": True}])
def test_a_cell_that_the_history_leaves_out_has_no_number(kernel: Kernel, request_: dict[str, bool]) -> None:
    kernel.run("import mtprof_nb\nx = torch.ones(8, 8)")

    kernel.run("%%mtprofile -q\ny = x @ x", **request_)

    assert kernel.value("mtprof_nb.last().name") == "Cell"
    assert kernel.value("mtprof_nb.last().lines()[0].where") == "Cell"


def test_a_function_of_a_captured_cell_keeps_the_number_of_that_cell(kernel: Kernel) -> None:
    kernel.run("import mtprof_nb\nx = torch.ones(8, 8)")
    number = kernel.run("%%capture\ndef squared(x):\n    return x @ x").reply["execution_count"]
    kernel.run("1 + 1")

    kernel.run("%%mtprofile -q --with-stack\nsquared(x)")

    where = "[row.where for row in mtprof_nb.last().lines() if row.source == 'return x @ x']"
    assert kernel.value(where) == [f"Cell [{number}] (inner)"]
