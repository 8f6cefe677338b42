"""Figures 8: the import of the package and of the parts that come later, beside `import torch`."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import partial

from benchmarks.child import ENVIRONMENT, ROOT
from benchmarks.figure import Figure, at_most
from benchmarks.sampling import Sample, Scale, in_turns

GROUP = "8 import"
#: What is imported, and what is there already where it is first needed.
_PARTS: dict[str, tuple[str, ...]] = {
    "import mtprof_nb": ("mtprof_nb",),
    "and profile": ("mtprof_nb.profiler",),
    "and key_averages": ("mtprof_nb.tables.averages",),
    "and the magic, in IPython": ("mtprof_nb.magic", "IPython"),
    "and the panel, in a kernel": ("mtprof_nb.views.panel.widget", "IPython", "ipywidgets"),
}
# Bare, so that no module of the standard library is there before it is needed.
_CODE = """
{there}
from time import process_time_ns
began = process_time_ns()
import {module}
print(process_time_ns() - began)
"""


def figures(scale: Scale) -> list[Figure]:
    """Each import in a fresh interpreter."""
    ways = {title: partial(measure, *modules) for title, modules in _PARTS.items()}
    ways["import torch"] = partial(measure, "torch")
    rounds = in_turns(ways, scale, scale.share(0.04))
    bounds = {"import mtprof_nb": at_most(0.15)}
    return [rounds.figure(GROUP, title, title, "import torch", "imported", bound=bounds.get(title)) for title in _PARTS]


def measure(module: str, *there: str) -> Sample:
    """Processor time of importing `module` in a new process, where `there` are imported already."""
    code = _CODE.format(module=module, there="\n".join(f"import {name}" for name in there))
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env={**os.environ, **ENVIRONMENT}, capture_output=True, check=True
    )
    return {"imported": int(done.stdout) / 1e9}
