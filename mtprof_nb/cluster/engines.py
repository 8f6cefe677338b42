"""Engines of a cluster: what they answer, and why one does not."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from mtprof_nb.errors import MtprofError

Answer = TypeVar("Answer")
_MISSING_PACKAGE = ("ModuleNotFoundError", "ImportError")


class RanksError(MtprofError, RuntimeError):
    """Code cannot be recorded on the engines: none is there, or they lack what is needed."""


@dataclass(frozen=True)
class Answers(Generic[Answer]):
    """The answers of engines by their ids, and for engines without an answer the reason, as `it died`."""

    given: dict[int, Answer]
    missing: dict[int, str]

    @property
    def reasons(self) -> str:
        """Why engines have no answer, in one line."""
        return "; ".join(f"engine {engine}: {why}" for engine, why in self.missing.items())


class Engines:
    """The engines that a view of ipyparallel is of, in the order of their ids."""

    def __init__(self, view: Any) -> None:
        self._client = view.client
        wanted = view.targets
        known = list(self._client.ids)
        self.ids: list[int] = known if wanted in (None, "all") else [wanted] if isinstance(wanted, int) else [*wanted]
        if not self.ids:
            msg = "the cluster has no engines: start some with ipyparallel.Cluster(n=2).start_and_connect_sync()"
            raise RanksError(msg)

    def only(self, engine: int) -> Engines:
        """One of these engines."""
        one = copy(self)
        one.ids = [engine]
        return one

    def ask(self, function: Callable[..., Answer], *arguments: Any, patience_s: float | None = None) -> Answers[Answer]:
        """Call `function` on each engine, and wait for all; at most `patience_s` seconds where that is given."""
        return self._asked(function, dict.fromkeys(self.ids, arguments), patience_s)

    def ask_all(self, function: Callable[..., Answer], *arguments: Any) -> list[Answer]:
        """The answer of each engine, in their order. `RanksError` names an engine that has none."""
        return self._all(self.ask(function, *arguments))

    def ask_each(self, function: Callable[..., Answer], own: Mapping[int, Any], *arguments: Any) -> list[Answer]:
        """As `ask_all`, with a first argument of its own for each engine."""
        return self._all(self._asked(function, {engine: (own[engine], *arguments) for engine in self.ids}, None))

    def interrupt(self) -> None:
        """Interrupt what the engines are doing."""
        self._client.send_signal("SIGINT", targets=self.ids, block=True)

    def _asked(
        self, function: Callable[..., Answer], arguments: Mapping[int, tuple[Any, ...]], patience_s: float | None
    ) -> Answers[Answer]:
        asked, missing = dict[int, Any](), dict[int, str]()
        for engine, own in arguments.items():
            try:
                asked[engine] = self._client[engine].apply_async(function, *own)
            except Exception as error:
                # ipyparallel has an IndexError for an engine that is gone.
                missing[engine] = "it died" if isinstance(error, IndexError) else str(error)
        given = dict[int, Answer]()
        deadline = None if patience_s is None else time.monotonic() + patience_s
        for engine, result in asked.items():
            try:
                left = None if deadline is None else max(deadline - time.monotonic(), 0.01)
                given[engine] = result.get(timeout=left)
            except Exception as error:
                missing[engine] = reason(error)
        return Answers(given, dict(sorted(missing.items())))

    def _all(self, answers: Answers[Answer]) -> list[Answer]:
        if answers.missing:
            engine, why = next(iter(answers.missing.items()))
            msg = f"engine {engine} cannot be used: {why}"
            raise RanksError(msg)
        return [answers.given[engine] for engine in self.ids]


def reason(error: BaseException) -> str:
    """Why an engine did not answer, for a sentence about it."""
    name = getattr(error, "ename", type(error).__name__)
    if name == "TimeoutError":
        return "it does not answer; it may be waiting for another rank in a collective: restart the cluster"
    if name == "EngineError":
        return "it died"
    if name in _MISSING_PACKAGE:
        return f"{getattr(error, 'evalue', error)}: install mtprof_nb where the engines run"
    return f"{name}: {getattr(error, 'evalue', error)}"
