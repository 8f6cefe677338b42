"""The time of each Python function, its own and in total: in ops, in Python code and in waiting."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mtprof_nb.analysis.functions.thread_time import StackTime, stack_time
from mtprof_nb.analysis.groups import sums
from mtprof_nb.analysis.stacks.stack_metrics import with_called
from mtprof_nb.model.records import LATER, MOVING
from mtprof_nb.model.stack_tree import has_above
from mtprof_nb.model.trace import Int32, Int64, StackTree, Trace


@dataclass(frozen=True, eq=False)
class FunctionCosts:
    """Costs of functions by their numbers. The last entry has the time without a known function."""

    #: Time in ops that the function itself called, in its own Python code, and in waiting there.
    ops_ns: Int64
    python_ns: Int64
    waiting_ns: Int64
    #: All time while the function was on the stack, once where it calls itself.
    total_ns: Int64
    #: In 95 of 100 recordings, the part that samples estimate is wrong by no more than this. NaN: not known.
    error_ns: npt.NDArray[np.float64]
    #: Samples in which the function itself was running.
    samples: Int64


def function_costs(trace: Trace, function_of: Sequence[int], count: int) -> FunctionCosts | None:
    """The costs of `count` functions; None without samples.

    `function_of` has the number of its function for each of the frames of `trace.stacks`.
    """
    time, tree = stack_time(trace), trace.stacks
    if time is None or tree is None:
        return None
    functions = np.array([*function_of, count], np.int32)  # the last is for no frame
    own = np.append(functions[tree.frame], np.int32(count))[time.stack]
    total_ns = sums(_outermost(tree, functions), _inclusive(time, tree), count + 1)
    total_ns[count] = int(time.total_ns[time.stack < 0].sum())
    return FunctionCosts(
        ops_ns=sums(own, time.ops_ns, count + 1),
        python_ns=sums(own, time.python_ns, count + 1),
        waiting_ns=sums(own, time.waiting_ns, count + 1),
        total_ns=total_ns,
        error_ns=sample_errors(time, time.total_ns, own, count + 1),
        samples=np.bincount(own[time.is_estimate], minlength=count + 1).astype(np.int64),
    )


def _inclusive(time: StackTime, tree: StackTree) -> Int64:
    """For each node of `tree` its time and that of all stacks on top of it."""
    has_stack = time.stack >= 0
    own = sums(time.stack[has_stack], time.total_ns[has_stack], len(tree))
    return with_called(tree.parent, own)


def _outermost(tree: StackTree, functions: Int32) -> Int32:
    """For each node its function; the last number, which stands for none, where the function called itself."""
    of_node = functions[tree.frame]
    return np.where(has_above(tree.parent.tolist(), of_node.tolist()), functions[-1], of_node)


def sample_errors(time: StackTime, times_ns: Int64, own: Int32, count: int) -> npt.NDArray[np.float64]:
    """Errors of `times_ns`, summed by `own`: two standard errors, and samples that may be of the call before or after.

    Each run of samples in a row is wrong by about the time that one sample stands for. So are the calls that no sample
    saw: a function without samples may have run for that long, too.
    """
    chosen = np.flatnonzero(time.is_estimate)
    if not len(chosen):
        return np.zeros(count)
    spent_ns = times_ns[chosen].astype(np.float64)
    _, first, run = np.unique(time.run[chosen], return_index=True, return_inverse=True)
    length = np.bincount(run)
    squares = np.full(count, (spent_ns.sum() / max(np.count_nonzero(spent_ns), 1)) ** 2)
    np.add.at(squares, own[chosen[first]], (np.bincount(run, spent_ns) / length) ** 2)
    certainty = time.certainty[chosen]
    moved_ns = np.bincount(own[chosen], spent_ns * (certainty == MOVING), minlength=count)
    is_later, is_seen = certainty == LATER, np.bincount(own[chosen], minlength=count) > 0
    is_unknown = (np.bincount(own[chosen], is_later, minlength=count) > 0) | (~is_seen & is_later.any())
    return np.where(is_unknown, np.nan, 2 * np.sqrt(squares) + moved_ns)
