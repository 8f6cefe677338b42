"""Facts that the tabs of one panel share: the trace, and the options for showing it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from mtprof_nb.model.trace import Trace

#: What a tab is asked and what it answers: plain values, lists and dicts, as JSON has them.
Question = Mapping[str, Any]
Answer = dict[str, Any]


@dataclass(frozen=True, eq=False)
class Scene:
    """One panel's view of a trace."""

    trace: Trace
    #: What the profile is called, None for the trace's own label.
    name: str | None = None
    #: How the recorded program ended, where it did not end well.
    status: str | None = None
    #: The column of the operators table that is sorted by at first.
    sort: str = "self_ns"
    #: Rows of the operators table that are shown at first, None for all.
    limit: int | None = None
    #: Whether Python frames are shown, IPython's included.
    show_all: bool = False


class Tab(Protocol):
    """One tab of the panel. Its ES module has its name, lies beside it, and draws what it answers."""

    def __init__(self, scene: Scene) -> None: ...

    def first(self) -> Answer:
        """The content drawn at first, which is saved with the notebook; `{"empty": reason}` where there is no data."""

    def answer(self, question: Question) -> Answer:
        """The answer to a question of the ES module."""
