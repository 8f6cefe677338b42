"""The phase of each event, and the forward op of each event of the backward pass, from autograd's nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from mtprof_nb.building.closures import OF_OPTIMIZER
from mtprof_nb.building.phases import phases
from mtprof_nb.building.recorded_events import RecordedEvents
from mtprof_nb.model.trace import ENGINE_PREFIX, Bool, Int8, Int32, Int64, on_device

#: How Kineto's name of the Python call of a module begins.
_MODULE_PREFIX = "nn.Module: "
#: The node that `backward` makes above several roots, and the node of a function in C++, which need not be an op.
_GRAPH_ROOT, _IN_CPP = "torch::autograd::GraphRoot", "torch::autograd::CppNode"
#: Inside a function of TorchScript, the ops that autograd sees as one.
_OF_SCRIPT = "<forward op>"
#: For rows of nodes, the `number` of the thread on which each was made.
ForwardThreads = Callable[[Int64], Int64]


@dataclass(frozen=True)
class NodeLinks:
    """Phase and forward event of each event, and the autograd node (an event) that it ran under, or -1."""

    phase: Int8
    forward: Int32
    node: Int32

    def lacking_python(self, began_ns: Int64, start_ns: Int64) -> Bool:
        """Events with a forward event, and without Python of their own.

        The Python call that was running on their thread, since `began_ns`, began before their node did.
        """
        node_start_ns = np.where(self.node >= 0, start_ns[self.node], np.iinfo(np.int64).min)
        return (self.forward >= 0) & (began_ns < node_start_ns)


def link(
    columns: RecordedEvents,
    forward_threads: ForwardThreads,
    counters: Mapping[int, int] = MappingProxyType({}),
    flows: Int32 | None = None,
    in_module: Bool | None = None,
) -> NodeLinks:
    """Phases by enclosing scope and autograd's nodes; forward ops by thread and sequence number.

    `forward_threads` returns, for rows of nodes, the numbers of the threads that made them. `counters` has autograd's
    next number at the end of the recording, by native thread, as far as it is known. `flows` has the forward
    op of each node for which another recorder found it, and -1 for all others. `in_module` has the events that ran
    inside the call of a module, where there are no Python calls that show it.

    An op carries the number that the next node gets, whether it makes that node or not:
    - The forward op of a node is the last-starting op with the node's number that is no node itself.
    - An op that makes several nodes, such as a write into a view, carries the number of the first. No op carries the
      numbers of the others: the forward op of each is the op with the largest number below.
    - The node of ops that a function of TorchScript runs is made before them: the ops have the number that follows.
    - A node that is older than the recording has a smaller number than all ops of its thread, and no forward op.
    - Ops of a backward pass have numbers only where they make nodes: in a checkpoint, which runs its function again,
      and for gradients of gradients.
    """
    is_wrapper = ~on_device(columns.kind) & columns.where_name(lambda name: name.startswith(ENGINE_PREFIX))
    is_engine = is_wrapper | columns.is_backward_node
    intervals = columns.intervals
    node = intervals.innermost(is_engine).astype(np.int32)
    forward_of_node = _forward_of_nodes(columns, is_engine, forward_threads)
    if flows is not None:
        forward_of_node[:-1] = np.where(flows >= 0, flows, forward_of_node[:-1])
        wrapper = intervals.parents(is_engine)
        inner = np.flatnonzero((flows >= 0) & (wrapper >= 0) & is_wrapper[wrapper])
        forward_of_node[wrapper[inner]] = flows[inner]
    recorded = _recorded_by_autograd(columns, columns.is_op & ~is_engine, forward_of_node, counters)
    # A step may run inside a node (in a hook), and a backward pass inside a step (in a closure): the inner one counts,
    # which comes later in the order of events.
    step = intervals.innermost(columns.scopes_of(OF_OPTIMIZER))
    in_step = step > node
    is_backward = (node > step) | intervals.inside(_root_gradients(columns, is_engine))
    if in_module is None:
        is_module = columns.where_name(lambda name: name.startswith(_MODULE_PREFIX))
        in_module = intervals.inside(columns.is_python & is_module)
    forward = np.where((node >= 0) & ~in_step, forward_of_node[node], -1).astype(np.int32)
    return NodeLinks(phases(columns, recorded, is_backward, in_step, in_module), forward, node)


def _recorded_by_autograd(
    columns: RecordedEvents, is_op: Bool, forward_of_node: Int32, counters: Mapping[int, int]
) -> Bool:
    """Ops for which autograd made a node, and all ops around and inside them.

    Of the ops with one number, the last made the node, if the number of the next op is larger.
    """
    made = np.zeros(len(columns), np.bool_)
    made[forward_of_node[forward_of_node >= 0]] = True
    of_roots = columns.sequence_nr[_is_node_of(columns, _GRAPH_ROOT)]
    for rows in columns.intervals.by_thread(is_op):
        makers = rows[columns.sequence_nr[rows] >= 0]
        numbers = columns.sequence_nr[makers]
        native_id = columns.threads[columns.thread[rows[0]]].native_id
        following = np.append(numbers[1:], counters.get(native_id, 0))
        made[makers] |= (following > numbers) & ~np.isin(numbers, of_roots)
    return made | columns.intervals.spread(is_op, made)


def _root_gradients(columns: RecordedEvents, is_engine: Bool) -> Bool:
    """The `ones_like` that `backward()` runs for a scalar, directly before the first autograd node.

    Nodes of a device run on a thread of autograd's engine, so the first node may be on another thread.
    """
    roots = np.zeros(len(columns), np.bool_)
    candidates = columns.where_name("aten::ones_like".__eq__)
    if not candidates.any() or not is_engine.any():
        return roots
    for rows in columns.intervals.by_thread(candidates & columns.is_op):
        next_ops = np.flatnonzero((columns.is_op & (columns.thread == columns.thread[rows[0]])) | is_engine)
        following = np.searchsorted(columns.start_ns[next_ops], columns.end_ns[rows], side="left")
        has_next = following < len(next_ops)
        roots[rows[has_next]] = is_engine[next_ops[following[has_next]]]
    return roots


def _is_node_of(columns: RecordedEvents, kind: str) -> Bool:
    """Events of nodes whose name begins with `kind`, and the engine's events around them."""
    return columns.where_name(lambda name: name.removeprefix(ENGINE_PREFIX).startswith(kind))


def _forward_of_nodes(columns: RecordedEvents, is_engine: Bool, forward_threads: ForwardThreads) -> Int32:
    forward = np.full(len(columns) + 1, -1, np.int32)
    numbers = _numbers(columns, is_engine)
    nodes = np.flatnonzero(is_engine & (numbers >= 0))
    makers = np.flatnonzero(columns.is_op & ~is_engine & (numbers >= 0))
    if not len(nodes) or not len(makers):
        return forward
    kineto_threads = np.array([thread.number for thread in columns.threads])
    forward_thread = forward_threads(nodes)
    width = int(numbers.max()) + 1
    maker_key = kineto_threads[columns.thread[makers]] * width + numbers[makers]
    order = np.lexsort((columns.start_ns[makers], maker_key))
    makers, maker_key = makers[order], maker_key[order]
    node_key = forward_thread * width + numbers[nodes]
    last = np.maximum(np.searchsorted(maker_key, node_key, side="right") - 1, 0)
    has_maker = maker_key[last] == node_key
    below = (maker_key[last] < node_key) & (maker_key[last] // width == forward_thread)
    has_maker |= below & ~_is_node_of(columns, _IN_CPP)[nodes]
    has_maker &= ~_is_node_of(columns, _GRAPH_ROOT)[nodes]
    forward[nodes[has_maker]] = makers[last[has_maker]]
    return forward


def _numbers(columns: RecordedEvents, is_engine: Bool) -> Int64:
    """The number of each event; of the ops of a script, that of their node, which is made just before the last op."""
    is_script = columns.where_name(_OF_SCRIPT.__eq__)
    if not is_script.any():
        return columns.sequence_nr
    numbers = columns.sequence_nr.copy()
    for rows in columns.intervals.by_thread(~is_engine & ((numbers >= 0) | is_script)):
        before = np.append(-1, numbers[rows[:-1]])
        scripts = is_script[rows] & (before > 0)
        numbers[rows[scripts]] = before[scripts] - 1
    return numbers
