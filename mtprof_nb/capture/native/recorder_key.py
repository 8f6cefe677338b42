"""The identity of a compiled recorder: torch, Python, platform, and a hash of everything that it is compiled from."""

from __future__ import annotations

import hashlib
import re
import sys
import sysconfig
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path

SOURCE = Path(__file__).parent / "source"
#: Flags of every build; `compiler.py` adds those that depend on torch, and the paths.
FLAGS = ("-O2", "-fPIC", "-fvisibility=hidden")
#: Libraries whose sizes distinguish two builds of one version of torch, such as those of pip and of conda.
_LIBRARIES = ("libc10", "libtorch_cpu")


@dataclass(frozen=True)
class RecorderKey:
    """An installed torch, by its folder and version, and the recorder that fits it."""

    torch: Path
    torch_version: str

    @cached_property
    def family(self) -> str:
        """The part of the name that recorders of this torch and this Python share, whatever their source."""
        return f"torch{self.torch_version}-{sysconfig.get_config_var('SOABI') or sys.implementation.cache_tag}-"

    @cached_property
    def name(self) -> str:
        """The name of the fitting recorder, without a suffix."""
        return f"{self.family}{self._hash()}"

    @cached_property
    def sources(self) -> list[Path]:
        """The files of `SOURCE` and its folders, headers included."""
        return sorted(path for path in SOURCE.rglob("*") if path.suffix in (".cpp", ".h"))

    def _hash(self) -> str:
        # Headers that Python calls internal may differ between two of its patch releases.
        parts = [sys.version, *FLAGS, (self.torch / "version.py").read_text(encoding="utf-8")]
        for library in _LIBRARIES:
            parts += [str(path.stat().st_size) for path in sorted((self.torch / "lib").glob(f"{library}.*"))]
        for path in self.sources:
            parts += [path.relative_to(SOURCE).as_posix(), path.read_text(encoding="utf-8")]
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def key_of_installed_torch() -> RecorderKey | None:
    """The key for the torch that this process has imported or would import; None without one."""
    try:
        spec = find_spec("torch")
        if spec is None or spec.origin is None:
            return None
        torch = Path(spec.origin).parent
        version = re.search(r"__version__ = ['\"]([\w.+-]+)", (torch / "version.py").read_text(encoding="utf-8"))
    except (ValueError, ImportError, OSError):
        return None
    return RecorderKey(torch, version.group(1)) if version else None
