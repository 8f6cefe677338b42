"""Kineto's event tree: Python calls with their exact lines, modules, and the allocator's records."""

from __future__ import annotations

import linecache
import os
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mtprof_nb.building.called_modules import CalledModule
from mtprof_nb.capture.clock import WallClock
from mtprof_nb.capture.kineto.kineto_events import NO_THREAD, PART, legible, read_text
from mtprof_nb.capture.samples.python_stacks import is_hidden_file
from mtprof_nb.model.intervals import innermost, nest_intervals
from mtprof_nb.model.trace import Allocations, Frame, Int32, Int64, StackInterner

_TORCH_OP, _ALLOCATION, _PY_CALL, _PY_C_CALL = 0, 3, 5, 6


@dataclass(frozen=True)
class FlatTree:
    """The nodes of the tree, parents first; `parent` is a position, -1 at a root."""

    nodes: list[Any]
    tag: Int64
    parent: Int64
    #: Given where the wall clock was set during the recording.
    jumped: WallClock | None = None

    @property
    def is_turned(self) -> bool:
        """Whether the wall clock was set back so far that later nodes come first: then the tree is useless."""
        return self.jumped is not None and self.jumped.has_turned

    def straightened(self, times_ns: Int64) -> Int64:
        """Times of nodes without the jump of the wall clock."""
        return times_ns if self.jumped is None else self.jumped.of_session(times_ns)

    def rows(self, *tags: int) -> Int64:
        """Positions of the nodes with one of these tags."""
        return np.flatnonzero(np.isin(self.tag, tags))

    def columns(self, rows: Int64, **attributes: npt.DTypeLike) -> list[npt.NDArray[Any]]:
        """Integer attributes of the nodes at `rows`, each with its dtype."""
        found = [np.empty(len(rows), dtype) for dtype in attributes.values()]
        for first in range(0, len(rows), PART):
            part = [self.nodes[row] for row in rows[first : first + PART].tolist()]
            for attribute, column in zip(attributes, found, strict=True):
                column[first : first + PART] = np.fromiter(map(attrgetter(attribute), part), column.dtype, len(part))
        return found


def flatten(results: Any, jumped: WallClock | None = None) -> FlatTree:
    """The nodes of Kineto's tree, level by level. Parts of a level keep a node in the cache for all its accessors."""
    level = results.experimental_event_tree()
    nodes: list[Any] = []
    tags: list[int] = []
    parents = [np.full(len(level), -1, np.int64)]
    while level:
        first = len(nodes)
        nodes += level
        below: list[Any] = []
        counts: list[int] = []
        for begin in range(0, len(level), PART):
            part = level[begin : begin + PART]
            tags += map(attrgetter("tag.value"), part)
            children = list(map(attrgetter("children"), part))
            counts += map(len, children)
            below += chain.from_iterable(children)
        parents.append(np.repeat(np.arange(first, len(nodes)), counts))
        level = below
    return FlatTree(nodes, np.array(tags, np.int64), np.concatenate(parents), jumped)


@dataclass(frozen=True)
class PythonCalls:
    """Python calls of one Kineto thread, sorted by start, with the stack of the caller of each."""

    start_ns: Int64
    end_ns: Int64
    parent: Int64
    stack: Int32
    module: Int32
    #: The position of each call in the tree.
    node: Int64

    def at(self, times: Int64) -> Int64:
        """The innermost call that was running at each of `times`, or -1."""
        return innermost(self.start_ns, self.end_ns, self.parent, times)

    def innermost_module(self) -> Int32:
        """For each call, the module that it runs in (its own, if it is a module's), or -1."""
        module = self.module.copy()
        above = self.parent.copy()
        while True:
            climbing = np.flatnonzero((module < 0) & (above >= 0))
            if not len(climbing):
                return module
            module[climbing] = self.module[above[climbing]]
            above[climbing] = self.parent[above[climbing]]


@dataclass(frozen=True)
class PythonSide:
    """All Python calls by Kineto thread, the stacks of their callers, and the called modules."""

    threads: dict[int, PythonCalls]
    stacks: StackInterner
    modules: tuple[CalledModule, ...]


class _Paths:
    """Full paths for Kineto's, which are relative to the entries of `sys.path`.

    Kineto keeps the address of a name. Where the code is gone, as after `importlib.reload` or `exec`, any text may be
    at that address: only the name of an existing file or cell is accepted.
    """

    def __init__(self) -> None:
        self._known: dict[str, str | None] = {}

    def frame(self, file: str, line: int, function: str) -> Frame | None:
        """The frame of a call; None where its file is hidden or does not exist."""
        if file not in self._known:
            self._known[file] = self._look_up(file)
        full = self._known[file]
        return None if full is None or is_hidden_file(full) else Frame(full, line, legible(function))

    @staticmethod
    def _look_up(file: str) -> str | None:
        if file.startswith("<"):
            return file if file.isprintable() else None
        folders = [""] if Path(file).is_absolute() else sys.path
        candidates = (str(Path(folder, file).absolute()) for folder in folders if file)
        return next(filter(_is_there, candidates), None)


def _is_there(path: str) -> bool:
    """Whether a file, a cell or a module in an archive has this path; False for text that cannot be a path."""
    around = (path, *map(str, Path(path).parents))
    return path in linecache.cache or any(map(os.path.isfile, around))  # `Path.is_file` fails where a name is too long


def python_side(tree: FlatTree, *, with_modules: bool) -> PythonSide:
    """The Python calls of a recording `with_stack`."""
    rows = tree.rows(_PY_CALL, _PY_C_CALL) if not tree.is_turned else np.empty(0, np.int64)
    thread, start_ns, end_ns = tree.columns(rows, start_tid=np.uint64, start_time_ns=np.int64, end_time_ns=np.int64)
    awake = thread != NO_THREAD
    rows, thread = rows[awake], thread[awake]
    start_ns, end_ns = tree.straightened(start_ns[awake]), tree.straightened(end_ns[awake])
    stack, stacks = _stacks(tree, rows)
    module, modules = _modules(tree, rows) if with_modules else (np.full(len(rows), -1, np.int32), ())
    threads = {}
    for tid in np.unique(thread).tolist():
        here = np.flatnonzero(thread == tid)
        here = here[np.lexsort((-end_ns[here], start_ns[here]))]
        parents, _ = nest_intervals(start_ns[here], end_ns[here])
        threads[tid] = PythonCalls(start_ns[here], end_ns[here], parents, stack[here], module[here], rows[here])
    return PythonSide(threads, stacks, modules)


def _stacks(tree: FlatTree, rows: Int64) -> tuple[Int32, StackInterner]:
    """For each Python call, the stack of its caller.

    A root call has no caller: Kineto gives the call itself as its caller.
    """
    interner = StackInterner()
    enclosing = _nearest_python(tree, rows)
    site, frames = _call_sites(tree, rows)
    is_root_call = (enclosing < 0) & (tree.tag[rows] == _PY_CALL)
    site[is_root_call] = len(frames)
    frames.append(None)
    # The last entry, at position -1, is for calls without a caller.
    made_from = [-1] * (len(tree.nodes) + 1)
    known: dict[tuple[int, int], int] = {}
    # A builtin that calls back has no frame: the function that it calls back has the builtin's caller.
    site_of = np.full(len(tree.nodes) + 1, -1, np.int32)
    site_of[rows] = site
    is_callback = (tree.tag[rows] == _PY_CALL) & (enclosing >= 0) & (tree.tag[enclosing] == _PY_C_CALL)
    is_callback &= site_of[enclosing] == site
    columns = (rows.tolist(), enclosing.tolist(), site.tolist(), is_callback.tolist())
    for row, outer, call_site, called_back in zip(*columns, strict=True):
        node, frame = made_from[outer], frames[call_site]
        if frame is not None and not called_back:
            key = (node, call_site)
            if key not in known:
                known[key] = interner.child(node, frame)
            node = known[key]
        made_from[row] = node
    return np.array(made_from, np.int32)[rows], interner


def running_stacks(tree: FlatTree, side: PythonSide, calls: PythonCalls, at: Int64) -> Int32:
    """The stack of an op that ran directly in each of the calls `at`: a builtin's caller, or the function itself.

    Where torch is called from C, as by `map` or `partial`, the line in the function is not known: its first line is
    taken.
    """
    used, of_used = np.unique(at, return_inverse=True)
    stack = calls.stack[used]
    functions = np.flatnonzero((tree.tag[calls.node[used]] == _PY_CALL) & (calls.parent[used] >= 0))
    names = read_text(attrgetter("name"), [tree.nodes[node] for node in calls.node[used[functions]].tolist()])
    paths = _Paths()
    frames = {name: _function(name, paths) for name in set(names)}
    for index, name in zip(functions.tolist(), names, strict=True):
        if (frame := frames[name]) is not None:
            stack[index] = side.stacks.child(int(stack[index]), frame)
    return stack[of_used]


def _function(name: str, paths: _Paths) -> Frame | None:
    """The frame of a call that Kineto names `file(line): function`; None for a hidden one, and for other names."""
    match = re.fullmatch(r"(.+)\((\d+)\): (.+)", name) if name.isprintable() else None
    return None if match is None else paths.frame(match[1], int(match[2]), match[3])


def _call_sites(tree: FlatTree, rows: Int64) -> tuple[Int32, list[Frame | None]]:
    """For each Python call the position of its call site in the list of frames, which has None for a hidden one."""
    paths = _Paths()
    sites: dict[tuple[str, int, str], int] = {}
    site = np.empty(len(rows), np.int32)
    for first in range(0, len(rows), PART):
        callers = [tree.nodes[row].extra_fields.caller for row in rows[first : first + PART].tolist()]
        files = read_text(attrgetter("file_name"), callers)
        functions = read_text(attrgetter("function_name"), callers)
        lines = map(attrgetter("line_number"), callers)
        keys = zip(files, lines, functions, strict=True)
        site[first : first + PART] = [sites.setdefault(key, len(sites)) for key in keys]
    return site, [paths.frame(*key) for key in sites]


def _nearest_python(tree: FlatTree, rows: Int64) -> Int64:
    """The nearest Python call above each of `rows` in the tree, as a node's position, or -1."""
    is_python = np.zeros(len(tree.nodes) + 1, np.bool_)
    is_python[rows] = True
    above = tree.parent[rows]
    while True:
        climbing = np.flatnonzero((above >= 0) & ~is_python[above])
        if not len(climbing):
            return above
        above[climbing] = tree.parent[above[climbing]]


def _modules(tree: FlatTree, rows: Int64) -> tuple[Int32, tuple[CalledModule, ...]]:
    table: dict[CalledModule, int] = {}
    found = np.full(len(rows), -1, np.int32)
    # The last entry, at position -1, is for calls without a caller.
    running = [-1] * (len(tree.nodes) + 1)
    columns = (rows.tolist(), _nearest_python(tree, rows).tolist(), (tree.tag[rows] == _PY_CALL).tolist())
    for index, (row, outer, is_function) in enumerate(zip(*columns, strict=True)):
        running[row] = running[outer]
        module = tree.nodes[row].extra_fields.module if is_function else None
        if module is not None:
            called = CalledModule(module.self_ptr, module.cls_name, running[outer])
            running[row] = found[index] = table.setdefault(called, len(table))
    return found, tuple(table)


def allocations(tree: FlatTree, kineto_threads: list[int]) -> tuple[Allocations, tuple[str, ...]]:
    """The allocator's records in order of time, not yet owned by events, and the names of their devices."""
    rows = tree.rows(_ALLOCATION)
    time_ns, tid = tree.columns(rows, start_time_ns=np.int64, start_tid=np.uint64)
    time_ns = tree.straightened(time_ns)
    facts = [tree.nodes[row].extra_fields for row in rows.tolist()]
    devices: dict[str, int] = {"cpu": 0}
    device = [devices.setdefault(fact.device.type, len(devices)) for fact in facts]
    position = {kineto_thread: index for index, kineto_thread in enumerate(kineto_threads)}
    order = np.argsort(time_ns, kind="stable")
    reserved = np.array([fact.total_reserved for fact in facts], np.int64)[order]
    return (
        Allocations(
            time_ns=time_ns[order],
            nbytes=np.array([fact.alloc_size for fact in facts], np.int64)[order],
            total=np.array([fact.total_allocated for fact in facts], np.int64)[order],
            address=np.array([fact.ptr for fact in facts], np.uint64).view(np.int64)[order],
            event=np.full(len(rows), -1, np.int32),
            track=np.array([position.get(one, -1) for one in tid.tolist()], np.int32)[order],
            device=np.array(device, np.int8)[order],
            device_index=np.array([max(fact.device.index or 0, 0) for fact in facts], np.int8)[order],
            reserved=reserved if reserved.any() else None,
        ),
        tuple(devices),
    )


def addresses_of_inputs(tree: FlatTree, ids: Iterable[int]) -> dict[int, list[list[int]]]:
    """For the ops with these correlation ids, the addresses of the tensors of each input."""
    wanted = set(ids)
    nodes = (tree.nodes[row] for row in tree.rows(_TORCH_OP).tolist())
    return {number: _addresses(node) for node in nodes if (number := node.correlation_id) in wanted}


def _addresses(node: Any) -> list[list[int]]:
    lists = [value if isinstance(value, list) else [value] for value in node.extra_fields.inputs]
    return [[getattr(tensor, "storage_data_ptr", None) or 0 for tensor in tensors] for tensors in lists]


def indices_of_inputs_on(tree: FlatTree, device_type: str) -> dict[int, int]:
    """The device index of ops with an input tensor on this type of device, by correlation id."""
    nodes = (tree.nodes[row] for row in tree.rows(_TORCH_OP).tolist())
    found = ((node.correlation_id, _index_on(node.extra_fields.inputs, device_type)) for node in nodes)
    return {correlation: index for correlation, index in found if index is not None}


def _index_on(value: Any, device_type: str) -> int | None:
    """The index of the first tensor's device that is of this type; None where there is no such tensor."""
    if isinstance(value, list):
        return next((index for item in value if (index := _index_on(item, device_type)) is not None), None)
    device = getattr(value, "device", None)
    return max(device.index or 0, 0) if device is not None and device.type == device_type else None
