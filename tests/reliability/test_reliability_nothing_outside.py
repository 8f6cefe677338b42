"""No pickle, no evaluation of text, no server or port, and no file but those that the user named.

The one exception is the build of the native recorder, which calls a compiler and writes to the user's cache folder.
"""

import ast
import json
import subprocess
import sys
from pathlib import Path

import mtprof_nb as mtp

PACKAGE = Path(mtp.__file__).parent
#: Calls that run text, load objects, or listen; what may stand in one file, and why.
REFUSED_CALLS = {
    *("eval", "exec", "compile", "__import__", "loads", "system", "popen", "Popen", "run_path"),
    *("bind", "listen", "create_server", "start_server", "serve_forever", "urlopen"),
}
ALLOWED = {
    ("cell/statement.py", "exec"): "the line magic runs the statement that the user typed",
    ("cell/statement.py", "eval"): "the same, for its value",
    ("cell/statement.py", "compile"): "the same",
    ("cli/script.py", "exec"): "`mtprof run` runs the script that the user names",
    ("cli/script.py", "compile"): "the same",
    ("capture/kineto/kineto_inputs.py", "loads"): "marshal, on bytes made one line above",
    ("capture/marks/mark_costs.py", "exec"): "statements of its own file that do nothing, to know what a mark costs",
    ("capture/marks/mark_costs.py", "compile"): "those statements",
}
REFUSED_IMPORTS = {
    *("pickle", "_pickle", "shelve", "dill", "cloudpickle", "socket", "socketserver", "http", "urllib", "requests"),
    *("tempfile", "subprocess", "multiprocessing", "xmlrpc", "ftplib", "smtplib", "webbrowser", "asyncio"),
}
#: The compiler, and the process in which it runs behind a notebook.
ALLOWED_IMPORTS = {
    ("capture/native/compiler.py", "subprocess"),
    ("capture/native/recorder_build.py", "subprocess"),
    ("capture/kineto/exported_trace.py", "tempfile"),
}


def trees() -> dict[str, ast.Module]:
    return {path.relative_to(PACKAGE).as_posix(): ast.parse(path.read_text()) for path in PACKAGE.rglob("*.py")}


def called(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def owner(node: ast.Call) -> str:
    return getattr(node.func.value, "id", "") if isinstance(node.func, ast.Attribute) else ""


def test_no_file_of_the_package_runs_text_loads_objects_or_listens() -> None:
    found = {
        (file, called(node))
        for file, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and called(node) in REFUSED_CALLS and owner(node) not in ("json", "re")
    }
    assert found <= set(ALLOWED), found - set(ALLOWED)


def test_no_file_of_the_package_imports_what_could_reach_outside() -> None:
    found = set()
    for file, tree in trees().items():
        for node in ast.walk(tree):
            modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            modules += [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
            found |= {(file, name) for name in modules if name.partition(".")[0] in REFUSED_IMPORTS}
    assert found == ALLOWED_IMPORTS


PROGRAM = """
import json, os, sys
import torch, IPython, ipywidgets, anywidget, plotly.graph_objects  # what is loaded already is not at issue
import mtprof_nb as mtp

opened, refused = [], []
def audit(event, arguments):
    if event == "open" and isinstance(arguments[0], (str, bytes, os.PathLike)):
        mode, flags = arguments[1], arguments[2] or 0
        if (mode and set(mode) & set("wax+")) or flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            opened.append(os.path.basename(os.fsdecode(arguments[0])))
    elif event.startswith(("socket.", "subprocess.", "os.system", "os.exec", "os.posix_spawn", "pickle.", "urllib.")):
        refused.append(event)
sys.addaudithook(audit)

def train(**options):
    model = torch.nn.Linear(4, 4)
    with mtp.profile(record_shapes=True, profile_memory=True, with_stack=True, with_modules=True, **options) as prof:
        model(torch.ones(2, 4)).sum().backward()
    return prof

for hook in ("kineto",):
    prof = train(hook=hook)
    prof.show()
    prof.key_averages(group_by_input_shape=True, group_by_stack_n=3).table()
    prof.timeline(); prof.sunburst(); prof.icicle(); prof.memory(); prof.operators(); prof.lines()
    from mtprof_nb.views.panel import show_panel as panel
    panel.panel(prof.trace)._repr_mimebundle_()
assert sorted(os.listdir()) == [], os.listdir()
prof.export_chrome_trace("trace.json")
prof.export_stacks("stacks.txt")
prof.export_memory_timeline("memory.html")
print(json.dumps([sorted(os.listdir()), refused, [name for name in opened if ".pyc" not in name]]))
"""


def test_a_session_with_its_views_writes_only_what_it_was_told_to(tmp_path: Path) -> None:
    home, folder = tmp_path / "home", tmp_path / "cwd"
    home.mkdir()
    folder.mkdir()
    environment = {"HOME": str(home), "PATH": "", "OMP_NUM_THREADS": "1", "TMPDIR": str(home)}
    command = [sys.executable, "-W", "ignore", "-c", PROGRAM]
    ran = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=300)
    assert ran.returncode == 0, ran.stderr
    files, refused, opened = json.loads(ran.stdout.splitlines()[-1])
    assert files == ["memory.html", "stacks.txt", "trace.json"]
    assert refused == []
    # Beside each of the three, the temporary that becomes it.
    assert len(opened) == 3
    assert all(name.startswith(".mtprof-") for name in opened)
