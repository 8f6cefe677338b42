"""Work that needs a process of its own: a clean heap, a first import, a crash that ends only itself."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
#: One thread an op, the same hashes in every process, and nothing of Kineto's on the terminal.
ENVIRONMENT = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "PYTHONHASHSEED": "0", "KINETO_LOG_LEVEL": "6"}


def keep_to(core: int) -> None:
    """Run this process on one core, where the system can do that."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {core})


def call(function: str, *arguments: Any) -> Any:
    """Result of `function` ("module:name") in a process of its own; `RuntimeError` with what it said if it failed.

    Arguments and answer are plain values.
    """
    with tempfile.TemporaryDirectory() as folder:
        answer = Path(folder, "answer.json")
        command = [sys.executable, "-m", "benchmarks.child", function, json.dumps(arguments), str(answer)]
        done = subprocess.run(
            command, cwd=ROOT, env={**os.environ, **ENVIRONMENT}, capture_output=True, text=True, check=False
        )
        if done.returncode or not answer.exists():
            msg = f"{function} failed:\n{done.stdout}{done.stderr}"
            raise RuntimeError(msg)
        return json.loads(answer.read_text())


def main(function: str, arguments: str, answer: str) -> None:
    """Answer one call."""
    module, name = function.split(":")
    result = getattr(importlib.import_module(module), name)(*json.loads(arguments))
    Path(answer).write_text(json.dumps(result))


if __name__ == "__main__":
    main(*sys.argv[1:])
