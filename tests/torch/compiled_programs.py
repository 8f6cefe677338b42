"""Programs that inductor compiles, each in a file of its own whose lines tests know."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

PROGRAM = """import torch


def block(x, w, v):
    h = x @ w
    h = torch.nn.functional.gelu(h)
    y = h @ v
    y = y + x.detach()
    return (y * torch.sigmoid(y)).sum()


def broken(x):
    y = x @ x
    print("break")
    return torch.tanh(y).sum()
"""


def line(text: str) -> int:
    """The number of the line of the program that begins so."""
    lines = [one.strip() for one in PROGRAM.splitlines()]
    (found,) = [number for number, one in enumerate(lines, 1) if one.startswith(text)]
    return found


def program(folder: Path) -> ModuleType:
    """The program, from a file in `folder`."""
    path = folder / "compiled_program.py"
    path.write_text(PROGRAM)
    spec = importlib.util.spec_from_file_location("compiled_program", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def inputs(torch: Any) -> list[Any]:
    torch.manual_seed(0)
    return [torch.randn(16, 16, requires_grad=True) for _ in range(3)]
