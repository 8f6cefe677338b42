"""Loading, unloading, and a kernel in which no tensor runtime has been imported yet."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Kernel

STATE = """
(lambda ip: (
    [repr(t).split(' at ')[0] for t in ip.input_transformers_cleanup],
    [repr(t).split(' at ')[0] for t in ip.input_transformers_post],
    [repr(t).split(' at ')[0] for t in ip.ast_transformers],
    sorted(ip.magics_manager.magics['line']), sorted(ip.magics_manager.magics['cell']),
    sorted(set(ip.magics_manager.registry) - {'ExtensionMagics'}),
    [repr(m).split(' at ')[0] for m in ip.Completer.custom_matchers],
    sorted(ip.strdispatchers['complete_command'].strs),
    {event: len(callbacks) for event, callbacks in ip.events.callbacks.items()},
    sorted(name for name in vars(__import__('builtins')) if 'mtprof' in name),
    sorted(n for n in ip.user_ns if not n.startswith('_')),
))(get_ipython())
""".replace("\n", " ")


@pytest.fixture
def bare(new_kernel: Kernel) -> Kernel:
    """A kernel without torch, with the extension loaded."""
    ran = new_kernel.run("%load_ext mtprof_nb")
    assert (ran.status, ran.messages) == ("ok", [])
    return new_kernel


def test_loading_is_silent_and_idempotent_and_unloading_undoes_it_all(new_kernel: Kernel) -> None:
    before = new_kernel.value(STATE)
    loaded = new_kernel.run("%load_ext mtprof_nb")
    once = new_kernel.value(STATE)
    new_kernel.run("import mtprof_nb\nmtprof_nb.load_ipython_extension(get_ipython())\ndel mtprof_nb")
    twice = new_kernel.value(STATE)
    reloaded = new_kernel.run("%reload_ext mtprof_nb")
    thrice = new_kernel.value(STATE)
    unloaded = new_kernel.run("%unload_ext mtprof_nb")

    assert (loaded.messages, reloaded.messages, unloaded.messages) == ([], [], [])
    assert before != once == twice == thrice
    assert new_kernel.value(STATE) == before
    assert new_kernel.run("%unload_ext mtprof_nb").status == "ok"
    assert "Cell magic `%%mtprofile` not found" in new_kernel.run("%%mtprofile\nx = 1").stderr
    assert new_kernel.run("%load_ext mtprof_nb").messages == []
    assert new_kernel.value(STATE) == once
    assert new_kernel.value("'torch' in __import__('sys').modules") is False


def test_a_cell_that_imports_torch_itself_has_its_ops_recorded(bare: Kernel) -> None:
    ran = bare.run("%%mtprofile --all -o prof\nimport torch\nx = torch.ones(2, 2)\ny = x.mm(x)\ny.sum().item()")

    assert (ran.status, ran.result, len(ran.panels), ran.stderr) == ("ok", "8.0", 1, "")
    assert {"aten::ones", "aten::mm", "aten::sum"} <= set(bare.ops())
    stack = bare.value("list(next(e for e in prof.events() if e.name == 'aten::mm').stack)")
    assert [frame.split(":", 1)[1] for frame in stack] == ["4:<module>"]
    assert bare.value("type(torch.__spec__.loader).__name__") == "SourceFileLoader"
    assert bare.value("[f for f in __import__('sys').meta_path if 'mtprof' in repr(f)]") == []


def test_torch_may_come_by_way_of_another_module_after_a_cell_without_it(bare: Kernel, tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(
        "import torch\nweight = torch.ones(2, 2)\ndef run():\n    return weight.mm(weight)\n"
    )
    first = bare.run("%%mtprofile -q\nx = 1\nx")
    shown = bare.run("%%mtprofile\nx = 1")
    second = bare.run(
        f"%%mtprofile -q\nimport sys\nsys.path.insert(0, {str(tmp_path)!r})\nfrom model import run\nrun();"
    )

    assert (first.status, first.result) == ("ok", "1")
    assert first.stderr.startswith("mtprof_nb: no tensor runtime is imported, so only scopes were recorded")
    assert first.stderr.count("\n") == 1
    # Where there is a panel, the panel says it.
    assert (shown.stderr, len(shown.panels)) == ("", 1)
    assert "no tensor runtime is imported" in shown.panels[0]["text/plain"]
    assert (second.status, second.stderr) == ("ok", "")
    assert "aten::mm" in bare.ops()


def test_scopes_are_recorded_where_no_runtime_is_and_a_failed_import_is_the_user_s(bare: Kernel) -> None:
    ran = bare.run(
        "%%mtprofile -q\nimport mtprof_nb\nwith mtprof_nb.record_function('mine'):\n    import torch.nosuchmodule"
    )

    assert (ran.status, ran.reply["ename"]) == ("error", "ModuleNotFoundError")
    assert "mtprof_nb" not in ran.traceback.replace("import mtprof_nb", "").replace("mtprof_nb.record_function", "")
    assert bare.value("[e.name for e in mtprof_nb.last().events() if e.kind == 'scope']") == ["mine"]
