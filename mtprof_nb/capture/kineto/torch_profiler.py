"""PyTorch's low-level profiler, which runs Kineto: its configuration, its state, and its scopes."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Iterable
from typing import Any

from mtprof_nb.capture.activities import DEVICES
from mtprof_nb.capture.hook import Request
from mtprof_nb.errors import HookError, warn

#: The first version whose Kineto can record all threads and filter activities.
_OLDEST = "2.12"
#: Torch's name of an activity, where ours is another.
_TORCH_ACTIVITY = {"NPU": "PrivateUse1"}
#: Recorders of torch.profiler beside Kineto, which `custom_profiler_config` asks for.
_OTHER_BACKENDS = ("cuspy", "cupti_monitor")
#: Scopes that outlived their recording, kept for good: leaving or freeing one makes Kineto write into freed memory.
_OUTLIVED: list[Any] = []


def check_torch(torch: Any) -> None:
    """`HookError` where this PyTorch has no Kineto, or too old a one."""
    if not torch.profiler.kineto_available():
        msg = "this build of PyTorch has no Kineto: use hook='dispatch'"
        raise HookError(msg)
    if torch.__version__ < _OLDEST:
        remedy = "upgrade, build the native recorder (python -m mtprof_nb build), or use hook='dispatch'"
        msg = f"hook 'kineto' needs PyTorch {_OLDEST}, and this is {torch.__version__}: {remedy}"
        raise HookError(msg)


def is_active(torch: Any) -> bool:
    """Whether any torch profiler is recording, on this thread or on all."""
    autograd = torch.autograd
    return bool(autograd._profiler_enabled() or autograd.profiler._is_profiler_enabled)


def activities_of(torch: Any, names: Iterable[str]) -> set[Any]:
    return {getattr(torch.profiler.ProfilerActivity, _TORCH_ACTIVITY.get(name, name)) for name in names}


def make_profiler(torch: Any, request: Request, *, all_threads: bool, with_python: bool) -> Any:
    """Torch's low-level profiler for one recording."""
    recorded, filters = request.recorded, request.activity_filters
    supported = torch.profiler.supported_activities()
    wanted = [name for name in DEVICES if name in request.activities]
    device = next((name for name in wanted if activities_of(torch, [name]) <= supported), None)
    device_module = {"NPU": torch._C._get_privateuse1_backend_name()}
    return torch.autograd.profiler.profile(
        use_kineto=True,
        use_cpu="CPU" in request.activities,
        use_device=device_module.get(device, device.lower()) if device else None,
        record_shapes=recorded.record_shapes,
        with_flops=recorded.with_flops,
        profile_memory=recorded.profile_memory,
        with_stack=with_python,
        experimental_config=_experimental_config(torch, request.experimental_config, all_threads),
        custom_trace_id_callback=lambda: request.trace_id,
        activity_filters={activities_of(torch, [name]).pop(): set(kinds) for name, kinds in filters.items()},
    )


def _experimental_config(torch: Any, config: Any, all_threads: bool) -> Any:
    """The user's config without what cannot work here, or else one of ours."""
    if config is None:
        return torch._C._profiler._ExperimentalConfig(profile_all_threads=all_threads)
    asked = config.custom_profiler_config
    if any(backend in asked for backend in _OTHER_BACKENDS):
        msg = f"custom_profiler_config={asked!r} asks for another recorder: leave it out, or use torch.profiler"
        raise HookError(msg)
    if config.trace_only:
        warn("trace_only=True has no effect: a trace is written from its events, so events() works; leave it out")
        config = copy.copy(config)
        config.trace_only = False
    return config


def asks_for_all_threads(config: Any) -> bool:
    """Whether torch's config was made with `profile_all_threads`, which only its pickled state tells."""
    with_it, without_it = (type(config)(profile_all_threads=choice).__getstate__() for choice in (True, False))
    states = zip(config.__getstate__(), with_it, without_it, strict=True)
    return all(asked == chosen for asked, chosen, other in states if chosen != other)


class KinetoScope:
    """Torch's `record_function`, which is not left once `is_recording()` is False. While open it is in `opened`."""

    def __init__(self, scope: Any, is_recording: Callable[[], bool], opened: set[KinetoScope]) -> None:
        self.name: str = scope.name
        self.native_id = 0
        self._scope = scope
        self._is_recording = is_recording
        self._opened = opened

    def __enter__(self) -> None:
        self.native_id = threading.get_native_id()
        self._opened.add(self)
        try:
            self._scope.__enter__()
        except BaseException:
            self._opened.discard(self)
            raise

    def __exit__(self, *exception: Any) -> None:
        if self._is_recording():
            self._opened.discard(self)
            self._scope.__exit__(*exception)

    def outlive(self) -> None:
        """Keep torch's scope open for good: its recording has ended."""
        _OUTLIVED.append(self._scope)
