"""Hook `dispatch`: a `TorchDispatchMode`, called for every aten op below autograd, with its arguments."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import lru_cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import numpy as np

from mtprof_nb.capture.activities import DEVICES, device_type_name
from mtprof_nb.capture.buffers.autograd_links import NODE_WITHOUT_NUMBER, NOT_IN_BACKWARD, link_by_sequence_nr
from mtprof_nb.capture.buffers.buffer import OP_FIELDS, Buffer, fact_fields
from mtprof_nb.capture.buffers.freezing import Vocabulary, freeze
from mtprof_nb.capture.buffers.module_paths import ModulesOnStack
from mtprof_nb.capture.buffers.tensor_facts import TensorFacts, dtype_name
from mtprof_nb.capture.dispatch.cpu_allocations import KinetoMemory, with_cpu_memory
from mtprof_nb.capture.dispatch.thread_follower import ThreadFollower
from mtprof_nb.capture.dispatch.unfollowed_threads import UnfollowedThreads, not_followed
from mtprof_nb.capture.hook import Hook, Request, SoFar
from mtprof_nb.capture.interrupts import interrupts_held_back
from mtprof_nb.capture.samples.thread_names import frames_of_others
from mtprof_nb.capture.torch_scope import Together
from mtprof_nb.errors import warn
from mtprof_nb.model.merge import merge
from mtprof_nb.model.trace import OP, Trace

#: Sequence numbers from here on mean none, such as that of a node that accumulates a gradient.
_LARGEST_NUMBER = 2**62


class DispatchHook(Hook):
    """Records the ops of this thread, of threads that start meanwhile, and of pools that get work meanwhile.

    A mode belongs to one thread. Threads that began before are recorded by Kineto.
    """

    def __init__(self, request: Request, *, only_others: bool = False) -> None:
        import torch

        self._torch = torch
        self._request = request
        #: Whether the thread that starts the hook, and CPU memory, are recorded by another hook.
        self._only_others = only_others
        self._recorder = OpRecorder(torch, request)
        self._mode = _mode_class()(self._recorder)
        self._threads = ThreadFollower(self._inside)
        #: The thread on which recording began, until the mode is removed there.
        self._started_on: int | None = None
        self._native_id = 0
        reads_memory = request.recorded.profile_memory and not only_others
        self._memory = KinetoMemory(torch, request) if reads_memory else None
        self._unfollowed = None if only_others else UnfollowedThreads(torch, request)

    def prepare(self) -> None:
        """Warm up the reader of the CPU's allocator."""
        if self._memory is not None:
            self._memory.prepare()

    def start(self) -> None:
        if self._memory is not None:
            self._memory.start()
        if self._unfollowed is not None:
            self._unfollowed.start()
        _keep_compiler_out(self._torch, type(self._mode).__torch_dispatch__.__code__)
        self._threads.install()
        if self._only_others:
            return
        for mode in _modes(self._torch):
            if isinstance(mode, type(self._mode)) and mode.is_over:
                _remove_mode(mode)
        self._started_on, self._native_id = threading.get_ident(), threading.get_native_id()
        self._push()

    def check_thread(self) -> None:
        """CPU memory is recorded by Kineto, which must be stopped where it was started."""
        if self._memory is not None:
            self._memory.check_thread()

    def stop(self) -> Trace:
        """The window's trace. Harmless after a failed start."""
        try:
            self.remove()
        finally:
            try:
                allocations = self._memory.stop() if self._memory is not None else None
            finally:
                unfollowed = self._unfollowed.stop() if self._unfollowed is not None else None
        if self._started_on in frames_of_others():
            warn("stopped on another thread, which cannot remove the mode: stop it on the thread that starts it")
        trace = freeze(self._recorder.buffer, _vocabulary(self._torch))
        if unfollowed is not None:
            trace = merge([trace, not_followed(unfollowed, trace)])
        if allocations is None:
            return trace
        others = [index for index, thread in enumerate(trace.tracks) if thread.native_id != self._native_id]
        if np.isin(trace.track[trace.kind == OP], others).any():
            warn("profile_memory: CPU memory of other threads is not recorded; run their ops on the profiling thread")
        return with_cpu_memory(trace, *allocations)

    def so_far(self) -> SoFar | None:
        return self._recorder.buffer.so_far()

    def abandon(self) -> None:
        self.remove()
        self._recorder.buffer.discard()
        if self._memory is not None:
            self._memory.abandon()
        if self._unfollowed is not None:
            self._unfollowed.abandon()

    def remove(self) -> None:
        """Record no more; what was recorded stays until `stop`. A second call does nothing."""
        self._recorder.buffer.is_open = False
        with interrupts_held_back():
            self._threads.remove()
            _remove_mode(self._mode)
            if self._started_on == threading.get_ident():
                self._started_on = None

    def scope(self, name: str, args: str | None = None) -> AbstractContextManager[Any]:
        """A scope, recorded here once. It also reaches other listeners of torch."""
        theirs = self._torch.autograd.profiler.record_function(name, args)
        return Together(self._recorder.buffer.scope(name), _Unrecorded(theirs, self._recorder.passing_on))

    def toggle(self, enable: bool, activities: frozenset[str]) -> None:
        enabled = self._recorder.activities
        self._recorder.activities = enabled | activities if enable else enabled - activities
        if self._unfollowed is not None:
            self._unfollowed.toggle(enable, activities)

    def _push(self) -> None:
        number = self._torch.autograd._get_sequence_nr()
        # A new thread is at 0, and has no name for its records yet.
        if number:
            self._recorder.buffer.local.records.first_sequence_nr = number
        self._torch.utils._python_dispatch._push_mode(self._mode)

    @contextmanager
    def _inside(self) -> Iterator[None]:
        """Push the mode on a thread that does not have it yet."""
        if not self._recorder.buffer.is_open or self._mode in _modes(self._torch):
            yield
            return
        self._push()
        try:
            yield
        finally:
            _remove_mode(self._mode)


class OpRecorder:
    """Runs each op, measures it and appends a record."""

    def __init__(self, torch: Any, request: Request) -> None:
        recorded = request.recorded
        memory = ("before", "after") if recorded.profile_memory else ()
        # A stack tells too whether Python code called an op of the backward pass.
        facts = (*(() if recorded.with_stack else ("in_python",)), *fact_fields(recorded))
        self.buffer = Buffer(request, (*OP_FIELDS, "counter", "node", "grad", *memory, *facts))
        self._modules = ModulesOnStack(torch.nn.Module._call_impl.__code__) if recorded.with_modules else None
        self.activities = request.activities
        #: Threads on which a scope that is already recorded is being passed on to torch.
        self.passing_on: set[int] = set()
        self._recorded = recorded
        self._facts = TensorFacts(torch)
        self._torch = torch
        self._next_number = torch.autograd._get_sequence_nr
        self._is_grad_enabled = torch.is_grad_enabled
        self._backward_task = torch._C._current_graph_task_id
        self._backward_node = torch._C._current_autograd_node
        ops = torch.ops.profiler
        self._scope_enters = (ops._record_function_enter_new.default, ops._record_function_enter.default)
        self._scope_exits = (ops._record_function_exit._RecordFunction, ops._record_function_exit.default)

    def run(self, op: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        """Run the op and record it; return or raise as the op does."""
        if not self.buffer.is_open:
            return op(*args, **kwargs)
        if op in self._scope_enters or op in self._scope_exits:
            return self._run_scope(op, args, kwargs)
        facts, recorded = self._facts, self._recorded
        device = facts.device(facts.tensors(args, kwargs))
        counter, node = self._next_number(), self._running_node()
        grad = self._is_grad_enabled()
        in_python = node != NOT_IN_BACKWARD and _is_called_by_python(sys._getframe(1).f_back)
        shapes = facts.shapes(args, kwargs) if recorded.record_shapes else None
        stack = None if self.buffer.stacks is None else self.buffer.stacks.capture(sys._getframe(1))
        module = None if self._modules is None else self._modules.path(sys._getframe(1))
        before = self._held(device) if recorded.profile_memory else -1
        buffer, result = self.buffer, None
        # Before the op, so that one which still runs when another one is left out is recorded.
        number = buffer.number() if device is not None and self._is_wanted(device) else 0
        start = time.perf_counter_ns()
        try:
            result = op(*args, **kwargs)
        finally:
            end = time.perf_counter_ns()
            if device is None:
                device = facts.device_of_result(result, kwargs)
                number = self._numbered(device, start)
            if 0 < number <= buffer.limit:
                values = [op, device, start, end, counter, node, grad]
                if recorded.profile_memory:
                    values += (before, self._held(device) if before >= 0 else -1)
                values.append(stack if recorded.with_stack else in_python)
                if recorded.record_shapes:
                    values.append(shapes)
                if recorded.with_flops:
                    values.append(facts.flops(op, args, kwargs, result))
                if recorded.with_modules:
                    values.append(module)
                buffer.local.ops.extend(values)
        return result

    def _numbered(self, device: Any, start: int) -> int:
        """The number of an op that began at `start`, whose device is known only now; 0 if it is not recorded."""
        number = self.buffer.number() if self._is_wanted(device) else 0
        if number > self.buffer.limit:
            self.buffer.leave_out(start)
        return number

    def _run_scope(self, op: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        """Run torch's op that begins or ends a `record_function`, and record the scope."""
        if threading.get_ident() in self.passing_on:
            return op(*args, **kwargs)
        opened = self.buffer.local.records.runtime_scopes
        if op in self._scope_exits:
            if opened:
                opened.pop().__exit__()
            return op(*args, **kwargs)
        result = op(*args, **kwargs)
        scope = self.buffer.scope(str(args[0]))
        scope.node = self._running_node()
        opened.append(scope.__enter__())
        return result

    def _running_node(self) -> int:
        task = self._backward_task()
        if task == -1:
            return NOT_IN_BACKWARD
        node = self._backward_node()
        number = _LARGEST_NUMBER if node is None else node._sequence_nr()
        return number if number < _LARGEST_NUMBER else NODE_WITHOUT_NUMBER - int(task)

    def _is_wanted(self, device: Any) -> bool:
        """Whether ops on `device` are recorded. A device without an activity, such as `meta`, counts as the CPU."""
        if device is self._facts.cpu:
            return "CPU" in self.activities
        name = device_type_name(device.type)
        return (name if name in DEVICES else "CPU") in self.activities

    def _held(self, device: Any) -> int:
        """Bytes that the device's allocator holds now, -1 where they are not known."""
        if device is None or device.type in ("cpu", "meta"):
            return -1
        read = getattr(getattr(self._torch, device.type, None), "memory_allocated", None)
        return -1 if read is None else int(read(device))


class _Unrecorded:
    """Torch's `scope`, entered and left with the thread in `passing_on`."""

    def __init__(self, scope: AbstractContextManager[Any], passing_on: set[int]) -> None:
        self._scope, self._passing_on = scope, passing_on

    def __enter__(self) -> None:
        self._call(self._scope.__enter__)

    def __exit__(self, *exception: Any) -> None:
        self._call(self._scope.__exit__, *exception)

    def _call(self, method: Callable[..., Any], *args: Any) -> None:
        here = threading.get_ident()
        self._passing_on.add(here)
        try:
            method(*args)
        finally:
            self._passing_on.discard(here)


@lru_cache(maxsize=1)
def _mode_class() -> Any:
    from torch.utils._python_dispatch import TorchDispatchMode

    class DispatchMode(TorchDispatchMode):  # type: ignore[misc]
        supports_higher_order_operators = True

        def __init__(self, recorder: OpRecorder) -> None:
            super().__init__()
            self._recorder = recorder
            self._run = recorder.run

        @property
        def is_over(self) -> bool:
            """Whether the recording has ended: the mode stays on a thread where it could not be removed."""
            return not self._recorder.buffer.is_open

        @classmethod
        def ignore_compile_internals(cls) -> bool:
            """Code is compiled as if the mode were not there, and recorded when it runs."""
            return True

        @classmethod
        def _should_skip_dynamo(cls) -> bool:
            """False: torch's own way to skip the mode would import the compiler."""
            return False

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return self._run(func, args, kwargs or {})

    return DispatchMode


def _keep_compiler_out(torch: Any, code: CodeType) -> None:
    """Have the compiler skip `code`: after a graph break it would try to compile our frames too."""
    frames: Any = getattr(getattr(torch._C, "_dynamo", None), "eval_frame", None)
    if hasattr(frames, "set_code_exec_strategy"):
        skip = frames._FrameAction.SKIP
        frames.set_code_exec_strategy(code, frames._FrameExecStrategy(skip, skip))


def _modes(torch: Any) -> list[Any]:
    """The dispatch modes of this thread, the innermost last."""
    return [torch._C._get_dispatch_stack_at(depth) for depth in range(torch._C._len_torch_dispatch_stack())]


def _remove_mode(mode: Any) -> None:
    """Remove `mode` from this thread's stack, also from below the user's own modes."""
    import torch
    from torch.utils._python_dispatch import _pop_mode, _push_mode

    above = []
    if not any(active is mode for active in _modes(torch)):
        return
    while (top := _pop_mode()) is not mode:
        above.append(top)
    for other in reversed(above):
        _push_mode(other)


def _vocabulary(torch: Any) -> Vocabulary:
    return Vocabulary(
        name=_name,
        device=lambda device: (device_type_name(device.type), device.index or 0),
        dtype=dtype_name,
        link=link_by_sequence_nr,
        is_engine=_runs_backward,
        is_module=torch.nn.Module._call_impl.__code__.__eq__,
        folder=str(Path(torch.__file__).parent),
    )


def _name(op: Any) -> tuple[str, str]:
    schema = getattr(op, "_schema", None)
    if schema is None:
        return f"{getattr(op, 'namespace', 'higher_order')}::{op}", ""
    return schema.name, schema.overload_name


def _is_called_by_python(caller: FrameType | None) -> bool:
    """Whether Python code called an op of the backward pass, and not autograd's engine itself."""
    return caller is not None and not _runs_backward(caller.f_code)


def _runs_backward(code: CodeType) -> bool:
    return code.co_name == "_engine_run_backward"
