"""Calls the C++ compiler on the sources of the recorder."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from mtprof_nb.capture.native.recorder_key import FLAGS, RecorderKey
from mtprof_nb.errors import BuildError

_COMPILERS = ("c++", "g++", "clang++")
#: Some thirty times what a build takes; a compiler that hangs must not hold its lock forever.
TIMEOUT_S = 900
#: On macOS, `/usr/bin/c++` only opens a dialog if neither of these is installed.
_APPLE_TOOLS = (Path("/Library/Developer/CommandLineTools"), Path("/Applications/Xcode.app"))


def find_compiler() -> list[str]:
    """The command of the C++ compiler: `$CXX`, or the first one found; `BuildError` without one."""
    if sys.platform == "win32":
        msg = "the native recorder cannot be built on Windows: hook 'kineto' records there"
        raise BuildError(msg)
    chosen = shlex.split(os.environ.get("CXX", ""))
    if chosen and shutil.which(chosen[0]) is None:
        msg = f"CXX names {chosen[0]!r}, which is not on PATH: set CXX to a C++ compiler, or unset it"
        raise BuildError(msg)
    first = next((path for name in _COMPILERS if (path := shutil.which(name)) and not _is_dialog(path)), None)
    if not chosen and first is None:
        msg = "no C++ compiler: install g++ or clang++ (Debian: apt-get install g++), or name one in CXX"
        raise BuildError(msg)
    return chosen or [str(first)]


def _is_dialog(path: str) -> bool:
    return sys.platform == "darwin" and path.startswith("/usr/bin/") and not any(map(Path.exists, _APPLE_TOOLS))


def include_folders(key: RecorderKey) -> list[Path]:
    """The folders with the headers of torch and Python; `BuildError` if some are missing."""
    torch, python = key.torch / "include", Path(sysconfig.get_path("include"))
    if not (torch / "ATen/record_function.h").exists():
        msg = f"PyTorch's headers are not in {str(torch)!r}: install a build of PyTorch that has them, such as pip's"
        raise BuildError(msg)
    if not (python / "Python.h").exists():
        msg = f"Python's headers are not in {str(python)!r}: install them (Debian: apt-get install python3-dev)"
        raise BuildError(msg)
    return [torch, python]


def compile_recorder(key: RecorderKey, target: Path, log: Path) -> None:
    """Write the compiled extension to `target`, and the compiler's output to `log`; `BuildError` if it fails.

    It records devices, unless this build of torch has no Kineto that can be used from C++.
    """
    kineto = key.torch / "include" / "kineto"
    try:
        _compile_and_load(key, target, log, kineto)
    except BuildError:
        if not kineto.exists() or not re.search("kineto|fmt", _first_error(log)):
            raise
        _compile_and_load(key, target, log, None)


def _compile_and_load(key: RecorderKey, target: Path, log: Path, kineto: Path | None) -> None:
    _run(_command(key, target, kineto), log, "could not be compiled")
    load = "from mtprof_nb.capture.native.recorder_loading import import_binary"
    _run(python_command(f"import torch; {load}; import_binary({str(target)!r})"), log, "cannot be loaded")


def python_command(statement: str) -> list[str]:
    """The command that runs `statement` in another Python process.

    The process has the same import path, so that it finds the same torch and the same package.
    """
    path = [entry or os.getcwd() for entry in sys.path]  # noqa: PTH109
    return [sys.executable, "-c", f"import sys; sys.path[:] = {path!r}; {statement}"]


def _command(key: RecorderKey, target: Path, kineto: Path | None) -> list[str]:
    import torch

    return [
        *find_compiler(),
        *FLAGS,
        # As torch itself: with assertions its objects have another layout.
        *([] if torch.version.debug else ["-DNDEBUG"]),
        f"-std={_standard(key)}",
        f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}",
        *(f"-I{folder}" for folder in include_folders(key)),
        # A header of Kineto's uses fmt, of which torch exports nothing.
        *(["-DMTPROF_NO_KINETO"] if kineto is None else [f"-I{kineto}", "-DFMT_HEADER_ONLY"]),
        *(str(path) for path in key.sources if path.suffix == ".cpp"),
        *("-o", str(target)),
        *_linking(key),
    ]


def _standard(key: RecorderKey) -> str:
    """The version of C++ with which torch's own tool compiles extensions, which its headers may need."""
    text = (key.torch / "utils" / "cpp_extension.py").read_text(encoding="utf-8")
    match = re.search(r"-std=(c\+\+\d\d)", text)
    return match.group(1) if match else "c++17"


def _linking(key: RecorderKey) -> list[str]:
    if sys.platform == "darwin":
        return ["-bundle", "-undefined", "dynamic_lookup"]
    # No path to the libraries is needed later: torch has loaded them before the recorder is.
    return ["-shared", f"-L{key.torch / 'lib'}", "-lc10", "-ltorch_cpu"]


def _run(command: list[str], log: Path, problem: str) -> None:
    with log.open("a", encoding="utf-8") as file:
        file.write(f"{shlex.join(command)}\n")
        file.flush()
        try:
            status: object = subprocess.run(  # noqa: S603
                command, stdin=subprocess.DEVNULL, stdout=file, stderr=file, timeout=TIMEOUT_S, check=False
            ).returncode
        except (OSError, subprocess.TimeoutExpired) as error:
            status = error
        file.write(f"-> {status}\n")
    if status != 0:
        remedy = f"see {str(log)!r}; mtprof_nb.build_recorder() tries again"
        msg = f"the native recorder {problem} ({_first_error(log)}): {remedy}"
        raise BuildError(msg)


def _first_error(log: Path) -> str:
    lines = [line.strip() for line in log.read_text(encoding="utf-8", errors="replace").splitlines()]
    error = next((line for line in lines[1:] if re.search(r"\berror\b|Error", line)), lines[-1])
    return error.replace(f"{log.parent}{os.sep}", "")[:200]
