"""Samples of Python stacks by the native recorder."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from mtprof_nb.capture.native.native_stacks import NODE_TYPES, frames_of_nodes
from mtprof_nb.capture.native.recorder_loading import recorder
from mtprof_nb.capture.samples.python_stacks import is_user_thread, running_cell
from mtprof_nb.capture.samples.sampled_stacks import PERIOD_NS, SampledStacks
from mtprof_nb.model.trace import Bool, Columns, Int64

_TYPES: dict[str, npt.DTypeLike] = {
    **dict.fromkeys(("asked", "taken", "thread", "awake", "computed"), np.int64),
    "node": np.int32,
    "is_waiting": np.bool_,
    "certainty": np.int8,
    **NODE_TYPES,
}
#: A larger share of lost samples is worth a word.
_MOST_LOST = 0.05


class NativeSampler:
    """Lets the native recorder look at all threads every few milliseconds."""

    def __init__(self, module: Any) -> None:
        self._recorder = module

    @classmethod
    def if_built(cls) -> NativeSampler | None:
        """The sampler; None where the recorder is not built, or cannot read the frames of this Python."""
        module = recorder()
        return cls(module) if module is not None and module.reads_frames else None

    @classmethod
    def started(cls) -> NativeSampler | None:
        """A sampler that runs; None where `if_built` is None, or the system forbids it."""
        sampler = cls.if_built()
        return sampler if sampler is not None and sampler.start() else None

    def start(self) -> bool:
        """Look at the threads from now on; False where the system forbids it."""
        self._recorder.stop_sampler()  # one whose end has failed, as in a thread at the limit of recursion
        return bool(self._recorder.start_sampler(PERIOD_NS, running_cell()))

    def stop(self) -> SampledStacks | None:
        """The samples; None where it was not started."""
        raw = self._recorder.stop_sampler()
        return None if raw is None else _read(raw)

    def abandon(self) -> None:
        """End it and keep nothing, also in a forked child."""
        self._recorder.stop_sampler()


def _read(raw: dict[str, Any]) -> SampledStacks:
    columns = {**raw, **{name: np.frombuffer(raw[name], dtype) for name, dtype in _TYPES.items()}}
    parents = columns["node_parent"].tolist()
    stack, tree = frames_of_nodes(columns, parents)
    return SampledStacks(
        asked_ns=columns["asked"],
        taken_ns=columns["taken"],
        thread=columns["thread"],
        stack=stack[columns["node"]],
        is_waiting=columns["is_waiting"],
        awake_ns=_awake(columns),
        computed_ns=columns["computed"],
        is_of_user=_of_user(columns, parents)[columns["node"]],
        certainty=columns["certainty"],
        tree=tree,
        notes=tuple(_notes(raw)),
    )


def _awake(columns: Columns) -> Int64:
    """For how long each thread had been awake.

    The thread that ended the sampler had slept for no longer than it had at the end.
    """
    awake, asleep_at_end = columns["awake"], columns["asleep_at_end"]
    is_bounded = (awake >= 0) & (columns["thread"] == columns["ended_by"]) & (asleep_at_end >= 0)
    corrected: Int64 = np.where(is_bounded, np.maximum(awake, columns["taken"] - asleep_at_end), awake)
    return corrected


def _notes(raw: dict[str, Any]) -> Iterator[str]:
    if raw["cut"]:
        yield (
            f"In {raw['cut']:,} samples the Python stack was over 4,000 calls deep: the outermost were left out, and "
            "their functions lack that time"
        )
    if raw["lost"] > _MOST_LOST * len(raw["asked"]) / np.dtype(np.int64).itemsize:
        yield f"{raw['lost']:,} samples of Python code were lost: memory was short, or a stack could not be read"


def _of_user(columns: Columns, parents: list[int]) -> Bool:
    """For each node, and last for none, whether it is of a thread that runs the user's code."""
    codes = columns["codes"]
    of_user: list[bool | None] = [None] * (len(parents) + 1)
    for node, (parent, code) in enumerate(zip(parents, columns["node_code"].tolist(), strict=True)):
        of_user[node] = is_user_thread(codes[code][0], codes[code][1], of_user[parent])
    return np.array([each is not False for each in of_user], np.bool_)
