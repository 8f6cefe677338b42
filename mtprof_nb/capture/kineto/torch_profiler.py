"""PyTorch's low-level profiler, which runs Kineto: its configuration, its state, and its scopes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from mtprof_nb.capture.activities import DEVICES
from mtprof_nb.capture.hook import Request
from mtprof_nb.errors import HookError

#: Torch's name of an activity, where ours is another.
_TORCH_ACTIVITY = {"NPU": "PrivateUse1"}
#: Recorders of torch.profiler beside Kineto, which `custom_profiler_config` asks for.
_OTHER_BACKENDS = ("cuspy", "cupti_monitor")
#: Scopes that outlived their recording, kept for good: leaving or freeing one makes Kineto write
#: into freed memory.
_OUTLIVED: list[Any] = []


def is_active(torch: Any) -> bool:
    """Whether any torch profiler is recording, on this thread or on all."""
    autograd = torch.autograd
    return bool(autograd._profiler_enabled() or autograd.profiler._is_profiler_enabled)


def activities_of(torch: Any, names: Iterable[str]) -> set[Any]:
    """Torch's members for our names of activities."""
    known = torch.profiler.ProfilerActivity
    return {getattr(known, _TORCH_ACTIVITY.get(name, name)) for name in names}


def check_config(config: Any) -> None:
    """`HookError` where torch's config asks for a recorder beside Kineto."""
    asked = getattr(config, "custom_profiler_config", "")
    if any(backend in asked for backend in _OTHER_BACKENDS):
        msg = f"custom_profiler_config={asked!r} asks for another recorder: leave it out, or use torch.profiler"
        raise HookError(msg)


def make_profiler(torch: Any, request: Request, *, with_python: bool) -> Any:
    """Torch's low-level profiler for one recording."""
    recorded, filters = request.recorded, request.activity_filters
    wanted = [name for name in DEVICES if name in request.activities]
    device = next(iter(wanted), None)
    device_module = {"NPU": torch._C._get_privateuse1_backend_name()}
    # Older versions of PyTorch know no filters.
    chosen = {activities_of(torch, [name]).pop(): set(kinds) for name, kinds in filters.items()}
    return torch.autograd.profiler.profile(
        use_kineto=True,
        use_cpu="CPU" in request.activities,
        use_device=device_module.get(device, device.lower()) if device else None,
        record_shapes=recorded.record_shapes,
        with_flops=recorded.with_flops,
        profile_memory=recorded.profile_memory,
        with_stack=with_python,
        experimental_config=request.experimental_config,
        custom_trace_id_callback=lambda: request.trace_id,
        **({"activity_filters": chosen} if chosen else {}),
    )


@contextmanager
def silent_kineto() -> Iterator[None]:
    """Keep Kineto from printing: it reads its log level once, when it is first prepared."""
    key = "KINETO_LOG_LEVEL"
    is_set = key in os.environ
    os.environ.setdefault(key, "6")
    try:
        yield
    finally:
        if not is_set:
            os.environ.pop(key, None)


class KinetoScope:
    """Torch's `record_function`, which is not left once `is_recording()` is False."""

    def __init__(self, scope: Any, is_recording: Callable[[], bool]) -> None:
        self._scope = scope
        self._is_recording = is_recording

    def __enter__(self) -> None:
        self._scope.__enter__()

    def __exit__(self, *exception: Any) -> None:
        if self._is_recording():
            self._scope.__exit__(*exception)
        else:
            _OUTLIVED.append(self._scope)
