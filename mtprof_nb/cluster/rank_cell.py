"""`%%mtprofile --ranks`: a cell on all engines of the connected cluster, recorded on each, shown as one panel."""

from __future__ import annotations

from collections.abc import Callable, Container
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from IPython.core.error import UsageError

from mtprof_nb.capture.source_texts import cell_label, running_cell_number
from mtprof_nb.cell.cell_recording import CellEnding, print_note
from mtprof_nb.cell.delivery import deliver
from mtprof_nb.cell.flags import Flags, spell
from mtprof_nb.cell.options import OPTIONS, RECORD_FLAGS
from mtprof_nb.cluster.clock_ping import clock_offsets
from mtprof_nb.cluster.engines import Engines, RanksError
from mtprof_nb.cluster.gathering import gathered
from mtprof_nb.cluster.on_engine import RECORDING, packed_recording, prepare
from mtprof_nb.cluster.rank_job import PATIENCE_S
from mtprof_nb.profiler import remember
from mtprof_nb.recording import Recording

if TYPE_CHECKING:
    from collections.abc import Iterator

    from IPython.core.interactiveshell import InteractiveShell

#: Flags that say how to record; the others are about showing.
_OF_ENGINES = (*RECORD_FLAGS, "activities", "hook", "schedule", "max_events", "show_all", "with_python")
_NO_CLUSTER = (
    "--ranks needs a cluster: run `import ipyparallel; rc = ipyparallel.Cluster(n=2).start_and_connect_sync(); "
    "rc.activate()` first (pip install 'mtprof_nb[ranks]' if ipyparallel is missing)"
)


class RankCell:
    """Runs one cell on the engines as `%%px` does: its targets, its output, its errors and its interrupts."""

    def __init__(self, ip: InteractiveShell, flags: Flags, against: Any) -> None:
        self._ip = ip
        self._flags = flags
        self._against = against
        self._px = _parallel_magics(ip)
        self._label = flags.name or cell_label(running_cell_number(ip))

    def run(self, cell: str) -> Recording | None:
        """Run and record the cell, and show the panel below its output, or after the traceback if it failed."""
        __tracebackhide__ = True
        with _targets(self._px, self._flags.targets):
            try:
                engines = Engines(self._px.view)
                engines.ask_all(prepare)
            except RanksError as error:
                raise UsageError(str(error)) from None
            offsets = clock_offsets(engines)
            text = f"%%mtprofile {_spelled(self._flags, self._label)}\n{cell}"
            failure = self._execute(text)
            patience_s = None if self._result_is_there() and failure is None else PATIENCE_S
            answers = engines.ask(packed_recording, patience_s=patience_s)
        recording = gathered(answers, offsets, self._label, text, self._endings(answers.given))
        if recording is None:
            print_note(f"no engine recorded anything ({answers.reasons})")
        else:
            remember(recording)
            act = partial(deliver, self._ip, self._flags, self._against, recording, CellEnding(None, (), False))
            act() if failure is None else _after_cell(self._ip, act)
        if failure is not None:
            raise failure
        return recording

    def _execute(self, text: str) -> Exception | None:
        """Run `text` on the engines; the exception of engines that failed is returned, not raised."""
        try:
            self._px.parallel_execute(text, block=True)
        except Exception as error:
            return error
        return None

    def _result_is_there(self) -> bool:
        """Whether all engines are done: after an interrupt, `%%px` does not wait for them."""
        result = self._px.last_result
        return result is not None and bool(result.ready())

    def _endings(self, recorded: Container[int]) -> list[str]:
        """A sentence for each engine that recorded the cell, and on which it failed."""
        result, sentences = self._px.last_result, []
        with suppress(Exception):
            result.wait(1)
            for one in result.metadata:
                if one.status == "error" and one.error is not None and one.engine_id in recorded:
                    name = getattr(one.error, "ename", type(one.error).__name__)
                    how = "was interrupted" if name == "KeyboardInterrupt" else f"failed with {name}"
                    sentences.append(f"Engine {one.engine_id} {how}: recorded until then.")
        return sentences


def _parallel_magics(ip: InteractiveShell) -> Any:
    """The object behind `%%px`, which knows the connected cluster; `UsageError` without one."""
    px = ip.magics_manager.magics["cell"].get("px")
    magics = getattr(px, "__self__", None)
    if getattr(magics, "view", None) is None:
        raise UsageError(_NO_CLUSTER)
    return magics


@contextmanager
def _targets(px: Any, targets: str | None) -> Iterator[None]:
    """Let `%%px` run on other engines for a while, spelled as its own flag `--targets` is."""
    before = px.view.targets
    px.view.targets = before if targets is None else _engines_named(px, targets)
    try:
        yield
    finally:
        px.view.targets = before


def _engines_named(px: Any, targets: str) -> Any:
    """The engines that the flag `--targets` names; `UsageError` if it names none."""
    try:
        named = px._eval_target_str(targets)
        return named if isinstance(named, int | str) else list(named)
    except (NameError, SyntaxError, TypeError) as error:
        msg = f"{targets!r} names no engines ({error}): write --targets 0:2, [0,1] or all"
        raise UsageError(msg) from None


def _spelled(flags: Flags, label: str) -> str:
    """The flags for the cell on an engine."""
    chosen = [option for option in OPTIONS if option.dest in _OF_ENGINES]
    default = Flags()
    given = [
        spell(option, getattr(flags, option.dest))
        for option in chosen
        if getattr(flags, option.dest) != getattr(default, option.dest)
    ]
    return " ".join([*given, "--quiet", f"--out {RECORDING}", f'--name "{label}"'])


def _after_cell(ip: InteractiveShell, act: Callable[[], None]) -> None:
    """Call `act` once after the traceback of the running cell."""

    def cell_ended(*_: Any) -> None:
        ip.events.unregister("post_run_cell", cell_ended)
        act()

    ip.events.register("post_run_cell", cell_ended)
