"""Patches of MindTorch v2 and Candle around ops: optimizers, modules, scopes, and deferred ops."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from mtprof_nb.capture.buffers.buffer import Buffer
from mtprof_nb.capture.buffers.module_paths import ModulePaths
from mtprof_nb.capture.eager.dispatcher_points import EnterExitPoints
from mtprof_nb.capture.patches import Patches


def follow_pipeline(patches: Patches, pending_op: type, points: EnterExitPoints, buffer: Buffer) -> None:
    """Record deferred ops, which run without the enter and exit points. Their stack is that of the deferring call."""
    stacks = buffer.stacks

    def executing(original: Callable[[Any], None]) -> Callable[[Any], None]:
        def execute(pending: Any) -> None:
            first = pending.out[0] if isinstance(pending.out, list | tuple) else pending.out
            token = points.enter(pending.op_name, first.device, pending.args, pending.kwargs)
            if token is not None and stacks is not None:
                token[5][0] = getattr(pending, "_mtprof_stack", token[5][0])
            try:
                original(pending)
            finally:
                if token is not None:
                    points.exit(token)

        return execute

    def queueing(original: Callable[..., None]) -> Callable[..., None]:
        def init(pending: Any, *args: Any, **kwargs: Any) -> None:
            original(pending, *args, **kwargs)
            if stacks is not None:
                pending._mtprof_stack = stacks.capture(sys._getframe(1))

        return init

    patches.replace(pending_op, "_execute_body", executing)
    if stacks is not None:
        patches.replace(pending_op, "__init__", queueing)


def follow_optimizers(patches: Patches, base: Any, buffer: Buffer) -> None:
    """Record every `step` as a scope, named as torch names it; also of classes that are defined meanwhile."""
    known: set[type] = set()
    stepping: set[int] = set()

    def in_scope(step: Callable[..., Any]) -> Callable[..., Any]:
        def scoped(optimizer: Any, *args: Any, **kwargs: Any) -> Any:
            if id(optimizer) in stepping:  # a step that calls super().step() is one step
                return step(optimizer, *args, **kwargs)
            stepping.add(id(optimizer))
            try:
                with buffer.scope(f"Optimizer.step#{type(optimizer).__name__}.step"):
                    return step(optimizer, *args, **kwargs)
            finally:
                stepping.discard(id(optimizer))

        return scoped

    def follow(kind: type) -> None:
        if buffer.is_open and kind not in known and "step" in vars(kind):
            known.add(kind)
            patches.replace(kind, "step", in_scope)

    def following(made: Callable[..., None]) -> Callable[..., None]:
        def init(optimizer: Any, *args: Any, **kwargs: Any) -> None:
            follow(type(optimizer))
            made(optimizer, *args, **kwargs)

        return init

    for kind in _subclasses(base):
        follow(kind)
    patches.replace(base, "__init__", following)


def _subclasses(kind: Any) -> set[type]:
    direct: set[type] = set(kind.__subclasses__())
    return direct.union(*map(_subclasses, direct))


def follow_scopes(patches: Patches, record_function: type, buffer: Buffer) -> None:
    """Record scopes of the runtime's own `record_function`."""

    def entering(original: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def enter(scope: Any) -> Any:
            buffer.local.records.runtime_scopes.append(buffer.scope(scope.name).__enter__())
            return original(scope)

        return enter

    def leaving(original: Callable[..., Any]) -> Callable[..., Any]:
        def leave(scope: Any, *exception: Any) -> Any:
            result = original(scope, *exception)
            opened = buffer.local.records.runtime_scopes
            newest = next((at for at in reversed(range(len(opened))) if opened[at].name == scope.name), None)
            if newest is not None:
                opened.pop(newest).__exit__()
            return result

        return leave

    patches.replace(record_function, "__enter__", entering)
    patches.replace(record_function, "__exit__", leaving)


def follow_modules(patches: Patches, module: type, paths: ModulePaths) -> None:
    def following(call: Callable[..., Any]) -> Callable[..., Any]:
        def forward(called: Any, *args: Any, **kwargs: Any) -> Any:
            paths.enter(called)
            try:
                return call(called, *args, **kwargs)
            finally:
                paths.leave(called)

        return forward

    patches.replace(module, "__call__", following)
