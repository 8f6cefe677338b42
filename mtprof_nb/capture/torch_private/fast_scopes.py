"""Torch's `_RecordFunctionFast`, whose inputs torch leaves out where it records all threads.

Compiled code opens such a scope around each of Triton's kernels, and gives it the kernel's arguments and its grid.
Unless its own profiler records, torch leaves out the scope itself: the native recorder then opens one.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

from mtprof_nb.building.noted_scopes import Input, NotedScope
from mtprof_nb.capture.buffers.tensor_facts import TensorFacts, dtype_name
from mtprof_nb.capture.patches import Patches
from mtprof_nb.capture.torch_private.operators import without_overrides
from mtprof_nb.model.input_values import plain

_SCALARS = (bool, int, float, complex)


class FastScopes:
    """Notes the inputs of scopes that are made from `install` to `remove`, if asked to.

    Opens them by `recorder` unless it is None; then a scope without inputs stays torch's own.
    """

    def __init__(self, torch: Any, recorder: Any = None, *, with_inputs: bool = True) -> None:
        self._recorder = recorder
        self._with_inputs = with_inputs
        self._module = torch._C._profiler
        self._tensor = torch.Tensor
        self._stride = torch.Tensor.stride
        self._without_overrides = without_overrides(torch)
        self._infer_type = torch._C._jit_try_infer_type
        self._facts = TensorFacts(torch)
        self._patches = Patches()
        self.is_noting = False
        self.left: list[NotedScope] = []

    def install(self) -> None:
        self._patches.replace(self._module, "_RecordFunctionFast", self._maker)
        self.is_noting = True

    def remove(self) -> None:
        """Put torch's class back; scopes that were made meanwhile are no longer noted."""
        self.is_noting = False
        self._patches.undo()

    def _maker(self, original: Any) -> Any:
        def make(*args: Any, **kwargs: Any) -> Any:
            scope = original(*args, **kwargs)
            if self._recorder is not None:
                scope = _RecordedScope(scope, self._recorder, *args, **kwargs)
            is_noted = self._with_inputs and len(args) + len(kwargs) > 1
            return _NotingScope(scope, self, *args, **kwargs) if is_noted else scope

        return make

    def read(self, name: str, values: Sequence[Any], keywords: Mapping[str, Any]) -> NotedScope | None:
        """Describe the inputs of a scope that this thread enters now; no tensor is kept."""
        try:
            inputs = [one for value in values if (one := self._input(value)) is not None]
            kept = {str(key): _keyword(value) for key, value in keywords.items()}
        except Exception:  # an input may be an object of the user's, with methods that fail
            return None
        return NotedScope(threading.get_native_id(), name, time.perf_counter_ns(), tuple(inputs), kept)

    def _input(self, value: Any) -> Input | None:
        """The description of `value`; None where torch cannot infer its type, for torch leaves such a value out."""
        if isinstance(value, self._tensor):
            (shape, dtype), *_ = self._facts.shapes((value,), {})
            return Input(tuple(shape), dtype_name(dtype), self._strides(value))
        if isinstance(value, list) and value and all(isinstance(item, self._tensor) for item in value):
            (shapes, _), *_ = self._facts.shapes((value,), {})
            return Input(tuple(map(tuple, shapes)), "TensorList", tuple(map(self._strides, value)))
        if type(value) in _SCALARS:
            return Input(dtype="Scalar", value=value)
        if not self._infer_type(value).success():
            return None
        if isinstance(value, list) and type(value[0]) in _SCALARS:
            return Input(dtype="ScalarList", value=list(value))
        return Input()

    def _strides(self, tensor: Any) -> tuple[int, ...]:
        try:
            with self._without_overrides():
                return tuple(step if isinstance(step, int) else -1 for step in self._stride(tensor))
        except Exception:  # a sparse or nested tensor has none
            return ()


class _RecordedScope:
    """A scope of torch's, which the native recorder opens and closes in its place where torch would do nothing."""

    def __init__(
        self,
        scope: Any,
        recorder: Any,
        name: str,
        input_values: Sequence[Any] = (),  # noqa: ARG002 - as torch's
        keyword_values: Mapping[str, Any] | None = None,
    ) -> None:
        self._scope = scope
        self._recorder = recorder
        kind = (keyword_values or {}).get("scope")
        self._opens = name.encode(errors="replace"), isinstance(kind, str) and kind == "user_scope"
        self._open: list[Any] = []

    def __enter__(self) -> Any:
        opened = self._recorder.enter_scope(*self._opens) if self._recorder.is_recording() else None
        if opened is None:
            self._scope.__enter__()
        self._open.append(opened)

    def __exit__(self, *raised: object) -> Any:
        opened = self._open.pop() if self._open else None
        return self._scope.__exit__(*raised) if opened is None else self._recorder.leave_scope(opened)


class _NotingScope:
    """Wraps a scope of torch's, which it enters and leaves."""

    def __init__(
        self,
        scope: Any,
        noting: FastScopes,
        name: str,
        input_values: Sequence[Any] = (),
        keyword_values: Mapping[str, Any] | None = None,
    ) -> None:
        self._scope = scope
        self._noting = noting
        self._given = name, input_values, keyword_values or {}
        self._entered: NotedScope | None = None

    def __enter__(self) -> Any:
        self._entered = self._noting.read(*self._given) if self._noting.is_noting else None
        return self._scope.__enter__()

    def __exit__(self, *raised: object) -> Any:
        entered, self._entered = self._entered, None
        if entered is not None:
            self._noting.left.append(entered)
        return self._scope.__exit__(*raised)


def _keyword(value: Any) -> Any:
    """`value` as torch keeps it: None for a list of several types, the text "NULL" for an object of another kind."""
    is_mixed = isinstance(value, list) and len(set(map(type, value))) > 1
    kept = None if is_mixed else plain((value,), {})[0][0]
    return "NULL" if kept is None and not (is_mixed or value is None) else kept
