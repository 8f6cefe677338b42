"""Which line made each autograd node, by the graph itself: what a program's tensors have reached, line by line.

Neither the profiler nor a sequence number takes part.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

FILE = "<graph>"


@dataclass
class Truth:
    """Nodes and ops of the backward passes of one run of a program."""

    #: (name, line of the forward op) of each autograd node, in the order in which the engine ran them.
    nodes: list[tuple[str, int | None]] = field(default_factory=list)
    #: (name, line) of each op of a node that has a forward op: the line of Python code that ran it inside the backward
    #: pass, or else that of the forward op.
    ops: list[tuple[str, int | None]] = field(default_factory=list)


class _Watcher(TorchDispatchMode):
    """Follows a program by its lines, and keeps every node alive, so that a node is known by its identity."""

    def __init__(self) -> None:
        super().__init__()
        self.truth = Truth()
        self.line_of: dict[Any, int] = {}
        self._hooks: list[Any] = []
        self._began: dict[FrameType, int] = {}
        self._last: int | None = None
        #: Tensors by identity, kept alive, each with its version when it was first seen.
        self._seen: dict[int, tuple[torch.Tensor, int]] = {}

    def trace(self, frame: FrameType, event: str, arg: Any) -> Any:
        if frame.f_code.co_filename != FILE:
            return None
        made = [*frame.f_locals.values(), arg]
        sys.settrace(None)
        try:
            self._find(made, self._began.get(frame, frame.f_lineno))
        finally:
            sys.settrace(self.trace)
        self._began[frame] = frame.f_lineno
        return self.trace

    def _find(self, values: list[Any], line: int) -> None:
        flat = [one for value in values for one in (value if isinstance(value, tuple | list) else (value,))]
        tensors = [one for one in flat if isinstance(one, torch.Tensor)]
        with torch._C.DisableTorchFunctionSubclass(), torch._C._DisableTorchDispatch():
            # Asking a view for its node makes a new one where its base was written into since.
            current = [one for one in tensors if self._seen.setdefault(id(one), (one, one._version))[1] == one._version]
            waiting = [one.grad_fn for one in tensors if not one._is_view()] + [one.grad_fn for one in current]
        waiting = [node for node in waiting if node is not None]
        while waiting:
            node = waiting.pop()
            if node in self.line_of:
                continue
            self.line_of[node] = line
            self._hooks.append(node.register_prehook(self._noting(node)))
            waiting += [outer for outer, _ in node.next_functions if outer is not None]

    def _noting(self, node: Any) -> Any:
        def note(_gradients: Any) -> None:
            name = node.name()
            if "AccumulateGrad" not in name:
                self._last = self.line_of[node]
            self.truth.nodes.append((name, self._last))

        return note

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        node = torch._C._current_autograd_node()
        if node is not None and "AccumulateGrad" not in node.name():
            own = next(_lines_in_backward(sys._getframe(1)), None)
            self.truth.ops.append((func._schema.name, self.line_of.get(node) if own is None else own))
        return func(*args, **(kwargs or {}))


def _lines_in_backward(frame: FrameType | None) -> Iterator[int]:
    """The program's lines that run inside the innermost backward pass, innermost first."""
    while frame is not None and frame.f_code.co_name != "_engine_run_backward":
        if frame.f_code.co_filename == FILE:
            yield frame.f_lineno
        frame = frame.f_back


def truth_of(text: str, first_line: int = 1) -> Truth:
    """Run the program `text`, whose lines count from `first_line`."""
    code = compile("\n" * (first_line - 1) + text, FILE, "exec")
    watcher = _Watcher()
    before = sys.gettrace()
    with watcher:
        sys.settrace(watcher.trace)
        try:
            exec(code, {"torch": torch, "nn": torch.nn})
        finally:
            sys.settrace(before)
    return watcher.truth
