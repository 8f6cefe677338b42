"""Cells that fail, are interrupted, or cannot be profiled: the cell's own fate stands, and the profile follows."""

from __future__ import annotations

import re

import pytest
from conftest import TIMEOUT_S, Kernel, Ran, is_panel

OPS = "y = torch.ones(2, 2).mm(torch.ones(2, 2))"
SLEEP = "print('sleeping', flush=True)\nimport time\ntime.sleep(60)"
HAS_MM = "'aten::mm' in {event.name for event in __import__('mtprof_nb').last().events()}"


def _assert_next_run_works(kernel: Kernel) -> None:
    ran = kernel.run(f"%%mtprofile\n{OPS}\n7")
    assert (ran.status, ran.result, len(ran.panels), ran.stderr) == ("ok", "7", 1, "")


def _kinds(ran: Ran) -> list[str]:
    named = [("panel" if is_panel(content) else kind) for kind, content in ran.messages]
    return [kind for kind in named if not kind.startswith("comm_")]


def test_the_partial_profile_follows_the_native_traceback_and_says_so(kernel: Kernel) -> None:
    ran = kernel.run(f"%%mtprofile\n{OPS}\nprint('before')\n1 / 0\nafter = True")

    assert (ran.status, ran.reply["ename"]) == ("error", "ZeroDivisionError")
    assert _kinds(ran) == ["stream", "error", "panel"]
    assert "----> 4 1 / 0" in ran.traceback
    assert ran.reply["traceback"] == ran.of("error")[0]["traceback"]
    assert "failed with ZeroDivisionError" in ran.panels[0]["text/plain"]
    assert "failed with ZeroDivisionError" in ran.panels[0]["text/html"]
    assert kernel.value(HAS_MM) is True
    assert kernel.value("'after' in globals()") is False
    _assert_next_run_works(kernel)


def test_a_cell_that_ends_well_says_nothing_of_failure(kernel: Kernel) -> None:
    (panel,) = kernel.run(f"%%mtprofile\n{OPS}").panels

    assert "failed" not in panel["text/plain"]
    assert "interrupted" not in panel["text/plain"]


def test_run_all_stops_at_a_failed_cell(kernel: Kernel) -> None:
    failing = kernel.send("%%mtprofile -q\n1 / 0", stop_on_error=True)
    following = kernel.send("followed = True")

    assert kernel.finish(failing).status == "error"
    assert kernel.finish(following).status == "aborted"
    assert kernel.value("'followed' in globals()") is False


def test_the_debugger_opens_where_the_cell_failed(kernel: Kernel) -> None:
    kernel.run("%%mtprofile\ndef f(n):\n    local = n * 2\n    return 1 / n\nf(0)")
    seen = "(sys.last_type.__name__, sys.last_traceback.tb_next.tb_next.tb_frame.f_locals['local'])"
    debugged = kernel.answer("%debug", ["p local + 40", "q"])

    assert kernel.run(f"import sys\n{seen}").result == "('ZeroDivisionError', 0)"
    assert "40" in debugged.stdout
    assert "return 1 / n" in re.sub(r"\x1b\[[\d;]*m", "", debugged.stdout)


def test_a_failing_statement_has_its_traceback_and_then_its_profile(kernel: Kernel) -> None:
    kernel.run(f"def f():\n    {OPS}\n    return 1 / 0")
    ran = kernel.run("%mtprofile f()")

    assert (ran.status, ran.reply["ename"]) == ("error", "ZeroDivisionError")
    assert _kinds(ran) == ["error", "panel"]
    assert "mtprof_nb" not in ran.traceback
    assert "failed with ZeroDivisionError" in ran.panels[0]["text/plain"]
    assert kernel.value(HAS_MM) is True


def test_a_statement_that_fails_and_is_caught_is_still_shown_as_failed(kernel: Kernel) -> None:
    ran = kernel.run(f"{OPS}\ntry:\n    %mtprofile 1 / 0\nexcept ZeroDivisionError:\n    print('caught')")

    assert (ran.status, ran.stdout) == ("ok", "caught\n")
    assert _kinds(ran) == ["stream", "panel"]
    assert "failed with ZeroDivisionError" in ran.panels[0]["text/plain"]


def test_an_interrupt_has_its_traceback_and_then_the_profile(kernel: Kernel) -> None:
    ran = kernel.interrupt_when(f"%%mtprofile\n{OPS}\n{SLEEP}", "sleeping")

    assert (ran.status, ran.reply["ename"]) == ("error", "KeyboardInterrupt")
    assert _kinds(ran)[-2:] == ["error", "panel"]
    assert "----> 5 time.sleep(60)" in ran.traceback
    assert "interrupted" in ran.panels[0]["text/plain"]
    assert kernel.value(HAS_MM) is True
    _assert_next_run_works(kernel)


def test_an_interrupt_of_ops_has_its_traceback_and_then_the_profile(kernel: Kernel) -> None:
    busy = "x = torch.ones(50, 50)\nprint('busy', flush=True)\nwhile True:\n    x = x.mm(x).clamp(max=1)"
    ran = kernel.interrupt_when(f"%%mtprofile\n{busy}", "busy")

    assert (ran.status, ran.reply["ename"]) == ("error", "KeyboardInterrupt")
    assert _kinds(ran)[-2:] == ["error", "panel"]
    assert kernel.value(HAS_MM) is True
    _assert_next_run_works(kernel)


def test_an_interrupted_await_is_cancelled_as_ever_and_shown(kernel: Kernel) -> None:
    # A kernel cancels what is awaited when its loop next wakes.
    waiting = "import asyncio\nprint('waiting', flush=True)\nwhile True:\n    await asyncio.sleep(0.01)"
    plain = kernel.interrupt_when(waiting, "waiting")
    ran = kernel.interrupt_when(f"%%mtprofile\n{OPS}\n{waiting}", "waiting")

    assert (ran.status, ran.reply["ename"]) == (plain.status, plain.reply["ename"])
    assert _kinds(ran)[-2:] == ["error", "panel"]
    assert "interrupted" in ran.panels[0]["text/plain"]
    _assert_next_run_works(kernel)


def test_an_interrupted_statement_has_its_traceback_and_then_the_profile(kernel: Kernel) -> None:
    ran = kernel.interrupt_when("import time\n%mtprofile print('sleeping', flush=True); time.sleep(60)", "sleeping")

    assert (ran.status, ran.reply["ename"]) == ("error", "KeyboardInterrupt")
    assert _kinds(ran)[-2:] == ["error", "panel"]
    _assert_next_run_works(kernel)


def test_an_interrupt_while_the_panel_is_made_leaves_the_cell_well_and_the_profile_kept(kernel: Kernel) -> None:
    kernel.run(
        "import mtprof_nb.views.panel.show_panel as panel, time\n"
        "def slow(*args, **options):\n    print('making', flush=True)\n    time.sleep(60)\n"
        "true_show, panel.show = panel.show, slow"
    )
    try:
        ran = kernel.interrupt_when(f"%%mtprofile\n{OPS}\n5", "making")
    finally:
        kernel.run("panel.show = true_show")

    assert (ran.status, ran.traceback) == ("ok", "")
    assert "could not be delivered (KeyboardInterrupt" in ran.stderr
    assert kernel.value(HAS_MM) is True
    _assert_next_run_works(kernel)


@pytest.mark.parametrize("cell", [f"{OPS}\n5", f"{OPS}\n1 / 0"])
def test_a_panel_that_fails_is_told_in_one_line_and_the_cell_s_status_stands(kernel: Kernel, cell: str) -> None:
    plain = kernel.run(cell)
    kernel.run(
        "import mtprof_nb.views.panel.show_panel as panel\n"
        "def broken(*args, **options):\n    raise RuntimeError('no panel')\n"
        "true_show, panel.show = panel.show, broken"
    )
    try:
        ran = kernel.run(f"%%mtprofile\n{cell}")
    finally:
        kernel.run("panel.show = true_show")

    assert (ran.status, ran.reply.get("ename"), ran.result) == (plain.status, plain.reply.get("ename"), plain.result)
    assert len(ran.of("error")) == len(plain.of("error"))
    assert ran.stderr == (
        "mtprof_nb: the profile could not be shown (RuntimeError: no panel); mtprof_nb.last() has it\n"
    )
    assert kernel.value(HAS_MM) is True


def test_a_recording_that_cannot_be_finished_is_told_in_one_line(kernel: Kernel) -> None:
    kernel.run(
        "import mtprof_nb.capture.kineto.kineto_hook as kineto\n"
        "def broken(*args, **options):\n    raise RuntimeError('no trace')\n"
        "true_build, kineto.exported_trace = kineto.exported_trace, broken"
    )
    try:
        ran = kernel.run(f"%%mtprofile --hook kineto\n{OPS}\n5")
    finally:
        kernel.run("kineto.exported_trace = true_build")

    assert (ran.status, ran.result, ran.panels, ran.traceback) == ("ok", "5", [], "")
    assert ran.stderr.startswith("mtprof_nb: the recording could not be finished (RuntimeError: no trace)")
    assert ran.stderr.count("\n") == 1
    _assert_next_run_works(kernel)


def test_a_cell_under_torch_s_own_profiler_runs_unprofiled_and_says_so_in_one_line(kernel: Kernel) -> None:
    kernel.run("from torch.profiler import profile as torch_profile\ntheirs = torch_profile()\ntheirs.start()")
    try:
        ran = kernel.run(f"%%mtprofile -r --hook kineto\n{OPS}\n5")
    finally:
        kernel.run("theirs.stop()")

    assert (ran.status, ran.panels) == ("ok", [])
    assert ran.stderr.startswith("mtprof_nb: this cell is not profiled: ")
    assert "torch" in ran.stderr
    assert ran.stderr.count("\n") == 1
    assert kernel.value("'y' in globals()") is True
    # Theirs goes on unharmed.
    assert kernel.value("'aten::mm' in {event.name for event in theirs.events()}") is True
    _assert_next_run_works(kernel)


def test_a_profile_inside_a_profiled_cell_runs_unprofiled_and_the_outer_one_goes_on(kernel: Kernel) -> None:
    kernel.run(f"def f():\n    {OPS}")
    ran = kernel.run("%%mtprofile -o outer\nx = torch.zeros(1)\n%mtprofile -o inner f()\nz = torch.ones(1)\n5")

    assert (ran.status, ran.result, len(ran.panels)) == ("ok", "5", 1)
    assert ran.stderr.startswith("mtprof_nb: this cell is not profiled: profiler 'Cell [")
    assert ran.stderr.count("\n") == 1
    names = "{event.name for event in outer.events()}"
    assert kernel.value(f"{{'aten::zeros', 'aten::mm', 'aten::ones'}} <= {names}") is True
    assert kernel.value("'inner' in globals()") is False
    _assert_next_run_works(kernel)


def test_the_magic_twice_is_the_magic_once(kernel: Kernel) -> None:
    ran = kernel.run(f"%%mtprofile\n%%mtprofile\n{OPS}\n5")

    assert (ran.status, ran.result, len(ran.panels)) == ("ok", "5", 1)
    assert "is not profiled" in ran.stderr


def test_a_profile_of_the_user_s_own_inside_the_cell_is_refused_as_everywhere(kernel: Kernel) -> None:
    ran = kernel.run("%%mtprofile\nimport mtprof_nb\nwith mtprof_nb.profile():\n    pass")

    assert (ran.status, ran.reply["ename"]) == ("error", "SessionError")
    assert "is already active" in ran.reply["evalue"]
    _assert_next_run_works(kernel)


def test_torch_s_own_profiler_inside_the_cell_works_and_the_kernel_goes_on(kernel: Kernel) -> None:
    ran = kernel.run(f"%%mtprofile\nfrom torch.profiler import profile\nwith profile() as theirs:\n    {OPS}\n5")

    assert (ran.status, ran.result) == ("ok", "5")
    assert kernel.value("'aten::mm' in {event.name for event in theirs.events()}") is True
    _assert_next_run_works(kernel)


def test_a_hook_whose_runtime_is_missing_is_refused_before_the_cell_runs(kernel: Kernel) -> None:
    ran = kernel.run("%%mtprofile --hook candle\nran = True")

    assert (ran.reply["ename"], ran.traceback) == ("UsageError", "")
    assert "needs 'candle', which is not installed" in ran.stderr
    assert kernel.value("'ran' in globals()") is False


def test_unloading_inside_the_cell_still_ends_the_recording(kernel: Kernel) -> None:
    try:
        ran = kernel.run(f"%%mtprofile\n%unload_ext mtprof_nb\n{OPS}\n5")
    finally:
        kernel.run("%load_ext mtprof_nb")

    assert (ran.status, ran.result, len(ran.panels)) == ("ok", "5", 1)
    _assert_next_run_works(kernel)


def test_a_cell_whose_end_is_never_told_leaves_nothing_behind(kernel: Kernel) -> None:
    kernel.run(
        "events = get_ipython().events\n"
        "trigger = events.trigger\n"
        "def not_told(event, *args):\n"
        "    if event != 'post_run_cell':\n"
        "        return trigger(event, *args)\n"
        "    events.trigger = trigger"
    )
    lost = kernel.run("%%mtprofile\nimport torch\nevents.trigger = not_told\ntorch.ones(2).sum()")
    later = kernel.run("1 + 1")

    assert lost.status == later.status == "ok"
    assert later.result == "2"
    assert [kind for kind, _ in later.messages if kind == "display_data"] == []


def test_a_kernel_that_is_restarted_while_it_records_profiles_as_a_new_one(new_kernel: Kernel) -> None:
    imports = "%load_ext mtprof_nb\nimport torch"
    assert new_kernel.run(imports).status == "ok"
    endless = "%%mtprofile\nprint('begun')\nwhile True:\n    torch.ones(4).neg()"
    new_kernel.run_until(endless, "begun")
    new_kernel.manager.shutdown_wait_time = 1.0
    new_kernel.manager.restart_kernel()
    new_kernel.client.wait_for_ready(timeout=TIMEOUT_S)

    assert new_kernel.run(imports).status == "ok"
    ran = new_kernel.run("%%mtprofile\nx = torch.ones(4).neg()")

    assert (ran.status, ran.stderr, len(ran.panels)) == ("ok", "", 1)
    assert new_kernel.last("[event.name for event in prof.events()].count('aten::neg')") == 1
