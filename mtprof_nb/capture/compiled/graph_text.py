"""Reads the text of a graph that inductor compiled: nodes, their inputs, sizes and lines."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from mtprof_nb.capture.torch_private.inductor_code import SourceFrame

_NODE = re.compile(r'^\s+(\w+)(?:: "([^"]*)")? = (.*?)(?:;  .*)?$')
#: The line of the nodes that follow; torch 2.15 puts words before it in a backward pass.
_FILE = re.compile(r"^\s+# (?:[A-Z][\w ]*: )?File: (.+?):(\d+) in (\S+), code: (.*)$")
_NO_FILE = re.compile(r"^\s+# No stacktrace found")
_PLACEHOLDER = re.compile(r'(\w+): "([^"]*)"')
_TENSOR = re.compile(r"\w+\[([^\]]*)\]")
_OP = re.compile(r"torch\.ops\.\w+\.(\w+)")
_NAME = re.compile(r"(?<![\w.])[a-zA-Z_]\w*")
_VIEWS = re.compile(
    r"(getitem|_?(unsafe_)?(re)?view|reshape|permute|t|transpose|expand|select|slice|squeeze"
    r"|unsqueeze|as_strided|alias|detach|split(_with_sizes)?|unbind|view_as_\w+)$"
)
PLACEHOLDER = "placeholder"


@dataclass(frozen=True)
class Node:
    """A node of a graph."""

    name: str
    #: Without library and overload, such as `mm`.
    op: str
    inputs: tuple[str, ...]
    #: Number of elements, 0 for what is no tensor.
    numel: int
    frame: SourceFrame | None = None

    @property
    def is_view(self) -> bool:
        return _VIEWS.match(self.op) is not None


@dataclass(frozen=True)
class GraphNodes:
    """The nodes of a graph in their order, by name, and the names that it returns."""

    nodes: dict[str, Node]
    outputs: tuple[str, ...]

    def base(self, name: str) -> str:
        """The node of which `name` is a view."""
        while (node := self.nodes.get(name)) is not None and node.is_view and node.inputs:
            name = node.inputs[0]
        return name


def read_graph(text: str) -> GraphNodes:
    """The nodes of a graph in the form in which `print_readable` writes it."""
    nodes: dict[str, Node] = {}
    frame, outputs = None, ()
    for line in text.splitlines():
        if found := _FILE.match(line):
            frame = SourceFrame(found[1], int(found[2]), found[3], found[4].strip())
        elif _NO_FILE.match(line):
            frame = None
        elif line.lstrip().startswith("def forward("):
            nodes |= {node.name: node for node in _placeholders(line)}
        elif line.lstrip().startswith("return"):
            outputs = tuple(_NAME.findall(line.split("return", 1)[1]))
        elif found := _NODE.match(line):
            node = _node(found[1], found[2] or "", found[3], nodes)
            nodes[node.name] = replace(node, frame=frame)
    return GraphNodes(nodes, outputs)


def _placeholders(line: str) -> Iterator[Node]:
    for name, kind in _PLACEHOLDER.findall(line):
        yield Node(name, PLACEHOLDER, (), _numel(kind))


def _node(name: str, kind: str, expression: str, known: dict[str, Node]) -> Node:
    op = _OP.match(expression)
    inputs = dict.fromkeys(one for one in _NAME.findall(expression) if one in known)
    return Node(name, op[1] if op else "getitem", tuple(inputs), _numel(kind))


def _numel(kind: str) -> int:
    """Elements of a tensor by its type, such as `f32[4, 16][16, 1]cpu`; unknown ones count as 1."""
    tensor = _TENSOR.match(kind)
    if tensor is None:
        return 0
    sizes = [size.strip() for size in tensor[1].split(",")]
    return math.prod(int(size) for size in sizes if size.isdigit())
