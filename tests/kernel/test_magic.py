"""What the magics give a notebook: flags, help, completion, configuration, history, the profile itself."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from conftest import WIDGET, Kernel

FLAGS = (
    *("--with-stack", "--record-shapes", "--profile-memory", "--with-flops", "--with-modules", "--all", "--activities"),
    *("--hook", "--schedule", "--max-events", "--name", "--out", "--return", "--quiet", "--sort", "--limit", "--dump"),
    *("--text", "--show-all", "--help"),
)
OPS = "torch.ones(2, 2).mm(torch.ones(2, 2))"
NAMES = "sorted({event.name for event in __import__('mtprof_nb').last().events() if event.kind == 'op'})"


def _ops(kernel: Kernel) -> list[str]:
    found: list[str] = kernel.value(NAMES)
    return found


def _last(kernel: Kernel, expression: str) -> Any:
    return kernel.value(f"(lambda prof: {expression})(__import__('mtprof_nb').last())")


def test_the_ops_of_the_cell_are_recorded_and_those_of_other_cells_are_not(kernel: Kernel) -> None:
    kernel.run("torch.zeros(2)")
    kernel.run(f"%%mtprofile\ny = {OPS}")
    kernel.run("torch.arange(2)")

    assert {"aten::ones", "aten::mm"} <= set(_ops(kernel))
    assert not {"aten::zeros", "aten::arange"} & set(_ops(kernel))


def test_what_the_repr_of_the_last_value_computes_is_not_the_cell_s(kernel: Kernel) -> None:
    shown = kernel.run("%%mtprofile\ntorch.ones(3) * 1.5")

    assert shown.result == "tensor([1.5000, 1.5000, 1.5000])"
    assert "aten::mul" in _ops(kernel)
    assert not {"aten::abs", "aten::ne", "aten::masked_select", "aten::item"} & set(_ops(kernel))


def test_every_repr_counts_where_every_expression_is_shown(kernel: Kernel) -> None:
    kernel.run("%config InteractiveShell.ast_node_interactivity = 'all'")
    try:
        ran = kernel.run("%%mtprofile\ntorch.ones(1)\ntorch.zeros(1)")
    finally:
        kernel.run("%config InteractiveShell.ast_node_interactivity = 'last_expr'")

    assert [content["data"]["text/plain"] for content in ran.of("execute_result")] == ["tensor([1.])", "tensor([0.])"]
    assert {"aten::ones", "aten::zeros"} <= set(_ops(kernel))


def test_a_nested_cell_that_shows_a_value_does_not_end_the_recording(kernel: Kernel) -> None:
    ran = kernel.run("%%mtprofile\nget_ipython().run_cell('5')\ny = torch.zeros(3)")

    assert len(ran.panels) == 1
    assert "aten::zeros" in _ops(kernel)


def test_a_statement_is_recorded_and_its_value_is_the_value_of_the_line(kernel: Kernel) -> None:
    ran = kernel.run(f"%mtprofile {OPS}.sum().item()")

    assert (ran.status, ran.result, len(ran.panels)) == ("ok", "8.0", 1)
    assert "aten::mm" in _ops(kernel)


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
    assert _last(kernel, "'ok'") == "ok"
    assert "$x {x}" in cell.panels[0]["text/plain"]


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
    assert kernel.value("_ is __import__('mtprof_nb').last()") is True
    assert kernel.value("'aten::sum' in {event.name for event in _.events()}") is True
    assert len(ran.panels) == 1


def test_the_profile_is_the_value_of_a_statement_where_that_is_asked_for(kernel: Kernel) -> None:
    kernel.run("p = %mtprofile -qr torch.ones(3)")

    assert kernel.value("p is __import__('mtprof_nb').last()") is True


def test_the_last_profile_is_always_at_hand(kernel: Kernel) -> None:
    kernel.run("%%mtprofile -q --name first\ntorch.ones(3)")
    first = _last(kernel, "prof.name")
    kernel.run("%%mtprofile -q\ntorch.ones(3)\n1 / 0")

    assert (first, _last(kernel, "prof.name")[:6]) == ("first", "Cell [")


def test_quiet_shows_nothing(kernel: Kernel) -> None:
    ran = kernel.run("%%mtprofile -q\nx = torch.ones(3)\nprint(1)\n2")

    assert [kind for kind, _ in ran.messages] == ["stream", "execute_result"]


@pytest.mark.parametrize("suffix", ["json", "json.gz"])
def test_the_trace_is_dumped(kernel: Kernel, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"trace.{suffix}"
    kernel.run(f"%%mtprofile -q -D {path}\n{OPS}")
    text = gzip.decompress(path.read_bytes()) if suffix.endswith("gz") else path.read_bytes()

    assert "aten::mm" in {event["name"] for event in json.loads(text)["traceEvents"]}


def test_the_table_is_written_as_text_sorted_and_limited(kernel: Kernel, tmp_path: Path) -> None:
    path = tmp_path / "table.txt"
    kernel.run(f"%%mtprofile -q -T '{path}' -s count -l 2\nfor i in range(5):\n    {OPS}")
    expected = _last(kernel, "prof.key_averages().table(sort_by='count', row_limit=2)")

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


def test_one_bundle_holds_the_widget_the_html_and_the_text(kernel: Kernel) -> None:
    ran = kernel.run(f"%%mtprofile\n{OPS};")
    (content,) = ran.of("display_data")

    assert set(content["data"]) == {WIDGET, "text/html", "text/plain"}
    assert "aten::mm" in content["data"]["text/html"]
    assert "aten::mm" in content["data"]["text/plain"]
    assert "0x" not in content["data"]["text/plain"]


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


def test_every_recording_flag_reaches_the_profile(kernel: Kernel) -> None:
    ran = kernel.run(
        f"%%mtprofile --all --max-events 1000000\nimport torch.nn as nn\nnn.Linear(2, 2)(torch.ones(1, 2));\n{OPS}"
    )
    keys = _last(kernel, "sorted(dict(next(e for e in prof.events() if e.name == 'aten::mm')))")

    assert (ran.status, ran.stderr) == ("ok", "")
    assert {"input_shapes", "stack", "flops", "cpu_memory_allocated_delta"} <= set(keys)
    assert _last(kernel, "prof.trace.recorded.with_modules and prof.trace.recorded.with_stack") is True


def test_stacks_name_the_lines_of_the_cell_and_no_frame_of_ours(kernel: Kernel) -> None:
    ran = kernel.run(f"%%mtprofile --with-stack -q\ndef f():\n    return {OPS}\n\nf();")
    stack = _last(kernel, "list(next(e for e in prof.events() if e.name == 'aten::mm').stack)")

    assert ran.status == "ok"
    assert [frame.split(":", 1)[1] for frame in stack] == ["3:f", "5:<module>"]


def test_frames_of_ipython_are_shown_where_all_is_asked_for(kernel: Kernel) -> None:
    (hidden,) = kernel.run(f"%%mtprofile --with-stack -l 500\n{OPS};").panels
    (shown,) = kernel.run(f"%%mtprofile --with-stack --show-all -l 500\n{OPS};").panels

    assert "interactiveshell.py" not in hidden["text/plain"]
    assert "interactiveshell.py" in shown["text/plain"]


def test_the_other_hook_is_used_where_it_is_named(kernel: Kernel) -> None:
    kernel.run(f"%%mtprofile --hook dispatch -q\n{OPS}")

    assert _last(kernel, "prof.trace.hooks") == ("dispatch",)
    assert "aten::mm" in _ops(kernel)


def test_events_beyond_the_limit_are_dropped_and_the_cell_goes_on(kernel: Kernel) -> None:
    ran = kernel.run("%%mtprofile --max-events 5\nfor i in range(20):\n    x = torch.ones(1)\nx.item()")

    assert (ran.status, ran.result) == ("ok", "1.0")
    assert _last(kernel, "len(prof.trace)") <= 5
    assert _last(kernel, "prof.trace.dropped") > 0


def test_steps_are_taken_in_the_cell_or_by_the_loop(kernel: Kernel) -> None:
    kernel.run("%%mtprofile -q\nimport mtprof_nb\nfor i in range(3):\n    torch.ones(1)\n    mtprof_nb.step()")
    by_hand = _last(kernel, "sorted({int(e.step) for e in prof.events() if e.name == 'aten::ones'})")
    kernel.run("%%mtprofile -q\nfor i in mtprof_nb.steps(range(3)):\n    torch.ones(1)")
    by_loop = _last(kernel, "sorted({int(e.step) for e in prof.events() if e.name == 'aten::ones'})")

    assert by_hand == by_loop == [0, 1, 2]


def test_a_schedule_records_its_steps_and_keeps_all_its_windows(kernel: Kernel) -> None:
    ran = kernel.run(
        "%%mtprofile -q --schedule wait=1,active=1,repeat=2\n"
        "import mtprof_nb\nfor i in mtprof_nb.steps(range(6)):\n    x = torch.ones(1)"
    )

    assert (ran.status, ran.stderr) == ("ok", "")
    assert _last(kernel, "[int(e.step) for e in prof.events() if e.name == 'aten::ones']") == [1, 3]


def test_a_schedule_without_steps_says_so_in_one_line(kernel: Kernel) -> None:
    ran = kernel.run("%%mtprofile -q --schedule wait=1,active=1\ntorch.ones(1);")

    assert ran.status == "ok"
    assert "0 steps recorded: call step()" in ran.stderr
    assert ran.stderr.count("\n") == 1


def test_the_notebook_sets_flags_for_all_its_cells(kernel: Kernel) -> None:
    assert kernel.run("%mtprofile_config --record-shapes -q").messages == []
    assert kernel.run("%mtprofile_config").stdout == "--record-shapes --quiet\n"
    quiet = kernel.run(f"%%mtprofile\n{OPS};")
    recorded = _last(kernel, "prof.trace.recorded.record_shapes")
    loud = kernel.run(f"%%mtprofile --no-quiet --no-record-shapes\n{OPS};")

    assert (quiet.panels, recorded) == ([], True)
    assert len(loud.panels) == 1
    assert _last(kernel, "prof.trace.recorded.record_shapes") is False
    assert kernel.run("%mtprofile_config --out x").reply["ename"] == "UsageError"


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("%%mtprofile --with-", {"--with-stack", "--with-flops", "--with-modules"}),
        ("%mtprofile -q --rec", {"--record-shapes"}),
        ("%%mtprofile --hook ", {"auto", "kineto", "dispatch", "mindtorch_v2", "candle"}),
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
    assert "aten::mm" in _ops(kernel)


@pytest.mark.parametrize("outer", ["%%time", "%%capture captured"])
def test_another_magic_may_stand_on_top(kernel: Kernel, outer: str) -> None:
    ran = kernel.run(f"{outer}\n%%mtprofile\ny = {OPS}\ny.sum()")

    assert ran.status == "ok"
    assert "aten::mm" in _ops(kernel)
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
