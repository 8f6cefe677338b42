"""The registry of rules."""

from __future__ import annotations

from collections.abc import Callable

from mtprof_nb.advice.finding import Finding
from mtprof_nb.model.trace import Trace

#: A rule returns what it found, or None: also if it is not sure, or if the recording lacks what it needs.
Rule = Callable[[Trace], Finding | None]
#: The rules by name, in the order in which their modules are imported.
RULES: dict[str, Rule] = {}


def rule(find: Rule) -> Rule:
    """Register a rule under the name of its function; `ValueError` if the name is taken."""
    if find.__name__ in RULES:
        msg = f"there is a rule {find.__name__!r} already: choose another name"
        raise ValueError(msg)
    RULES[find.__name__] = find
    return find
