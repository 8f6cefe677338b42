"""`mtprof run`: a program runs as Python itself would run it, and its profile goes to stderr and to a file."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from recording import NATIVE

import mtprof_nb as mtp

RUN = [sys.executable, "-m", "mtprof_nb", "run"]
Ran = subprocess.CompletedProcess


def ran(folder: Path, *command: str, **environment: str) -> Ran[str]:
    path = os.pathsep.join([str(Path(mtp.__file__).parent.parent), os.environ.get("PYTHONPATH", "")])
    variables = os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1"} | environment
    return subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, check=False, timeout=300)


def outcome(process: Ran[str]) -> tuple[int, str, str]:
    return process.returncode, process.stdout, process.stderr


WORLD = """
import json, pickle, sys
main = sys.modules["__main__"]
class Thing: pass
class Names(dict): pass
names = ("__name__", "__file__", "__package__", "__cached__", "__doc__", "__annotations__")
spec = main.__spec__ and (main.__spec__.name, main.__spec__.parent)
print(json.dumps([{name: globals()[name] for name in names}, spec, type(main.__loader__).__name__]))
print(json.dumps([sys.argv, sys.path[0], Thing.__module__, vars(main) is globals(), __builtins__.len([])]))
print(type(pickle.loads(pickle.dumps(Thing()))) is Thing, {"IPython", "torch", "pandas"} & set(sys.modules))
"""


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A folder with a script below it, a module, and a package that can be run."""
    for folder in ("scripts", "package"):
        (tmp_path / folder).mkdir()
    (tmp_path / "package/__init__.py").write_text("")
    for file in ("scripts/world.py", "module.py", "package/__main__.py", "package/inner.py"):
        (tmp_path / file).write_text(f'"""{file}"""\nfrom __future__ import annotations\n{WORLD}')
    (tmp_path / "link.py").symlink_to("scripts/world.py")
    return tmp_path


@pytest.mark.parametrize(
    "program",
    [
        ("scripts/world.py", "--all", "-o", "--", "-m", "x y"),
        ("link.py",),
        ("-m", "module", "--with-stack", "x"),
        ("-m", "package"),
        ("-m", "package.inner"),
    ],
)
def test_a_program_sees_what_it_sees_under_python(programs: Path, program: tuple[str, ...]) -> None:
    plain = ran(programs, sys.executable, *program)

    assert plain.returncode == 0, plain.stderr
    assert outcome(ran(programs, *RUN, "-q", *program)) == outcome(plain)


ENDINGS = {
    "last line": "print('done')",
    "exit": "import sys; sys.exit(3)",
    "exit without a status": "raise SystemExit",
    "exit with a large status": "raise SystemExit(-1)",
    "exit with a message": "import sys; sys.exit('no such thing')",
    "exception": "def f(x):\n    return 1 / x\nf(0)",
    "chained": "try:\n    1 / 0\nexcept ZeroDivisionError as error:\n    raise ValueError('no') from error",
    "interrupt": "raise KeyboardInterrupt",
    "signal": "import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(60)",
    "syntax": "x = 1\ny = = 2",
    "hook": "import sys\nsys.excepthook = lambda *failure: print('caught', failure[1])\n1 / 0",
    "at exit": "import atexit; atexit.register(print, 'last'); print('first'); raise KeyboardInterrupt",
    "missing import": "import no_such_module",
    "nothing": "",
    "only a docstring": '"""Nothing."""',
    "closed": "import sys; sys.stderr.close(); sys.exit(4)",
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_program_ends_as_it_ends_under_python(tmp_path: Path, ending: str) -> None:
    (tmp_path / "script.py").write_text(ENDINGS[ending])
    plain = ran(tmp_path, sys.executable, "script.py")

    assert outcome(ran(tmp_path, *RUN, "-q", "script.py")) == outcome(plain)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_forked_child_that_ends_last_leaves_the_recording_of_its_parent(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(
        "import os, sys, time\n"
        "parent = os.getpid()\n"
        "if os.fork() == 0:\n"
        "    while os.getppid() == parent:\n"
        "        time.sleep(0.01)\n"
        "    sys.exit(5)\n"
        "import torch\n"
        "torch.ones(3)\n"
    )
    process = ran(tmp_path, *RUN, "-o", "run.mtp", "script.py")  # until the child has closed its output

    assert (process.returncode, process.stderr.count("script.py\n"), "status 5" in process.stderr) == (0, 1, False)
    assert "aten::ones" in {event.name for event in mtp.load(tmp_path / "run.mtp").events()}


def test_a_recording_is_saved_where_the_program_began_and_needs_no_output(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text("import os, sys; os.chdir('/'); sys.stderr.close()")
    process = ran(tmp_path, *RUN, "-o", "run.mtp", "script.py")

    assert (process.returncode, (tmp_path / "run.mtp").exists()) == (0, True)


def test_an_interrupt_ends_it_by_the_signal_and_still_shows_the_profile(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(ENDINGS["signal"])
    process = ran(tmp_path, *RUN, "-o", "run.mtp", "script.py")

    assert process.returncode == -signal.SIGINT
    assert "line 2, in <module>" in process.stderr
    assert "interrupted: recorded until then" in process.stderr
    assert sorted(line.line for line in mtp.load(tmp_path / "run.mtp").lines()) == [1, 2]


def test_a_reader_that_stops_reading_the_profile_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text("")
    shell = ran(tmp_path, "bash", "-c", f"{shlex.join(RUN)} script.py 2>&1 >/dev/null | false; echo ${{PIPESTATUS[0]}}")

    assert outcome(shell) == (0, "0\n", "")


TRAINING = """
from __future__ import annotations
import torch
from layers import double

def loss_of(x):
    y = double(x)
    return y.square().mean()

if __name__ == "__main__":
    x = torch.ones(8, 8, requires_grad=True)
    loss_of(x).backward()
    print("trained")
"""
LAYERS = """
def double(x):
    doubled = x.exp()
    return doubled
"""


@pytest.fixture
def training(tmp_path: Path) -> Path:
    (tmp_path / "train.py").write_text(TRAINING)
    (tmp_path / "layers.py").write_text(LAYERS)
    return tmp_path


def lines_of_ops(recording: mtp.Recording, op: str) -> set[tuple[str, int]]:
    frames = recording.lines().to_dataframe()
    assert len(frames)
    trace = recording.trace
    rows = [row for row, name in enumerate(trace.name.tolist()) if trace.names[name] == op]
    assert trace.line is not None
    found = {trace.lines[trace.line[row]] for row in rows}
    return {(Path(line.file).name, line.line) for line in found}


def test_the_tables_go_to_stderr_and_the_recording_has_the_lines_of_the_script(training: Path) -> None:
    process = ran(training, *RUN, "-o", "run.mtp", "-T", "table.txt", "-H", "page.html", "--name", "my run", "train.py")
    recording = mtp.load(training / "run.mtp")

    assert (process.returncode, process.stdout) == (0, "trained\n")
    assert process.stderr.startswith("my run\n")
    assert "train.py:8" in process.stderr
    assert "aten::pow" in process.stderr
    assert "aten::pow" in (training / "table.txt").read_text()
    assert "<title>my run</title>" in (training / "page.html").read_text()
    assert recording.name == "my run"
    assert lines_of_ops(recording, "aten::mean") == {("train.py", 8)}
    assert lines_of_ops(recording, "aten::exp") == {("train.py", 7)}, "the line that calls the other module"
    assert recording.trace.sources[str(training / "train.py")].splitlines() == TRAINING.splitlines()


@pytest.mark.parametrize("hook", [NATIVE])
def test_a_script_that_imports_torch_is_recorded_with_everything_but_what_is_switched_off(
    hook: str, training: Path
) -> None:
    process = ran(training, *RUN, "-q", "--no-with-flops", "-o", "run.mtp", "train.py")
    trace = mtp.load(training / "run.mtp").trace

    assert outcome(process) == (0, "trained\n", "")
    assert hook in trace.hooks
    recorded = trace.recorded
    assert (recorded.with_stack, recorded.record_shapes, recorded.profile_memory, recorded.with_modules) == (True,) * 4
    assert not recorded.with_flops
    event = next(event for event in mtp.load(training / "run.mtp").events() if event.name == "aten::exp")
    assert event.input_shapes == [[8, 8]]
    assert event.stack[0] == f"{training / 'layers.py'}:3:double"
    assert event.cpu_memory_usage == 256


def test_stacks_of_a_script_begin_with_its_own_frames(training: Path) -> None:
    process = ran(training, *RUN, "--with-stack", "-q", "-o", "run.json", "-m", "train")
    exported = (training / "run.json").read_text()

    assert (process.returncode, process.stdout, process.stderr) == (0, "trained\n", "")
    exp = exported[exported.index('"aten::exp"') :]
    stack = exp[exp.index('"stack"') : exp.index("]", exp.index('"stack"'))]
    frames = [f"{training / 'layers.py'}:3:double", f"{training / 'train.py'}:7:loss_of", "train.py:12:<module>"]
    assert [stack.count(frame) for frame in frames] == [1, 1, 1]
    assert "mtprof_nb" not in stack
    assert "runpy" not in stack


def test_threads_are_recorded_until_they_end_and_idle_pools_are_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(
        "import threading, time\n"
        "from concurrent.futures import ThreadPoolExecutor\n"
        "import mtprof_nb as mtp\n"
        "def work():\n"
        "    time.sleep(0.2)\n"
        "    with mtp.record_function('late'):\n"
        "        print('worked')\n"
        "pool = ThreadPoolExecutor(1)\n"
        "pool.submit(int).result()\n"
        "threading.Thread(target=work).start()\n"
        "raise SystemExit(5)\n"
    )
    process = ran(tmp_path, *RUN, "-q", "-o", "run.mtp", "script.py")

    assert outcome(process) == (5, "worked\n", "")
    assert "late" in mtp.load(tmp_path / "run.mtp").trace.names


def test_a_schedule_records_the_steps_of_the_script(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(
        "import mtprof_nb as mtp\n"
        "for step in range(6):\n"
        "    with mtp.record_function(f'step {step}'):\n"
        "        pass\n"
        "    mtp.step()\n"
    )
    schedule = "wait=1,warmup=1,active=2,repeat=1"
    process = ran(tmp_path, *RUN, "-q", "--schedule", schedule, "-o", "run.mtp", "script.py")

    assert process.returncode == 0, process.stderr
    names = mtp.load(tmp_path / "run.mtp").trace.names
    assert [name for name in names if name.startswith("step ")] == ["step 2", "step 3"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["no.py"], "cannot open 'no.py' (No such file or directory)"),
        (["."], "cannot open '.' (Is a directory)"),
        (["-m", "no_such"], "no module named 'no_such'"),
        (["-m", "no_such.inner"], "no module named 'no_such.inner'"),
        (["-m", "email"], "'email' is a package without a module __main__"),
        (["-m", "math"], "module 'math' has no Python source"),
        (["--al", "no.py"], "unrecognized arguments: --al (did you mean --all?"),
        (["-o", "run.txt", "no.py"], "'run.txt' has no known suffix"),
        (["--limit", "0", "no.py"], "'0' is not a count"),
        ([], "the following arguments are required: script ("),
    ],
)
def test_a_mistake_is_one_line_and_status_2(tmp_path: Path, arguments: list[str], message: str) -> None:
    process = ran(tmp_path, *RUN, *arguments)

    assert (process.returncode, process.stdout, process.stderr.count("\n")) == (2, "", 1)
    assert message in process.stderr
    assert process.stderr.startswith("python -m mtprof_nb run: ")


def test_a_hook_that_is_missing_is_one_line_and_status_1_before_the_script_runs(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text("print('ran')")
    process = ran(tmp_path, *RUN, "--hook", "candle", "script.py")

    assert (process.returncode, process.stdout, process.stderr.count("\n")) == (1, "", 1)
    assert "hook 'candle' needs 'candle', which is not installed" in process.stderr


@pytest.mark.parametrize(("own", "status"), [(0, 1), (7, 7)])
def test_a_recording_that_cannot_be_saved_is_one_line_and_keeps_a_failing_status(
    tmp_path: Path, own: int, status: int
) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "script.py").write_text(f"import os, sys; os.rmdir('full'); sys.exit({own})")
    process = ran(tmp_path, *RUN, "-q", "-o", "full/run.mtp", "script.py")

    assert process.returncode == status
    assert process.stderr.count("\n") == 1
    target = tmp_path / "full" / "run.mtp"
    assert process.stderr.startswith(f"mtprof_nb: cannot write '{target}': its folder does not exist")
