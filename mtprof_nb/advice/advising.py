"""`advise`: the findings of all rules, the best first."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module

from mtprof_nb.advice.finding import CERTAIN, Finding
from mtprof_nb.advice.rule_registry import RULES, RULES_OF_PROCESSES
from mtprof_nb.analysis.once import once_a_trace
from mtprof_nb.analysis.program_time.recorded_time import recorded_ns
from mtprof_nb.analysis.program_time.recording_cost import recording_ns
from mtprof_nb.analysis.summary import peak_bytes
from mtprof_nb.model.source_files import file_label
from mtprof_nb.model.trace import Trace

#: Modules of the rules.
RULE_MODULES = (
    *("ops.double_precision", "ops.to_and_fro", "ops.pointwise_chains", "ops.needless_contiguous"),
    *("loops.one_by_one", "loops.loop_over_elements", "loops.tensors_of_numbers", "loops.growing_cat"),
    *("loops.python_bound", "autograd.gradients_for_nothing", "autograd.slow_backward"),
    *("waiting.waiting_for_input", "waiting.slow_first_step", "waiting.garbage_collections"),
    *("compiling.recompiled", "compiling.mostly_compiling"),
    *("memory.kept_tensors", "memory.activations_at_peak"),
    *("machine.thread_numbers", "machine.slowest_rank"),
    *("devices.device_idle", "devices.waits_for_values", "devices.pageable_copies", "devices.made_on_host"),
    *("devices.device_allocations", "devices.known_kernels", "devices.exposed_communication"),
)
for _module in RULE_MODULES:
    import_module(f"mtprof_nb.advice.rules.{_module}")

#: A finding is worth a word from this share of the time or of the peak on, and from this size on.
LEAST_SHARE, LEAST_NS, LEAST_BYTES = 0.05, 1_000_000, 1 << 20
#: The most findings of a recording.
MOST_FINDINGS = 5


@once_a_trace
def advise(trace: Trace) -> tuple[Finding, ...]:
    """The findings of a recording, the best first: time before memory, then by how much and how sure.

    Empty for a recording in which ops are missing: its numbers would mislead. Of several processes, findings are about
    how they differ; for all others, ask one process alone.
    """
    if not trace.has_all_ops or not len(trace):
        return ()
    rules = RULES if len(trace.processes) == 1 else RULES_OF_PROCESSES
    findings = [placed(trace, name, finding) for name, find in rules.items() if (finding := find(trace)) is not None]
    worth = [finding for finding in findings if _is_worth_a_word(finding)]
    return tuple(sorted(worth, key=_rank)[:MOST_FINDINGS])


def placed(trace: Trace, name: str, finding: Finding) -> Finding:
    """A finding of the rule `name`, with the rest of its fields."""
    unrecorded_ns = max(recorded_ns(trace) - recording_ns(trace), 0)
    whole = unrecorded_ns if finding.at_most_ns else peak_bytes(trace)
    # Sums over threads, and over the host and its devices, can be longer than the program.
    at_most_ns = min(finding.at_most_ns, unrecorded_ns)
    part = at_most_ns or finding.at_most_bytes
    where = f"{file_label(trace, finding.line.file)}:{finding.line.line}" if finding.line else ""
    return replace(finding, rule=name, where=where, at_most_ns=at_most_ns, share=part / whole if whole else 0.0)


def _is_worth_a_word(finding: Finding) -> bool:
    is_large = finding.at_most_ns * _found_share(finding) >= LEAST_NS or finding.at_most_bytes >= LEAST_BYTES
    return is_large and finding.share * _found_share(finding) >= LEAST_SHARE


def _rank(finding: Finding) -> tuple[bool, float]:
    share = finding.share * _found_share(finding)
    return finding.at_most_ns == 0, -share * (1.0 if finding.certainty == CERTAIN else 0.5)


def _found_share(finding: Finding) -> float:
    """The part of the bound that was found: the rest is time around it that the fix may save, too."""
    return min(finding.found_ns / finding.at_most_ns, 1.0) if finding.found_ns and finding.at_most_ns else 1.0
