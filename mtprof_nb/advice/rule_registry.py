"""The registry of rules."""

from __future__ import annotations

from collections.abc import Callable

from mtprof_nb.advice.finding import Finding
from mtprof_nb.model.trace import Trace

#: A rule returns what it found, or None: also if it is not sure, or if the recording lacks what it needs.
Rule = Callable[[Trace], Finding | None]
#: The rules by name, in the order in which their modules are imported.
RULES: dict[str, Rule] = {}
#: The rules for recordings of several processes.
RULES_OF_PROCESSES: dict[str, Rule] = {}


def rule(find: Rule) -> Rule:
    """Register a rule under the name of its function; `ValueError` if the name is taken."""
    return _registered(find, RULES)


def rule_of_processes(find: Rule) -> Rule:
    """Register a rule for recordings of several processes."""
    return _registered(find, RULES_OF_PROCESSES)


def _registered(find: Rule, rules: dict[str, Rule]) -> Rule:
    if find.__name__ in rules:
        msg = f"there is a rule {find.__name__!r} already: choose another name"
        raise ValueError(msg)
    rules[find.__name__] = find
    return find
