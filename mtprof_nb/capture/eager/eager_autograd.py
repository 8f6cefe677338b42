"""The backward pass of a runtime whose engine is a Python loop: when it runs, and which node is running."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from types import CodeType
from typing import Any

from mtprof_nb.capture.buffers.buffer import Buffer
from mtprof_nb.capture.patches import Patches

#: CPython's flags of a type, `Py_TPFLAGS_IMMUTABLETYPE` and `Py_TPFLAGS_HEAPTYPE`.
_IMMUTABLE = 1 << 8
_MADE_AT_RUN_TIME = 1 << 9


class BackwardPasses:
    """Notes when autograd nodes are made, when the engine starts and ends, and which node it runs."""

    def __init__(self, buffer: Buffer, engine: Any, node: Any) -> None:
        self._buffer = buffer
        self._engine = engine
        self._node = node.Node
        self._engine_code: CodeType | None = None

    def install(self, patches: Patches) -> None:
        """Start recording autograd nodes."""
        makers = _mutable_classes(self._node)
        for kind in makers:
            patches.replace(kind, "__init__", self._noting_init)
        patches.replace(self._engine, "deque", lambda _deque: self._noting_deque(makers))
        patches.replace(self._engine, "_run_backward", self._noting_run)

    def is_engine(self, code: CodeType) -> bool:
        """Whether a frame of this code called the engine."""
        return code is self._engine_code

    def _noting_init(self, original: Callable[..., None]) -> Callable[..., None]:
        local, now = self._buffer.local, time.perf_counter_ns

        def init(node: Any, *args: Any, **kwargs: Any) -> None:
            original(node, *args, **kwargs)
            local.made.extend((id(node), now()))

        return init

    def _noting_deque(self, makers: list[type]) -> type[deque[Any]]:
        local, now = self._buffer.local, time.perf_counter_ns
        known: dict[type, bool] = {}
        take = deque.popleft

        class Ready(deque[Any]):
            """The engine's queue of nodes that are ready to run."""

            def popleft(self) -> Any:
                node = take(self)
                kind = type(node)
                is_noted = known.get(kind)
                if is_noted is None:
                    is_noted = known[kind] = any(issubclass(kind, maker) for maker in makers)
                # A node that was not noted when it was made may have the identity of an earlier node.
                local.ran.extend((id(node) if is_noted else 0, now()))
                return node

        return Ready

    def _noting_run(self, original: Callable[..., Any]) -> Callable[..., Any]:
        local, now = self._buffer.local, time.perf_counter_ns

        def run_backward(*args: Any, **kwargs: Any) -> Any:
            records = local.records
            around = records.ran[-2] if records.ran else 0
            began = now()
            try:
                return original(*args, **kwargs)
            finally:
                ended = now()
                records.backward.extend((began, ended))
                # A pass inside another: the outer one's node goes on.
                records.ran.extend((around, ended))

        self._engine_code = run_backward.__code__
        return run_backward


def _mutable_classes(root: Any) -> list[type]:
    """`root`, or where it is compiled its nearest descendants that are not: their `__init__` can be replaced."""
    if root.__flags__ & _MADE_AT_RUN_TIME and not root.__flags__ & _IMMUTABLE:
        return [root]
    return [kind for child in root.__subclasses__() for kind in _mutable_classes(child)]
