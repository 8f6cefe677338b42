"""Finds the forward op of each op of the backward pass: the op that made the autograd node it runs for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mtprof_nb.capture.buffers.buffered_rows import Rows
from mtprof_nb.model.intervals import covered, innermost, nest_intervals
from mtprof_nb.model.trace import Bool, Int32, Int64


@dataclass(frozen=True)
class Links:
    """For each row: whether it ran in the backward pass, its sequence number, and its forward row, or -1."""

    is_backward: Bool
    #: A number for the node or pass that was running as the row began, -1 for none.
    running: Int64
    sequence_nr: Int64
    forward: Int32


def no_links(rows: Rows) -> Links:
    """Links of a recording without autograd."""
    nothing = np.full(len(rows), -1, np.int64)
    return Links(np.zeros(len(rows), np.bool_), nothing, nothing, nothing.astype(np.int32))


def link_by_node(rows: Rows) -> Links:
    """Link by the identity of nodes: when each was made, and when its backward began. Sequence numbers are by age."""
    running = np.full(len(rows), -1, np.int64)
    is_backward = np.zeros(len(rows), np.bool_)
    made_at, made_by = _makers(rows)
    newest = _newest_node_of_run(rows, made_at)
    sequence_nr = np.full(len(rows), -1, np.int64)
    forward = np.full(len(rows), -1, np.int32)
    sequence_nr[made_by[made_by >= 0]] = np.flatnonzero(made_by >= 0)
    for number, thread in enumerate(rows.threads):
        here = np.flatnonzero(rows.thread == number)
        began, ended = _pairs(thread.backward)
        order = np.argsort(began, kind="stable")
        began, ended = began[order], ended[order]
        is_backward[here] = covered(began, ended, rows.start[here])
        running[here] = innermost(began, ended, nest_intervals(began, ended)[0], rows.start[here])
        _, ran_at = _pairs(thread.ran)
        run = np.searchsorted(ran_at, rows.start[here], side="right") - 1
        passed = np.searchsorted(began, rows.start[here], side="right") - 1
        known = is_backward[here] & (run >= 0) & rows.is_op[here]
        known[known] = ran_at[run[known]] >= began[passed[known]]
        node = newest[number][run[known]]
        here = here[known]
        sequence_nr[here] = node
        forward[here] = np.where(node >= 0, made_by[node] if len(made_by) else -1, -1)
    return Links(is_backward, running, sequence_nr, forward)


def _pairs(flat: list[int]) -> tuple[Int64, Int64]:
    values = np.array(flat[: len(flat) // 2 * 2], np.int64)
    return values[::2], values[1::2]


def _makers(rows: Rows) -> tuple[list[tuple[int, int]], Int64]:
    """(time, identity) of every node by age, and the op that made it: the last one to end before, or around it."""
    made: list[tuple[int, int, int]] = []
    for number, thread in enumerate(rows.threads):
        here = np.flatnonzero((rows.thread == number) & rows.is_op)
        identity, time = _pairs(thread.made)
        maker = _last_ended(rows, here, time)
        made += zip(time.tolist(), identity.tolist(), maker.tolist(), strict=True)
    made.sort()
    return [(time, identity) for time, identity, _ in made], np.array([maker for *_, maker in made], np.int64)


def _last_ended(rows: Rows, here: Int64, times: Int64) -> Int64:
    if not len(here):
        return np.full(len(times), -1, np.int64)
    start, end = rows.start[here], rows.end[here]
    by_end = np.argsort(end, kind="stable")
    last = np.searchsorted(end[by_end], times, side="right") - 1
    ended = np.where(last >= 0, by_end[last], -1)
    parents, _ = nest_intervals(start, end)
    around = innermost(start, end, parents, times)
    # The op around the moment made the node, unless an op inside it, of another name, has ended before.
    names = [rows.ops["name"][op] for op in rows.op[here].tolist()]
    is_inside = (ended >= 0) & (around >= 0) & (start[ended] >= start[around])
    same = np.array([names[a] == names[b] for a, b in zip(around.tolist(), ended.tolist(), strict=True)], np.bool_)
    chosen = np.where((around >= 0) & (~is_inside | same), around, ended)
    return np.where(chosen >= 0, here[chosen], -1)


def _newest_node_of_run(rows: Rows, made_at: list[tuple[int, int]]) -> list[Int64]:
    """For each thread's runs, the node that ran: the newest of that identity; -1 for one made before the window."""
    nodes = [np.full(len(thread.ran) // 2, -1, np.int64) for thread in rows.threads]
    runs = [
        (time, 1, identity, thread, position)
        for thread, record in enumerate(rows.threads)
        for position, (identity, time) in enumerate(zip(*(part.tolist() for part in _pairs(record.ran)), strict=True))
    ]
    births = [(time, 0, identity, 0, node) for node, (time, identity) in enumerate(made_at)]
    newest: dict[int, int] = {}
    for _, is_run, identity, thread, position in sorted(runs + births):
        if is_run:
            nodes[thread][position] = newest.get(identity, -1)
        else:
            newest[identity] = position
    return nodes
