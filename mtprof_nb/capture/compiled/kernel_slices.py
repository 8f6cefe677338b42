"""Finds the nodes of a graph that a fused kernel computes: those between what it reads and writes.

A kernel is left out, and counted, where that is not certain: where a buffer is not known as a node
of the graph, or where the nodes need one that the kernel does not read.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from mtprof_nb.capture.compiled.graph_text import PLACEHOLDER, GraphNodes, Node
from mtprof_nb.capture.compiled.wrapper_text import (
    CPP,
    EXTERN,
    TRITON,
    Buffer,
    KernelCall,
    Wrapper,
    short_name,
)
from mtprof_nb.capture.torch_private.inductor_code import SourceFrame

#: Ops that libraries compute, under whatever name a wrapper calls them.
_OF_LIBRARIES = ("mm", "addmm", "bmm", "baddbmm", "convolution")
#: An element of these takes about as long as so many of others: a guess.
_COSTLY = (
    *("erf", "exp", "tanh", "sigmoid", "log", "pow", "sqrt", "div", "sin", "cos"),
    *("var_mean", "rand"),
)
_COST = 8


@dataclass
class KernelSlices:
    """The nodes of each fused kernel by the line of its call, and the number of kernels without."""

    nodes: dict[int, list[Node]] = field(default_factory=dict)
    unknown: int = 0


def slice_kernels(wrapper: Wrapper, graph: GraphNodes) -> KernelSlices:
    """The nodes of the fused kernels that a wrapper calls."""
    contents = _Contents(wrapper, graph)
    found = KernelSlices()
    for call in wrapper.calls:
        if call.kind == EXTERN:
            continue
        nodes = contents.commented(call) if call.kind == TRITON else contents.between(call)
        if nodes:
            found.nodes[call.line] = nodes
        else:
            found.unknown += 1
    return found


def weights(nodes: list[Node], graph: GraphNodes) -> dict[SourceFrame, tuple[int, Counter[str]]]:
    """For each source line its weight, and how often each op stands there.

    A node without a line belongs to the line of what it is computed for, or else is computed from.
    """
    frames = _frames(nodes)
    found: dict[SourceFrame, tuple[int, Counter[str]]] = {}
    for node in nodes:
        if (frame := frames.get(node.name)) is not None:
            weight, ops = found.get(frame, (0, Counter()))
            found[frame] = weight + _weight(node, graph), ops + Counter([node.op])
    return found


def _frames(nodes: list[Node]) -> dict[str, SourceFrame]:
    frames = {node.name: node.frame for node in nodes if node.frame is not None}
    for node in reversed(nodes):
        for name in node.inputs:
            if node.name in frames:
                frames.setdefault(name, frames[node.name])
    for node in nodes:
        known = [frames[name] for name in node.inputs if name in frames]
        if known:
            frames.setdefault(node.name, known[0])
    return frames


def _weight(node: Node, graph: GraphNodes) -> int:
    inputs = [graph.nodes[name].numel for name in node.inputs]
    return max(node.numel, *inputs, 1) * (_COST if any(op in node.op for op in _COSTLY) else 1)


class _Contents:
    """Which node of a graph each buffer of a wrapper holds."""

    def __init__(self, wrapper: Wrapper, graph: GraphNodes) -> None:
        self._graph = graph
        names = {short_name(call.name) for call in wrapper.calls if call.kind == EXTERN}
        self._libraries = names.union(_OF_LIBRARIES)
        nodes = graph.nodes.values()
        self._held = {Buffer(one.name, 0): one.name for one in nodes if one.op == PLACEHOLDER}
        #: Buffers that something needs after the call that wrote them.
        self._used = {buffer for call in wrapper.calls for buffer in call.reads}
        self._used.update(filter(None, wrapper.returns))
        self._outputs(wrapper)
        # Names of the first round distinguish ops of one kind in the second.
        for _ in range(2):
            self._of_libraries(wrapper)
        self._written = {one for call in wrapper.calls if call.kind == CPP for one in call.writes}

    def _outputs(self, wrapper: Wrapper) -> None:
        """Name buffers that are returned, or written back into an input."""
        graph = self._graph
        for buffer, name in zip(wrapper.returns, graph.outputs, strict=False):
            if buffer is not None and name in graph.nodes:
                self._held.setdefault(buffer, graph.base(name))
        copies = [node for node in graph.nodes.values() if node.op == "copy_"]
        targets = {node.inputs[0]: node.name for node in copies if node.inputs}
        for call in wrapper.calls:
            for buffer in call.writes:
                if buffer.storage in targets:
                    self._held[buffer] = targets[buffer.storage]
                    self._used.add(buffer)

    def _of_libraries(self, wrapper: Wrapper) -> None:
        """Name the buffers that calls of libraries read and write."""
        left = [node for node in self._graph.nodes.values() if node.op in self._libraries]
        for call in wrapper.calls:
            if call.kind != EXTERN:
                continue
            same = [node for node in left if node.op == short_name(call.name)]
            node = max(same, key=lambda one: self._likeness(one, call), default=None)
            if node is None or self._likeness(node, call)[0] < 0:
                continue
            left.remove(node)
            for buffer in call.writes:
                self._held.setdefault(buffer, node.name)
            for buffer, name in zip(call.reads, node.inputs, strict=False):
                self._held.setdefault(buffer, self._graph.base(name))

    def _likeness(self, node: Node, call: KernelCall) -> tuple[int, bool]:
        """How many inputs of a call are known to be those of a node, less those that are not."""
        pairs = list(zip(call.reads, node.inputs, strict=False))
        pairs += [(buffer, node.name) for buffer in call.writes]
        known = [(self._held[buffer], name) for buffer, name in pairs if buffer in self._held]
        equal = sum(held == self._graph.base(name) for held, name in known)
        return 2 * equal - len(known), node.name in call.commented

    def between(self, call: KernelCall) -> list[Node]:
        """The nodes from what a call reads to what it writes; [] where that is not certain."""
        needed = [buffer for buffer in call.writes if buffer in self._used]
        inner = [buffer for buffer in call.reads if buffer in self._written]
        if not needed or any(buffer not in self._held for buffer in (*needed, *inner)):
            return []
        given = {self._held[buffer] for buffer in call.reads if buffer in self._held}
        return self._slice([self._held[buffer] for buffer in needed], given)

    def _slice(self, wanted: list[str], given: set[str]) -> list[Node]:
        nodes, found = self._graph.nodes, set[str]()
        todo = list(wanted)
        while todo:
            node = nodes[todo.pop()]
            if node.name in found:
                continue
            if node.op == PLACEHOLDER or node.op in self._libraries:
                if node.numel or node.op != PLACEHOLDER:
                    return []
                continue
            found.add(node.name)
            for name in node.inputs:
                is_copied_to = node.op == "copy_" and name == node.inputs[0]
                if name not in given and self._graph.base(name) not in given and not is_copied_to:
                    todo.append(name)
        return [node for node in nodes.values() if node.name in found and not node.is_view]

    def commented(self, call: KernelCall) -> list[Node]:
        """The nodes that the comment above a call names."""
        nodes = [self._graph.nodes[name] for name in call.commented if name in self._graph.nodes]
        return [node for node in nodes if not node.is_view and node.op != PLACEHOLDER]
