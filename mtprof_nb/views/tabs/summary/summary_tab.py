"""The overview tab: where the time went in a sentence, the hottest lines, ops and functions, and what to change."""

from __future__ import annotations

from mtprof_nb.advice.advising import advise
from mtprof_nb.advice.causes.source_text import line_text
from mtprof_nb.advice.causes.where_time_went import waiting, where_device_time_went, where_time_went
from mtprof_nb.advice.finding import Finding
from mtprof_nb.advice.recording_notes import advice_notes
from mtprof_nb.analysis import units
from mtprof_nb.analysis.compiled import graph_breaks
from mtprof_nb.analysis.devices.who_waits import devices_title
from mtprof_nb.analysis.lines.attribution import attribution
from mtprof_nb.analysis.program_time.recorded_time import program_ns, recorded_ns
from mtprof_nb.analysis.summary import summary
from mtprof_nb.model.source_files import source_location
from mtprof_nb.model.trace import SourceLine, Trace
from mtprof_nb.tables.compilation_table import CompilationRow, Compilations, break_text
from mtprof_nb.tables.function_table import FunctionRow, Functions
from mtprof_nb.tables.line_table import LineRow, Lines
from mtprof_nb.tables.operators.operator_rows import rows
from mtprof_nb.views.escaped_text import shown
from mtprof_nb.views.scene import Answer, Tab

#: Number of lines, of ops and of functions that are shown.
_MOST = 3
NOTHING_FOUND = "No rule is sure of anything above 5 % of the time or of the peak memory."
_LACKS_FACTS = "More can be found with shapes, stacks and memory: add --record-shapes --with-stack --profile-memory."
_OF_ONE_RANK = "Findings are about one rank: choose it beside the tabs in a notebook, or call advice(rank=0)."


class SummaryTab(Tab):
    """Asks nothing: all of it is in the first content."""

    def first(self) -> Answer:
        """The sentence, the hottest lines, ops and functions, what the program waited for, and the findings."""
        trace, whole = self._scene.trace, program_ns(self._scene.trace)
        if is_on_devices := bool(where_device_time_went(trace)):
            lines, ops = _device_lines(trace), self._ops("self_device_ns", summary(trace).device_ns or 0)
        else:
            lines, ops = [_line(trace, row, whole) for row in slowest_lines(trace)], self._ops("self_ns", whole)
        return {
            "sentence": shown(where_time_went(trace)),
            "on": f" on {devices_title(trace)}" if is_on_devices else "",
            "lines": lines,
            "ops": ops,
            "functions": [_function(trace, row, whole) for row in slowest_functions(trace)],
            "waits": [
                {"title": one.title, "ns": one.ns, "share": units.share(one.ns, recorded_ns(trace))}
                for one in waiting(trace)
            ],
            "compilations": [_compilation(trace, row) for row in longest_compilations(trace)],
            "breaks": [shown(break_text(trace, one), 300) for one in graph_breaks(trace)[:_MOST]],
            "findings": [_finding(trace, finding) for finding in advise(trace)],
            "nothing": nothing_found(trace),
            "notes": list(advice_notes(trace)),
        }

    def _ops(self, time: str, whole: int) -> list[Answer]:
        """The ops with the most of a column of time; kernels, which have rows too, have no time on the host."""
        grouped = rows(self._scene.trace, "op", self._scene.show_all)
        took = (grouped.value["self_ns"] > 0) & (grouped.value[time] > 0)
        slowest = [row for row in grouped.order(time).tolist() if took[row]][:_MOST]
        return [
            {
                "id": row,
                "label": shown(grouped.label[row]),
                "name": int(grouped.name[row]),
                "count": int(grouped.value["count"][row]),
                "time_ns": int(grouped.value[time][row]),
                "share": units.share(int(grouped.value[time][row]), whole),
            }
            for row in slowest
        ]


def nothing_found(trace: Trace) -> str:
    """Why there is no finding: the rules are not sure, the recording lacks facts that they need, or has many ranks."""
    if len(trace.processes) > 1:
        return _OF_ONE_RANK
    recorded = trace.recorded
    has_facts = recorded.record_shapes and recorded.profile_memory and (trace.stack is not None or trace.lines)
    return NOTHING_FOUND if has_facts else f"{NOTHING_FOUND} {_LACKS_FACTS}"


def slowest_lines(trace: Trace) -> list[LineRow]:
    """The lines that took longest."""
    return [row for row in Lines(trace) if row.file and row.time_ns][:_MOST]


def slowest_functions(trace: Trace) -> list[FunctionRow]:
    """The functions that took longest themselves, outside ops; none without samples."""
    known = [row for row in Functions(trace) if row.file and row.outside_ns]
    return sorted(known, key=lambda row: -row.outside_ns)[:_MOST]


def longest_compilations(trace: Trace) -> list[CompilationRow]:
    """The compilations that took longest."""
    return sorted(Compilations(trace), key=lambda row: -row.duration_ns)[:_MOST]


def _compilation(trace: Trace, row: CompilationRow) -> Answer:
    stages = {"dynamo": row.dynamo_ns, "AOT": row.aot_ns}
    stages |= {"inductor": row.inductor_ns, "build": row.build_ns}
    return {
        "label": shown(row.function),
        "location": shown(source_location(trace, row.file, row.line)) if row.file else "",
        "why": shown(f"{row.cause}: {row.reason}" if row.reason else row.cause),
        "stages": ", ".join(f"{name} {units.duration(ns)}" for name, ns in stages.items() if ns),
        "time_ns": row.duration_ns,
        "share": units.share(row.duration_ns, program_ns(trace)),
    }


def _function(trace: Trace, row: FunctionRow, whole: int) -> Answer:
    return {
        "label": shown(row.function),
        "location": shown(source_location(trace, row.file, row.line)),
        "outside_ns": row.outside_ns,
        "error_ns": row.error_ns,
        "share": units.share(row.outside_ns, whole),
    }


def _number(trace: Trace, line: SourceLine | None) -> int:
    """The number of a line on the page, -1 without ops."""
    lines = attribution(trace).lines
    return lines.index(line) if line in lines else -1


def _device_lines(trace: Trace) -> list[Answer]:
    """The lines whose work on devices took longest."""
    rows = [row for row in Lines(trace) if row.file and row.device_ns]
    slowest = sorted(rows, key=lambda row: -(row.device_ns or 0))[:_MOST]
    return [_line(trace, row, summary(trace).device_ns or 0, row.device_ns) for row in slowest]


def _line(trace: Trace, row: LineRow, whole: int, time_ns: int | None = None) -> Answer:
    time_ns = row.time_ns if time_ns is None else time_ns
    return {
        "id": _number(trace, SourceLine(row.file, row.line)) if row.has_ops else -1,
        "location": shown(f"{row.where}:{row.line}"),
        "text": shown(row.source.strip(), 200),
        "time_ns": time_ns,
        "share": units.share(time_ns, whole),
    }


def _finding(trace: Trace, finding: Finding) -> Answer:
    texts = (row.source for row in Lines(trace) if SourceLine(row.file, row.line) == finding.line)
    return {
        "rule": finding.rule,
        "title": shown(finding.title),
        "id": _number(trace, finding.line),
        "location": shown(finding.where),
        "text": shown(next(texts, line_text(trace, finding.line)).strip(), 200),
        "evidence": shown(finding.evidence),
        "fix": [shown(line) for line in finding.fix.splitlines()],
        "bound": finding.bound,
        "certainty": finding.certainty,
    }
