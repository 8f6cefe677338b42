"""Whether a cell records everything without being asked to."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from mtprof_nb.capture.activities import resolve_activities
from mtprof_nb.capture.hook import Request
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
