"""The lines tab: source text with the cost of each line, by phase."""

from __future__ import annotations

import numpy as np

from mtprof_nb.analysis.functions.sampled_lines import outside_by_line
from mtprof_nb.analysis.lines.attribution import attribution
from mtprof_nb.analysis.lines.line_costs import parameter_costs
from mtprof_nb.analysis.program_time.recorded_time import program_ns
from mtprof_nb.analysis.ranks.rank_lines import spread_of_lines
from mtprof_nb.analysis.ranks.ranked_processes import titles
from mtprof_nb.model.trace import OP, PHASES, SourceLine, Trace
from mtprof_nb.tables.line_table import UNATTRIBUTED, LineRow, Lines
from mtprof_nb.views.escaped_text import shown
from mtprof_nb.views.scene import Answer, Question, Tab
from mtprof_nb.views.selection import SOURCE, pair_columns, pairs, recorded_groupings, rows_of_events
from mtprof_nb.views.strip import OUTSIDE
from mtprof_nb.views.tabs.lines.listing import ListedFile, ListedLine, listed_files

#: Number of lines whose ops are saved with the notebook, and of ops of a line.
_LINES_WITH_OPS, _MOST_OPS = 60, 12
NO_OPS = "No op ran, so that no line has a cost."
NO_LINES = "No op ran on a line of the cell: add --with-stack for functions elsewhere."
NOT_RECORDED = "No source line is known: profile a cell with %%mtprofile, or add --with-stack for functions elsewhere."
HINT = "--with-stack adds the lines of functions that these lines call"


class LinesTab(Tab):
    """Answers questions for the ops of a line, and for the lines of the operators."""

    def first(self) -> Answer:
        """The source text around all lines with a cost, and the ops of the longest lines."""
        trace = self._scene.trace
        lines = Lines(trace)
        if not any(row.file for row in lines):
            return {"empty": _no_lines(trace)}
        numbers = self._numbers()
        rest = [row for row in lines if not row.file]
        return {
            "note": shown(lines.note),
            "hint": "" if trace.stack is not None else HINT,
            "whole_ns": program_ns(trace),
            "largest_ns": max(row.time_ns for row in lines if row.file),
            "outside": None if outside_by_line(trace) is None else OUTSIDE,
            "memory": _memory_column(lines),
            "largest_device_ns": max((row.device_ns or 0 for row in lines if row.file), default=0),
            "phases": [PHASES[phase] for phase in lines.phases()],
            "has_ranks": len(trace.processes) > 1,
            "files": [self._written(file, numbers) for file in listed_files(trace)],
            "rest": [_cost(row, -1, UNATTRIBUTED) for row in rest],
            "ops": {number: self._ops(row) for number, row in self._longest().items()},
        }

    def answer(self, question: Question) -> Answer | None:
        """The `ops` of a line; the lines that each row of a grouping has `lit`."""
        if question["ask"] == "lit":
            # Ops without a line have a row of their own, number -1.
            number = attribution(self._scene.trace).line + 1
            row, line = pairs(rows_of_events(self._scene, question["grouping"]), number)
            return pair_columns((row, line - 1))
        if question["ask"] != "ops":
            return super().answer(question)
        with_ops = self._with_ops().get(int(question["id"]))
        return {"ops": [] if with_ops is None else self._ops(with_ops)}

    def carried(self) -> list[Question]:
        known, groupings = self._longest(), [*recorded_groupings(self._scene.trace), SOURCE]
        return [
            *({"ask": "ops", "id": number} for number in self._with_ops() if number not in known),
            *({"ask": "lit", "grouping": grouping} for grouping in groupings),
        ]

    def _with_ops(self) -> dict[int, LineRow]:
        """The lines that ran ops, the longest first, by their numbers."""
        numbers = self._numbers()
        return {self._number(row, numbers): row for row in Lines(self._scene.trace) if row.has_ops}

    def _longest(self) -> dict[int, LineRow]:
        """The lines whose ops are saved with the notebook."""
        ran = [(number, row) for number, row in self._with_ops().items() if row.count]
        return dict(ran[:_LINES_WITH_OPS])

    def _numbers(self) -> dict[SourceLine, int]:
        """The number of each line on the page; ops without a line have -1."""
        return {line: number for number, line in enumerate(attribution(self._scene.trace).lines)}

    @staticmethod
    def _number(row: LineRow, numbers: dict[SourceLine, int]) -> int:
        return numbers[SourceLine(row.file, row.line)] if row.file else -1

    def _written(self, file: ListedFile, numbers: dict[SourceLine, int]) -> Answer:
        return {
            "title": shown(file.title),
            "self_ns": file.self_ns,
            "outside_ns": file.outside_ns,
            "lines": [
                None if line is None else {"line": line.number, **self._listed(line, numbers)} for line in file.lines
            ],
        }

    def _listed(self, line: ListedLine, numbers: dict[SourceLine, int]) -> Answer:
        """The text and the cost of a line; of one without ops, its time and bytes outside ops."""
        text, row = line.text.expandtabs(4), line.row
        if row is None:
            return {"text": shown(text)}
        spread = self._spread(row)
        if not row.has_ops:
            memory = {"bytes": nbytes} if (nbytes := _bytes(row)) else {}
            return {"text": shown(text), **_times(row), **memory, **spread}
        return {**_cost(row, self._number(row, numbers), text), **spread}

    def _spread(self, row: LineRow) -> Answer:
        """The time of a line on the median rank and on the rank with the most; empty for one process."""
        trace = self._scene.trace
        spread = spread_of_lines(trace).get(SourceLine(row.file, row.line)) if len(trace.processes) > 1 else None
        if spread is None:
            return {}
        median, most, process = spread
        return {"median_ns": median, "most_ns": most, "most_on": shown(titles(trace)[process])}

    def _ops(self, row: LineRow) -> list[Answer]:
        ops = Lines(self._scene.trace).ops(row)
        return (
            [
                {
                    "name": int(self._scene.trace.name[op.event]),
                    "label": shown(f"{op.name}: {op.fused}" if op.fused else op.name),
                    "phase": PHASES[op.phase],
                    "count": op.count,
                    "self_ns": op.self_ns,
                    "event": op.event,
                }
                for op in ops[:_MOST_OPS]
            ]
            + ([{"more": len(ops) - _MOST_OPS}] if len(ops) > _MOST_OPS else [])
            + self._parameters(row)
        )

    def _parameters(self, row: LineRow) -> list[Answer]:
        """Costs of a line of the optimizer, one entry for each parameter that it updated."""
        trace = self._scene.trace
        if not row.optimizer_ns or trace.parameter is None:
            return []
        on_line = attribution(trace).line == self._number(row, self._numbers())
        costs = [cost for cost in parameter_costs(trace, on_line) if cost.parameter]
        shares = [
            {"parameter": shown(cost.parameter), "count": cost.count, "self_ns": cost.self_ns}
            for cost in costs[:_MOST_OPS]
        ]
        return shares + ([{"more": len(costs) - _MOST_OPS}] if len(costs) > _MOST_OPS else [])


def _no_lines(trace: Trace) -> str:
    """Why there is no line with a cost."""
    if not np.any(trace.kind == OP):
        return NO_OPS
    return " ".join(filter(None, [NO_LINES if trace.line is not None else NOT_RECORDED, shown(trace.lines_note)]))


def _memory_column(lines: Lines) -> Answer | None:
    """Title and meaning of the column of bytes; None without memory."""
    if any(row.allocated_bytes is not None for row in lines):
        return {"title": "Allocated", "meaning": "bytes that it allocated, released or not"}
    if any(row.memory_bytes is not None for row in lines):
        return {"title": "Memory", "meaning": "bytes that its ops allocated, less those they released"}
    return None


def _device_by_phase(row: LineRow) -> tuple[int, int, int, int, int]:
    """The time on devices of a row by phase, in the order of `PHASES`."""
    phases = row.device_forward_ns or 0, row.device_backward_ns or 0, row.device_optimizer_ns or 0
    return *phases, (row.device_ns or 0) - sum(phases), 0


def _bytes(row: LineRow) -> int | None:
    return row.memory_bytes if row.allocated_bytes is None else row.allocated_bytes


def _cost(row: LineRow, number: int, text: str) -> Answer:
    by_phase = row.forward_ns, row.backward_ns, row.optimizer_ns, row.other_ns, row.compiling_ns
    return {
        "id": number,
        "text": shown(text),
        "location": shown(f"{row.where}:{row.line}") if row.file else "",
        "phases": dict(zip(PHASES, by_phase, strict=True)),
        **_times(row),
        "count": row.count,
        "bytes": _bytes(row),
        "device_ns": row.device_ns,
        "device_phases": None if row.device_ns is None else dict(zip(PHASES, _device_by_phase(row), strict=True)),
    }


def _times(row: LineRow) -> Answer:
    fused = {"fused_with": shown(row.fused_with)} if row.fused_with else {}
    return {"time_ns": row.time_ns, "outside_ns": row.outside_ns, "total_ns": row.total_ns, **fused}
