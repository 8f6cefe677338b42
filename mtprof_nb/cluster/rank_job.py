"""`ranks`: code on all engines, recorded together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mtprof_nb.cluster.clock_ping import clock_offsets
from mtprof_nb.cluster.engines import Answers, Engines, RanksError
from mtprof_nb.cluster.gathering import gathered
from mtprof_nb.cluster.on_engine import call, packed_recording, prepare, start, stop_and_pack
from mtprof_nb.model.trace import empty_trace
from mtprof_nb.profiler import remember
from mtprof_nb.recording import Recording

#: After an interrupt, engines have so many seconds to answer.
PATIENCE_S = 10.0


def ranks(view: Any, function: Callable[..., Any] | None = None, /, *args: Any, **options: Any) -> RanksRecording:
    """Record what the engines of an ipyparallel `view` do, as one recording with a process for each rank.

    As a context manager, it records what runs on the engines meanwhile:

        with mtp.ranks(view) as job:
            view.execute("train(1)", block=True)
        job.show()

    With a `function`, it calls that with `args` on each engine: `mtp.ranks(view, train, 1).show()`; `values` then has
    what each call returned. `options` are those of `profile`; by default everything is recorded where that costs
    little. An engine that fails or dies is named in the notes, and the recordings of the others are kept. `RanksError`
    if no engine can record.
    """
    job = RanksRecording(Engines(view), options)
    if function is None:
        return job
    return job.call(function, args)


class RanksRecording(Recording):
    """The recordings of all engines as one; empty until they were brought back."""

    def __init__(self, engines: Engines, options: dict[str, Any]) -> None:
        self._engines = engines
        self._options = {"name": "ranks", **options}
        super().__init__(empty_trace(label=self._options["name"]))
        #: Results of the function by the engine's id; without engines on which it failed.
        self.values: dict[int, Any] = {}
        self._failures: dict[int, str] = {}

    def __enter__(self) -> RanksRecording:
        self._engines.ask_all(prepare)
        self._offsets = clock_offsets(self._engines)
        self._engines.ask_all(start, self._options)
        return self

    def __exit__(self, *failure: object) -> None:
        is_interrupted = isinstance(failure[1], KeyboardInterrupt)
        self._gather(self._engines.ask(stop_and_pack, patience_s=PATIENCE_S if is_interrupted else None))

    def call(self, function: Callable[..., Any], args: tuple[Any, ...]) -> RanksRecording:
        """Call a function on each engine, recorded."""
        self._engines.ask_all(prepare)
        self._offsets = clock_offsets(self._engines)
        try:
            answers = self._engines.ask(call, self._options, function, args)
        except KeyboardInterrupt:
            self._engines.interrupt()
            self._gather(self._engines.ask(packed_recording, patience_s=PATIENCE_S))
            raise
        self.values, self._failures = answers.given, answers.missing
        self._gather(self._engines.ask(packed_recording))
        return self

    def _gather(self, answers: Answers[bytes]) -> None:
        ended = [f"Engine {one} failed: {why}." for one, why in self._failures.items() if one in answers.given]
        recording = gathered(answers, self._offsets, self._options["name"], notes=ended)
        if recording is None:
            msg = f"no engine could record: {answers.reasons}"
            raise RanksError(msg)
        self._trace = recording.trace
        remember(self)
