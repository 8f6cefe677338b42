"""Which functions of a cell may carry marks: none that a compiler or a serializer reads."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import Any

from mtprof_nb.capture.torch_private.compiled_code import COMPILERS, is_compiled

#: Decorators after which a function's own code still runs as it is written.
TRANSPARENT = frozenset(
    {
        *("abstractmethod", "classmethod", "property", "setter", "getter", "deleter", "staticmethod"),
        *("cache", "cached_property", "lru_cache", "register", "singledispatch", "singledispatchmethod", "wraps"),
        *("asynccontextmanager", "contextmanager", "final", "no_type_check", "overload", "override"),
        *("autocast", "enable_grad", "inference_mode", "no_grad", "set_grad_enabled"),
        *("custom_bwd", "custom_fwd", "once_differentiable", "profile", "record_function"),
    }
)
#: Names of compilers that read bytecode, and of libraries that send functions to other processes.
_READERS = frozenset(
    {
        *COMPILERS,
        *("cfunc", "guvectorize", "njit", "numba", "stencil", "vectorize"),
        *("cloudpickle", "dask", "dill", "joblib", "multiprocess", "Parallel", "pyspark", "ray"),
    }
)
_NO_READERS = {("re", "compile"), ("regex", "compile")}


def reader_of_functions(tree: ast.AST, namespace: Mapping[str, Any]) -> str | None:
    """Name of a compiler or serializer in the cell that reads bytecode (torch.compile, numba, ray…), or None."""
    for name in _names(tree):
        if name in _READERS or (name in namespace and is_compiled(namespace[name])):
            return name
    return None


def transparent_decorators(tree: ast.AST) -> frozenset[str]:
    """The decorators known to be harmless, and those that the cell defines itself."""
    defined = (node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef))
    return TRANSPARENT.union(defined)


def _names(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            if not (isinstance(node.value, ast.Name) and (node.value.id, node.attr) in _NO_READERS):
                yield node.attr
        elif isinstance(node, ast.Import | ast.ImportFrom):
            yield from (node.module or "").split(".") if isinstance(node, ast.ImportFrom) else ()
            yield from (part for alias in node.names for part in alias.name.split("."))
