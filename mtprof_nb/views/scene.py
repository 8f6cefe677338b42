"""The trace of a panel with its options, and the protocol of a tab."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mtprof_nb.model.trace import Trace

if TYPE_CHECKING:
    from mtprof_nb.comparison.compared import Compared

#: Questions to a tab and its answers: plain values, lists and dicts, as in JSON.
Question = Mapping[str, Any]
Answer = dict[str, Any]
#: The most events of a recording that is sent whole.
#: Of a longer one, Python answers for each window and event.
MOST_SENT = 100_000


@dataclass(frozen=True, eq=False)
class Scene:
    """One panel's view of a trace."""

    trace: Trace
    #: The title of the profile, None for the trace's label.
    name: str | None = None
    #: How the recorded program failed, None if it did not.
    status: str | None = None
    #: The initial sort column of the operators table.
    sort: str = "self_ns"
    #: The initial number of rows of the operators table, None for all.
    limit: int | None = None
    #: Whether Python frames are shown, IPython's included.
    show_all: bool = False
    #: The comparison of the trace with another one, None without one.
    against: Compared | None = None
    #: The device whose memory a page opens with; "" opens the first tab.
    memory_of: str = ""

    @property
    def compared(self) -> Compared:
        """The comparison; `ValueError` without one."""
        if self.against is None:
            msg = "this panel compares nothing: give it a comparison"
            raise ValueError(msg)
        return self.against


class Tab(ABC):
    """One tab of the panel. The ES module of its name, in the same folder, draws its answers."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene

    @abstractmethod
    def first(self) -> Answer:
        """The initial content, which is saved with the notebook; `{"empty": reason}` without data."""

    def answer(self, question: Question) -> Answer | None:
        """The answer to a question of the ES module; None for a whole that is too long to send.

        A page without Python carries wholes of any length: `coarse` asks for less detail.
        """
        raise KeyError(question["ask"])

    def carried(self) -> list[Question]:
        """The questions whose answers a page without Python carries."""
        return []
