"""Options with which the reliability tests record, and checks that a recording is whole."""

import contextlib
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import leftovers
import torch
from recording import EVERY_FLAG

import mtprof_nb as mtp
from mtprof_nb.capture.native.recorder_loading import why_not

PACKAGE = Path(mtp.__file__).parent
#: Hooks of PyTorch, bare and with all that they can record.
RECORDINGS: list[dict[str, Any]] = [
    {"hook": "kineto"},
    {"hook": "kineto", **EVERY_FLAG},
    *([{"hook": "native"}, {"hook": "native", **EVERY_FLAG}] if why_not() is None else []),
]
IDS = [f"{one['hook']}{'-every-flag' if len(one) > 1 else ''}" for one in RECORDINGS]


def names(prof: mtp.profile) -> list[str]:
    """The name of each event."""
    return [prof.trace.names[name] for name in prof.trace.name]


def assert_next_profile_is_complete(**options: Any) -> None:
    """A recording now has exactly what it runs."""
    x = torch.eye(2)
    with mtp.profile(**options) as prof, mtp.record_function("next"):
        torch.mm(x, x)
    found = names(prof)
    assert (found.count("aten::mm"), found.count("next")) == (1, 1), found


@contextlib.contextmanager
def nothing_left() -> Iterator[None]:
    """Nothing active, installed or patched at the end."""
    before = leftovers.snapshot()
    yield
    left = leftovers.close(before)
    assert not left, left


class InterruptBeforeLine:
    """Interrupts this process before the n-th line of the package that runs inside; counts them where n is 0.

    `parts` of the package are all that is looked at where some are named.
    """

    #: The signal that is sent.
    number = signal.SIGINT

    def __init__(self, line: int, *parts: str) -> None:
        self.line = line
        self.seen = 0
        self._files = tuple(str(PACKAGE / part) for part in parts or ("",))

    def __enter__(self) -> "InterruptBeforeLine":
        sys.settrace(self._enter)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)

    def _enter(self, frame: FrameType, _event: str, _argument: Any) -> Any:
        # Python itself looks for signals only at calls and loops: not between the lines of these two's `finally`.
        is_left_out = frame.f_code.co_name in ("collector_paused", "collected_warnings")
        return self._step if frame.f_code.co_filename.startswith(self._files) and not is_left_out else None

    def _step(self, _frame: FrameType, event: str, _argument: Any) -> Any:
        if event == "line":
            self.seen += 1
            if self.seen == self.line:
                signal.raise_signal(self.number)
        return self._step
