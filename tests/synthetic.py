"""A training run of any length, made with numpy: steps of forward, backward and optimizer on two threads."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from traces import with_defaults

from mtprof_nb.model.trace import (
    BACKWARD,
    FORWARD,
    OP,
    OPTIMIZER,
    OTHER,
    SCOPE,
    Allocations,
    Frame,
    Recorded,
    SourceLine,
    StackInterner,
    Trace,
    Track,
)

BEGAN_NS = 1_700_000_000_000_000_000


class Row(NamedTuple):
    name: str
    kind: int
    phase: int
    thread: int
    start_ns: int
    end_ns: int
    line: int
    nbytes: int


class Step:
    """Writes one step: each call appends events and moves the clock on."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.now = 2_000

    def op(self, name: str, phase: int, own_ns: int, line: int, *inner: tuple[str, int], nbytes: int = 0) -> None:
        start = self.now
        self.now += own_ns // 2
        spot = len(self.rows)
        for inner_name, inner_ns in inner:
            self.rows.append(Row(inner_name, OP, phase, 0, self.now, self.now + inner_ns, line, 0))
            self.now += inner_ns + 300
        self.now += own_ns - own_ns // 2
        self.rows.insert(spot, Row(name, OP, phase, 0, start, self.now, line, nbytes))
        self.now += 900

    def forward(self, layers: int) -> None:
        for layer in range(layers):
            self.op(
                "aten::linear",
                FORWARD,
                2_400,
                21,
                ("aten::t", 900),
                ("aten::addmm", 14_000 + 2_000 * layer),
                nbytes=1 << 20,
            )
            self.op("aten::layer_norm", FORWARD, 1_500, 22, ("aten::native_layer_norm", 5_200), nbytes=1 << 18)
            self.op("aten::relu", FORWARD, 1_100, 23, ("aten::clamp_min", 3_100), nbytes=1 << 19)
        self.op(
            "aten::scaled_dot_product_attention", FORWARD, 3_100, 25, ("aten::bmm", 12_000), ("aten::_softmax", 6_000)
        )
        self.op("aten::cross_entropy_loss", FORWARD, 1_900, 31, ("aten::log_softmax", 3_600), ("aten::nll_loss", 2_100))

    def backward(self, layers: int) -> None:
        for layer in reversed(range(layers)):
            self.op("ReluBackward0", BACKWARD, 1_600, 23, ("aten::threshold_backward", 3_900))
            self.op("NativeLayerNormBackward0", BACKWARD, 1_700, 22, ("aten::native_layer_norm_backward", 8_800))
            mm = ("aten::mm", 15_500 + 2_000 * layer)
            self.op(
                "AddmmBackward0",
                BACKWARD,
                2_900,
                21,
                ("aten::t", 800),
                mm,
                mm,
                ("aten::sum", 2_300),
                nbytes=-7 * (1 << 18),
            )
            self.op("torch::autograd::AccumulateGrad", BACKWARD, 1_200, 21, ("aten::detach", 700))

    def optimizer(self) -> None:
        for name, own in (
            ("aten::_foreach_mul_", 9_000),
            ("aten::_foreach_lerp_", 8_000),
            ("aten::_foreach_addcdiv_", 13_000),
        ):
            self.op(name, OPTIMIZER, own, 34)


def _one_step(layers: int) -> tuple[list[Row], int]:
    step = Step()
    step.op("aten::copy_", OTHER, 6_000, 12, nbytes=0)
    bounds = []
    for part in (lambda: step.forward(layers), lambda: step.backward(layers), step.optimizer):
        begin = step.now
        step.now += 700
        part()
        bounds.append((begin, step.now))
    scopes = [
        Row("ProfilerStep", SCOPE, OTHER, 0, 1_000, step.now + 500, 11, 0),
        Row("model.forward", SCOPE, FORWARD, 0, *bounds[0], 20, 0),
        Row("Optimizer.step#AdamW.step", SCOPE, OPTIMIZER, 0, *bounds[2], 34, 0),
    ]
    loader = [Row("aten::randn", OP, OTHER, 1, at, at + 21_000, 8, 0) for at in range(3_000, step.now - 30_000, 90_000)]
    return scopes + step.rows + loader, step.now + 1_500


def training_run(events: int, layers: int = 6, **scalars: Any) -> Trace:
    """About `events` events, with steps, phases, shapes, stacks, lines, memory and FLOPs."""
    rows, length = _one_step(layers)
    steps = max(1, round(events / len(rows)))
    count = len(rows) * steps

    def column(key: str) -> np.ndarray:
        return np.array([getattr(row, key) for row in rows])

    names = sorted({row.name for row in rows} - {"ProfilerStep"})
    step_names = [f"ProfilerStep#{step}" for step in range(steps)]
    step = np.repeat(np.arange(steps), len(rows))
    name = np.tile([names.index(row.name) if row.name != "ProfilerStep" else -1 for row in rows], steps)
    name = np.where(name < 0, len(names) + step, name)
    # Every third step is slower, as if the machine were shared.
    pace = np.where(np.arange(steps) % 3 == 2, 3, 2)
    began = BEGAN_NS + np.concatenate(([0], np.cumsum(pace * length // 2)[:-1]))
    start = began[step] + np.tile(column("start_ns"), steps) * pace[step] // 2
    end = began[step] + np.tile(column("end_ns"), steps) * pace[step] // 2
    kind = np.tile(column("kind"), steps)
    line_numbers = sorted(set(column("line").tolist()))
    interner = StackInterner()
    stacks = [_stack(interner, number) for number in line_numbers]
    line = np.searchsorted(line_numbers, np.tile(column("line"), steps))
    flops = np.where(np.isin(name, [names.index("aten::addmm"), names.index("aten::mm")]), 2 * 64 * 256 * 256, -1)
    changes = np.tile(column("nbytes"), steps)
    level = 3 * (1 << 20) + np.cumsum(np.where(kind == OP, changes, 0))
    level -= level.min() if len(level) else 0
    is_op = kind == OP
    columns = with_defaults(
        Trace,
        count,
        name=name,
        kind=kind,
        device=np.zeros(count),
        start_ns=start,
        duration_ns=end - start,
        track=np.tile(column("thread"), steps),
        phase=np.tile(column("phase"), steps),
        correlation_id=np.cumsum(is_op) * is_op,
        step=step,
    )
    trace = Trace(
        **columns,
        names=(*names, *step_names),
        devices=("CPU",),
        tracks=(Track(4242, "MainThread"), Track(4243, "loader")),
        shape=np.where(is_op, name % 4, -1),
        shapes=(((64, 256), (256, 256)), ((64, 256),), ((256,),), ()),
        dtypes=(("float", "float"), ("float",), ("float",), ()),
        stack=np.array(stacks)[line],
        stacks=interner.tree(),
        stack_is_forward=np.zeros(count),
        memory_before=level - changes,
        memory_after=level,
        flops=flops,
        line=line,
        lines=tuple(SourceLine("train.py", number) for number in line_numbers),
        allocations=_allocations(changes, level, start, np.tile(column("thread"), steps)),
        recorded=Recorded(record_shapes=True, profile_memory=True, with_stack=True, with_flops=True),
        began_ns=BEGAN_NS,
        ended_ns=int(end.max()) + 2_000,
        label="Cell [3]",
        hooks=("kineto",),
        overhead_ns=700 * count,
        **scalars,
    )
    return trace.sorted()


def _stack(interner: StackInterner, line: int) -> int:
    frames = [Frame("train.py", 40, "<module>"), Frame("train.py", 12, "train")]
    if 20 <= line < 30:
        frames += [Frame("train.py", 18, "step"), Frame("model.py", 55, "forward")]
    return interner.stack([*frames, Frame("train.py", line, "run")])


def _allocations(changes: np.ndarray, level: np.ndarray, start: np.ndarray, thread: np.ndarray) -> Allocations:
    at = np.flatnonzero(changes)
    columns = with_defaults(
        Allocations,
        len(at),
        time_ns=start[at] + 200,
        nbytes=changes[at],
        total=level[at],
        event=at,
        track=thread[at],
        device=np.zeros(len(at)),
    )
    return Allocations(**columns)
