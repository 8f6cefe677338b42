"""Signs by which torch's compiler is recognised: in a cell's text, in its values, in its settings."""

from __future__ import annotations

import sys
from types import FunctionType
from typing import Any

#: Names in a program's text that stand for torch's compilers.
COMPILERS = ("compile", "dynamo", "_dynamo", "export", "jit")


def is_compiled(value: Any) -> bool:
    """Whether torch compiles what `value` calls. No code of the user's is run to find out."""
    if type(value) is FunctionType:
        return "_torchdynamo_orig_callable" in value.__dict__
    if type(value).__name__ == "OptimizedModule":
        return True
    try:
        attributes = object.__getattribute__(value, "__dict__")
        return attributes.get("_compiled_call_impl") is not None
    except (AttributeError, TypeError):
        return False


def has_cudagraphs() -> bool:
    """Whether the compiler is set to record CUDA graphs; False before it is imported."""
    settings = sys.modules.get("torch._inductor.config")
    return bool(settings and settings.triton.cudagraphs)
