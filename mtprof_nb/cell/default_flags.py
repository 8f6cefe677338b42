"""Which flags are on by default in a cell."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

from mtprof_nb.capture.activities import resolve_activities
from mtprof_nb.capture.hook import Request
from mtprof_nb.capture.native.native_sampler import NativeSampler
from mtprof_nb.capture.registry import hooks_for
from mtprof_nb.errors import HookError, collected_warnings


def records_everything(hook: str, activities: Iterable[Any] | None) -> bool:
    """Whether all hooks that would record a cell now record everything at little cost.

    False if no runtime is imported yet. Options that cannot work are reported where the recording starts, not here.
    """
    with suppress(HookError, ValueError), collected_warnings([]):
        usable, filters = resolve_activities(activities)
        kinds = hooks_for(hook, Request(activities=usable, activity_filters=dict(filters)))
        return bool(kinds) and all(kind.is_cheap and kind.runtime_is_imported for kind in kinds)
    return False


def samples_python() -> bool:
    """Whether the native recorder takes samples of Python stacks now, which costs little with any hook."""
    return NativeSampler.if_built() is not None


def marks_functions(options: Mapping[str, Any]) -> bool:
    """Whether a recording with these options for `profile` needs the lines inside functions marked.

    Exact stacks have the lines of ops, and samples the time outside ops: with both, marks would only add cost.
    """
    is_exact = options["with_stack"] and records_everything(options["hook"], options["activities"])
    return not (is_exact and options["with_python"])
