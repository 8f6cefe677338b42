"""A device behind the real Kineto of the installed torch, on a machine without one.

`device()` compiles and loads it. Ops of a thread in `device().on()` launch what `plan` says, inside the op. All lengths
are known: `truth()` tells what was launched by which op, on which thread.
"""

from __future__ import annotations

import hashlib
import importlib.machinery
import importlib.util
import os
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from mtprof_nb.capture.native.compiler import find_compiler
from mtprof_nb.capture.native.recorder_cache import cache_folder
from mtprof_nb.errors import BuildError

SOURCE = Path(__file__).parent
#: Torch's number of the device type CUDA.
CUDA = 1


class Work(NamedTuple):
    """One event on the device: Kineto's name of its activity, its name, length, and place."""

    name: str
    ns: int = 1_000
    stream: int = 7
    activity: str = "kernel"
    nbytes: int = 0
    index: int = 0

    @property
    def parts(self) -> tuple[str, str, int, int, int, int]:
        """In the order of the C++ code."""
        return self.activity, self.name, self.ns, self.index, self.stream, self.nbytes


class Launched(NamedTuple):
    """A launch that took place: by which op ("" outside ops), on which thread, and names and lengths of its works."""

    correlation: int
    op: str
    thread: int
    works: list[tuple[str, int, int, int]]


class SimulatedDevice:
    """The device of this process."""

    def __init__(self, module: Any) -> None:
        self._module = module
        self.report_memory = module.report_memory
        self.settings = module.settings
        self.asked_for = module.asked_for

    def reset(self, runtime: str = "cuda_runtime") -> None:
        """Forget plans and settings. Calls are of the activity `runtime` from now on."""
        self._module.install(runtime)
        self._module.forget()

    def plan(self, op: str, *works: Work, call: str = "cudaLaunchKernel") -> None:
        """Let each call of an op, such as `aten::mm`, launch `works` from now on."""
        self._module.plan(op, call, [work.parts for work in works])

    def launch(self, *works: Work, call: str = "cudaLaunchKernel", times: int = 1) -> None:
        """Launch here and now."""
        self._module.launch(call, [work.parts for work in works], times)

    def all_reduce(self, elements: int, work: Work) -> None:
        """Launch the kernel of a collective inside an op that has its facts."""
        self._module.all_reduce("cudaLaunchKernelExC", [work.parts], elements)

    @contextmanager
    def on(self) -> Iterator[None]:
        """Let ops of this thread launch what is planned for them."""
        self._module.set_mode(True)
        try:
            yield
        finally:
            self._module.set_mode(False)

    def truth(self) -> list[Launched]:
        """The launches of the last session of Kineto, in order."""
        return [Launched(*one) for one in self._module.truth()]


@lru_cache(maxsize=1)
def device() -> SimulatedDevice:
    """The device, compiled if need be; `BuildError` without a compiler or torch's headers of Kineto."""
    import torch  # noqa: F401 - its libraries must be loaded before the module that needs them

    os.environ.setdefault("KINETO_LOG_LEVEL", "6")
    path = str(_built())
    loader = importlib.machinery.ExtensionFileLoader("_simulated_device", path)
    spec = importlib.machinery.ModuleSpec("_simulated_device", loader, origin=path)
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    made = SimulatedDevice(module)
    made.reset()
    return made


def _built() -> Path:
    import torch

    root = Path(torch.__file__).parent
    if not (root / "include/kineto/libkineto.h").exists():
        msg = f"Kineto's headers are not in {str(root)!r}: install a build of PyTorch that has them, such as pip's"
        raise BuildError(msg)
    texts = [path.read_bytes() for path in _sources()]
    key = hashlib.sha256(b"\0".join([torch.__version__.encode(), sys.version.encode(), *texts])).hexdigest()[:16]
    target = cache_folder().parent / "simulated_device" / f"{key}.so"
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        _compile(root, target, cxx11=torch.compiled_with_cxx11_abi())
    return target


def _sources() -> Sequence[Path]:
    return sorted(path for path in SOURCE.iterdir() if path.suffix in (".h", ".cpp"))


def _compile(torch: Path, target: Path, *, cxx11: bool) -> None:
    includes = [torch / "include", torch / "include/kineto", torch / "include/torch/csrc/api/include"]
    includes.append(Path(sysconfig.get_path("include")))
    standard = "c++20" if "-std=c++20" in (torch / "utils/cpp_extension.py").read_text(encoding="utf-8") else "c++17"
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        made = Path(folder) / "made.so"
        command = [
            *find_compiler(),
            *("-O1", "-fPIC", "-shared", f"-std={standard}", "-DNDEBUG", "-DFMT_HEADER_ONLY"),
            *("-DUSE_C10D", "-DUSE_DISTRIBUTED", f"-D_GLIBCXX_USE_CXX11_ABI={int(cxx11)}"),
            *(f"-I{folder}" for folder in includes),
            *map(str, (path for path in _sources() if path.suffix == ".cpp")),
            *("-o", str(made), f"-L{torch / 'lib'}", "-lc10", "-ltorch_cpu"),
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            msg = f"the simulated device could not be compiled: {done.stderr[-2000:]}"
            raise BuildError(msg)
        made.replace(target)
