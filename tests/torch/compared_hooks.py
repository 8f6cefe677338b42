"""Facts of a recording, row by row, in a form in which two recordings of one program can be compared."""

import ast
import asyncio
import inspect
import json
import textwrap
from collections.abc import Callable
from functools import cache
from types import CodeType
from typing import Any

import numpy as np
import torch
from marked_programs import PROGRAMS as MARKED_PROGRAMS

import mtprof_nb as mtp
from mtprof_nb.analysis.nesting import nesting
from mtprof_nb.model.trace import KINDS, OP, PHASES, SCOPE, Trace

#: Ends the stacks: what calls a program is not its own.
_RUNNERS = {"recorded", "run_text", "run"}


def recorded(program: Callable[[], Any], hook: str, **options: Any) -> mtp.profile:
    """Record `program` with numbers that are the same each time."""
    torch.manual_seed(0)
    with mtp.profile(hook=hook, **options) as prof:
        program()
    return prof


@cache
def _compiled(text: str) -> CodeType:
    """The code of a cell, kept alive: Kineto reads the names of functions when the recording has ended."""
    return compile(text, "<program>", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)


def run_text(text: str, **names: Any) -> None:
    """Run a cell, with `await` outside functions too."""
    code = _compiled(text)
    if code.co_flags & inspect.CO_COROUTINE:
        asyncio.run(eval(code, names))
    else:
        exec(code, names)
    # Functions hold the names in a cycle: the garbage collector would release their tensors at any time.
    names.clear()


def op() -> int:
    """One, computed by torch."""
    return int(torch.ones(()).item())


def marked_program(name: str) -> Callable[[], None]:
    """A cell of every kind of statement."""
    text = textwrap.dedent(MARKED_PROGRAMS[name])
    return lambda: run_text(text, op=op, __name__="__main__")


def entries(trace: Trace, column: str, table: str, rows: Any) -> list[Any]:
    """The entries of `table` at which `rows` point, None for none."""
    found = getattr(trace, table)
    return [None if at < 0 else found[at] for at in getattr(trace, column)[rows].tolist()]


def _stacks(trace: Trace, rows: Any) -> list[Any]:
    assert trace.stacks is not None
    assert trace.stack is not None
    found = []
    for node in trace.stack[rows].tolist():
        frames = [] if node < 0 else trace.stacks.stack(node)
        own = [(frame.file, frame.line, frame.function) for frame in frames]
        ends = next((at for at, frame in enumerate(own) if frame[2] in _RUNNERS), len(own))
        found.append(own[:ends])
    return found


def facts(prof: mtp.profile) -> dict[str, list[Any]]:
    """Each column of a recording of one thread and the engine's: what ops and scopes have, in order of their start."""
    trace = prof.trace
    is_row = (trace.kind == OP) | (trace.kind == SCOPE)
    rows = np.flatnonzero(is_row)
    number = np.append(np.cumsum(is_row) - 1, -1)
    parents = nesting(trace).parent
    above = parents[rows]
    while (is_other := (above >= 0) & ~is_row[above]).any():  # calls of Python functions are no rows
        above = np.where(is_other, parents[above], above)
    sequence = trace.sequence_nr[rows]
    first = sequence[sequence >= 0].min(initial=1 << 60)
    found: dict[str, list[Any]] = {
        "name": entries(trace, "name", "names", rows),
        "kind": [KINDS[kind] for kind in trace.kind[rows]],
        "phase": [PHASES[phase] for phase in trace.phase[rows]],
        "track": list(trace.track[rows]),
        "parent": number[above].tolist(),
        "sequence_nr": np.where(sequence >= 0, sequence - first, -1).tolist(),
        "forward": number[trace.forward[rows]].tolist(),
        "is_async": trace.is_async[rows].tolist(),
        "device": entries(trace, "device", "devices", rows),
    }
    if trace.shape is not None:
        for table in ("shapes", "dtypes", "strides"):
            found[table] = entries(trace, "shape", table, rows)
        found["values"] = [text and json.loads(text) for text in entries(trace, "values", "value_texts", rows)]
    if trace.flops is not None:
        found["flops"] = trace.flops[rows].tolist()
    if trace.module is not None:
        found["module"] = entries(trace, "module", "modules", rows)
    if trace.parameter is not None:
        found["parameter"] = entries(trace, "parameter", "parameters", rows)
    if trace.memory_after is not None and trace.memory_before is not None:
        found["memory"] = (trace.memory_after - trace.memory_before)[rows].tolist()
    if trace.stack is not None:
        found["stack"] = _stacks(trace, rows)
    if trace.extra is not None:
        found["extra"] = [text and json.loads(text) for text in entries(trace, "extra", "extras", rows)]
    if trace.overload is not None:
        found["overload"] = entries(trace, "overload", "overloads", rows)
    return found
