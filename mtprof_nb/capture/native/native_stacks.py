"""Stacks and modules of the native recorder: its numbered frames as files, lines and paths."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mtprof_nb.building.called_modules import CalledModule
from mtprof_nb.building.interning import intern
from mtprof_nb.capture.living_objects import LivingObjects, paths_of_modules
from mtprof_nb.capture.samples.python_stacks import is_cell_runner, is_hidden_file
from mtprof_nb.model.trace import Bool, Columns, Frame, Int32, StackInterner, StackTree

#: Columns of the recorder's tree of stacks.
NODE_TYPES: dict[str, npt.DTypeLike] = dict.fromkeys(("node_parent", "node_code", "node_line", "node_module"), np.int32)


@dataclass(frozen=True)
class NativeStacks:
    """For each of the recorder's nodes, and last for none: its stack, its module and whether it is inside one."""

    stack: Int32
    tree: StackTree
    module: Int32
    modules: tuple[str, ...]
    is_in_module: Bool


def read_stacks(columns: Columns, objects: LivingObjects | None) -> NativeStacks:
    """Turn the recorder's tree into one of user-visible frames. Without `objects`, modules have no names."""
    parents = columns["node_parent"].tolist()
    stack, tree = frames_of_nodes(columns, parents)
    running, called = _modules(columns, parents)
    of_module, modules = intern(paths_of_modules(called, objects) if objects is not None else [None] * len(called))
    return NativeStacks(
        stack=stack,
        tree=tree,
        module=np.append(of_module, np.int32(-1))[running],
        modules=modules,
        is_in_module=running >= 0,
    )


def frames_of_nodes(columns: Columns, parents: list[int]) -> tuple[Int32, StackTree]:
    """For each node, and last for none, its node in a tree of visible frames; and that tree."""
    interner = StackInterner()
    codes = columns["codes"]
    is_hidden = [is_hidden_file(file) for file, _ in codes]
    begins = [is_cell_runner(file, name) for file, name in codes]
    stack = [-1] * (len(parents) + 1)  # the last entry, at position -1, is for no stack
    rest = (columns[name].tolist() for name in ("node_code", "node_line"))
    for node, (parent, number, line) in enumerate(zip(parents, *rest, strict=True)):
        if is_hidden[number]:
            stack[node] = -1 if begins[number] else stack[parent]
            continue
        file, name = codes[number]
        stack[node] = interner.child(stack[parent], Frame(file, line, name))
    return np.array(stack, np.int32), interner.tree()


def _modules(columns: Columns, parents: list[int]) -> tuple[Int32, tuple[CalledModule, ...]]:
    """For each node the innermost module that is being called, a position in the modules that follow, or -1."""
    table: dict[CalledModule, int] = {}
    running = [-1] * (len(parents) + 1)
    for node, (parent, module) in enumerate(zip(parents, columns["node_module"].tolist(), strict=True)):
        running[node] = running[parent]
        if module >= 0:
            address, name = columns["modules"][module]
            called = CalledModule(address, name.rpartition(".")[2], running[parent])
            running[node] = table.setdefault(called, len(table))
    return np.array(running, np.int32), tuple(table)
