"""Reads the file that inductor wrote for a graph: its calls of kernels, their lines and buffers."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

#: How calls of kernels of libraries begin.
_EXTERN = ("extern_kernels.", "torch.ops.", "aten.", "inductor_ops.")
_VIEWS = ("reinterpret_tensor", "alloc_from_pool")
#: The definition of a kernel in C++: its name, the types of its parameters, its text.
_DEFINITION = re.compile(
    r"^(\w+) = async_compile\.cpp_pybinding\((\[.*?\]), r?'''(.*?)^'''\)",
    re.S | re.M,
)
_PARAMETERS = re.compile(r"kernel\((.*?)\)\s*\{", re.S)
_SOURCE_NODES = re.compile(r"Source Nodes: \[([^\]]*)\]")
_MAPPED_NODES = re.compile(r"#\s+\S+ => ([\w, ]+)")

EXTERN, CPP, TRITON = "extern", "cpp", "triton"


class Buffer(NamedTuple):
    """A storage as it is after it was written for the `version`-th time."""

    storage: str
    version: int


@dataclass(frozen=True)
class KernelCall:
    """One call in a wrapper."""

    line: int
    name: str
    kind: str
    reads: tuple[Buffer, ...] = ()
    writes: tuple[Buffer, ...] = ()
    #: Names of nodes in the comment above the call, in their order.
    commented: tuple[str, ...] = ()


@dataclass(frozen=True)
class Wrapper:
    """The calls of a wrapper in their order, and what it returns; None for what is no buffer."""

    calls: tuple[KernelCall, ...]
    returns: tuple[Buffer | None, ...]


def read_wrapper(text: str) -> Wrapper | None:
    """The calls in the text of a wrapper; None if it is not one that is known."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return None
    reader = _WrapperReader(text)
    bodies = [function.body for function in _functions(tree)]
    for body in bodies:
        for statement in _flat(body):
            reader.read(statement)
    return Wrapper(tuple(reader.calls), reader.returns) if bodies else None


def _functions(tree: ast.Module) -> list[ast.FunctionDef]:
    """`Runner.call`, or a function `call`, and before it its parts."""
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    methods = [node for one in classes if one.name == "Runner" for node in one.body]
    candidates = [*tree.body, *methods]
    functions = [node for node in candidates if isinstance(node, ast.FunctionDef)]
    return [one for one in functions if one.name == "call" or one.name.startswith("partition_")]


def _flat(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    for statement in body:
        yield statement
        for part in ("body", "orelse", "finalbody"):
            yield from _flat(getattr(statement, part, []))


def _modes(text: str) -> dict[str, list[str]]:
    """For each kernel in C++ which of its parameters are read (`r`) and written (`w`)."""
    modes = {}
    for name, types, body in _DEFINITION.findall(text):
        parameters = _PARAMETERS.search(body)
        words = [one.split() for one in parameters[1].split(",")] if parameters else []
        pairs = zip(ast.literal_eval(types), filter(None, words), strict=False)
        modes[name] = [_mode(kind, own[-1]) for kind, own in pairs]
    return modes


def _mode(kind: str, name: str) -> str:
    is_written = "*" in kind and "const" not in kind
    return "rw" if is_written and name.startswith("in_out") else "w" if is_written else "r"


class _WrapperReader:
    """Follows buffers through the statements of a wrapper, and collects its calls."""

    def __init__(self, text: str) -> None:
        self._lines = text.split("\n")
        self._modes = _modes(text)
        self._storages: dict[str, str] = {}
        self._versions: Counter[str] = Counter()
        self.calls: list[KernelCall] = []
        self.returns: tuple[Buffer | None, ...] = ()

    def read(self, statement: ast.stmt) -> None:
        value = getattr(statement, "value", None)
        if isinstance(statement, ast.Return) and isinstance(value, ast.Tuple | ast.List):
            self.returns = tuple(self._buffer(element) for element in value.elts)
        elif isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            self._assign(statement.targets[0].id, statement.value, statement.lineno)
        elif isinstance(statement, ast.Expr) and isinstance(value, ast.Call):
            self._call(value, statement.lineno)

    def _assign(self, target: str, value: ast.expr, line: int) -> None:
        source = value.value if isinstance(value, ast.Subscript) else value
        storage = self._storage(source)
        if storage is not None:
            self._storages[target] = storage
        elif isinstance(value, ast.Call):
            self._storages[target] = target
            self._versions[target] += 1
            name = ast.unparse(value.func)
            if name.startswith(_EXTERN):
                written = Buffer(target, self._versions[target])
                self._add(line, name, EXTERN, self._read(value.args), (written,))

    def _call(self, call: ast.Call, line: int) -> None:
        name = ast.unparse(call.func)
        if name in self._modes:
            pairs = list(zip(call.args, self._modes[name], strict=False))
            reads = self._read([argument for argument, mode in pairs if "r" in mode])
            outputs = [argument for argument, mode in pairs if "w" in mode]
            self._add(line, name, CPP, reads, self._written(outputs))
        elif name.startswith(_EXTERN):
            outputs = [keyword.value for keyword in call.keywords if keyword.arg == "out"]
            self._add(line, name, EXTERN, self._read(call.args), self._written(outputs))
        elif name.endswith(".run"):
            self._add(line, name.removesuffix(".run"), TRITON)

    def _add(
        self,
        line: int,
        name: str,
        kind: str,
        reads: tuple[Buffer, ...] = (),
        writes: tuple[Buffer, ...] = (),
    ) -> None:
        self.calls.append(KernelCall(line, name, kind, reads, writes, self._commented(line)))

    def _storage(self, value: ast.expr) -> str | None:
        """The storage of an expression, None if it is none that is known."""
        if isinstance(value, ast.Name):
            return self._storages.get(value.id, value.id)
        if isinstance(value, ast.Call) and value.args and ast.unparse(value.func) in _VIEWS:
            return self._storage(value.args[0])
        return None

    def _buffer(self, value: ast.expr) -> Buffer | None:
        storage = self._storage(value)
        return None if storage is None else Buffer(storage, self._versions[storage])

    def _read(self, values: list[ast.expr]) -> tuple[Buffer, ...]:
        return tuple(buffer for value in values if (buffer := self._buffer(value)) is not None)

    def _written(self, values: list[ast.expr]) -> tuple[Buffer, ...]:
        storages = {self._storage(value) for value in values}
        self._versions.update(filter(None, storages))
        return self._read(values)

    def _commented(self, line: int) -> tuple[str, ...]:
        """Names in the comments above a line: nodes of the graph, or else of the source."""
        first = line - 1
        while first >= 1 and self._lines[first - 1].lstrip().startswith("#"):
            first -= 1
        comments = "\n".join(self._lines[first : line - 1])
        mapped = [name for names in _MAPPED_NODES.findall(comments) for name in names.split(",")]
        sources = _SOURCE_NODES.search(comments)
        return tuple(name.strip() for name in mapped or (sources[1].split(",") if sources else []))


def short_name(name: str) -> str:
    """The name of an op without its library and overload: `mm` of `extern_kernels.mm`."""
    parts = name.removeprefix("torch.ops.").split(".")
    return parts[1] if len(parts) > 1 else name
