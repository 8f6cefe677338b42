"""An interactive profiler for tensor programs in Jupyter notebooks."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mtprof_nb.capture.activities import ProfilerActivity, supported_activities
    from mtprof_nb.capture.native.recorder_build import build_recorder
    from mtprof_nb.capture.schedule import ProfilerAction, schedule
    from mtprof_nb.capture.session import record_function, step, steps
    from mtprof_nb.cluster.engines import RanksError
    from mtprof_nb.cluster.rank_group import init_ranks
    from mtprof_nb.cluster.rank_job import ranks
    from mtprof_nb.comparing import Comparison, compare
    from mtprof_nb.errors import BuildError, ExportError, HookError, LoadError, MtprofError, MtprofWarning, SessionError
    from mtprof_nb.export.tensorboard import tensorboard_trace_handler
    from mtprof_nb.loading.recordings import load
    from mtprof_nb.model.trace import Trace
    from mtprof_nb.profiler import active, last, profile

__version__ = "0.1.0"

__all__ = [
    "BuildError",
    "Comparison",
    "ExportError",
    "HookError",
    "LoadError",
    "MtprofError",
    "MtprofWarning",
    "ProfilerAction",
    "ProfilerActivity",
    "RanksError",
    "SessionError",
    "Trace",
    "active",
    "build_recorder",
    "compare",
    "init_ranks",
    "last",
    "load",
    "load_ipython_extension",
    "profile",
    "ranks",
    "record_function",
    "schedule",
    "step",
    "steps",
    "supported_activities",
    "tensorboard_trace_handler",
    "unload_ipython_extension",
]

#: Public names by module.
_NAMES = {
    "capture.activities": ("ProfilerActivity", "supported_activities"),
    "capture.native.recorder_build": ("build_recorder",),
    "capture.schedule": ("ProfilerAction", "schedule"),
    "capture.session": ("record_function", "step", "steps"),
    "comparing": ("Comparison", "compare"),
    "errors": ("BuildError", "ExportError", "HookError", "LoadError", "MtprofError", "MtprofWarning", "SessionError"),
    "export.tensorboard": ("tensorboard_trace_handler",),
    "loading.recordings": ("load",),
    "model.trace": ("Trace",),
    "profiler": ("active", "last", "profile"),
    "cluster.engines": ("RanksError",),
    "cluster.rank_group": ("init_ranks",),
    "cluster.rank_job": ("ranks",),
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names}

#: Names of torch.profiler that users of `profile` need as well; they are torch's own objects.
_TORCH_NAMES = (
    "CuspyConfig",
    "DeviceType",
    "ExecutionTraceObserver",
    "PerformanceMetricsConfig",
    "ProfilerActivityConfig",
    "kineto_available",
)


def load_ipython_extension(ip: Any) -> None:
    """`%load_ext mtprof_nb`: add `%%mtprofile`, `%mtprofile`, `%mtprofile_config` and `%mtcompare` to this shell."""
    import_module("mtprof_nb.cell.installation").install(ip, import_module("mtprof_nb.magic").MtprofMagics)


def unload_ipython_extension(ip: Any) -> None:
    """`%unload_ext mtprof_nb`: remove the magics."""
    import_module("mtprof_nb.cell.installation").remove(ip, import_module("mtprof_nb.magic").MtprofMagics)


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: `import mtprof_nb` alone stays light."""
    if name in _MODULES:
        value = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    elif name in _TORCH_NAMES:
        value = _of_torch(name)
    else:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    globals()[name] = value
    return value


def _of_torch(name: str) -> Any:
    try:
        return getattr(import_module("torch.profiler"), name)
    except (ImportError, AttributeError) as error:
        msg = f"mtprof_nb.{name} is torch.profiler's, which is missing here or too old to have it: upgrade PyTorch"
        raise AttributeError(msg) from error


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
