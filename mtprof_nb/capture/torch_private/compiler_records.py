"""Records of torch's compiler about its work: compilations with their stages, and graph breaks.

Nothing of the compiler is imported or set. Each name is asked for by itself: without one, the facts
that it has are missing, and a note says so.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from mtprof_nb.model.compilations import (
    AGAIN,
    CUDA_GRAPH,
    FIRST_BACKWARD,
    FIRST_CALL,
    Compilation,
    GraphBreak,
)

#: The module that announces each compilation, and the object and method by which it does.
ANNOUNCER, _OBJECT, ANNOUNCE = "torch._dynamo.callback", "callback_handler", "install_callbacks"
#: Scopes that torch opens around all of a compilation, the announced part and a little more.
SCOPES = frozenset(
    (
        "dynamo",
        "entire_frame_compile",
        "_compile.compile_inner (dynamo_timed)",
        "entire_backward_compile",
        "backward._backward_impl (dynamo_timed)",
    )
)
_UTILS = "torch._dynamo.utils"
_BACKWARD, _RECORDING = "LAZY_BACKWARD", "CUDAGRAPH_RECORDING"
#: The number of the version that did not fit, before torch's reason.
_VERSION = re.compile(r"^\s*-?\s*\d+/\d+: ")
_LONGEST_TEXT = 500


def announcer() -> Any | None:
    """The object that announces compilations; None without one, or before its import."""
    found = getattr(sys.modules.get(ANNOUNCER), _OBJECT, None)
    return found if hasattr(found, ANNOUNCE) else None


def metrics() -> list[Any]:
    """Torch's records of its last compilations, 64 at most."""
    read = getattr(sys.modules.get(_UTILS), "get_compilation_metrics", None)
    return list(read()) if read is not None else []


def graph_breaks() -> Sequence[Any]:
    """Torch's records of the graph breaks of this process."""
    return getattr(sys.modules.get(_UTILS), "graph_break_reasons", ())


def missing_names() -> list[str]:
    """A note for each record of the imported compiler that this version of torch does not have."""
    utils, notes = sys.modules.get(_UTILS), []
    if utils is None:
        return []
    if ANNOUNCER in sys.modules and announcer() is None:
        notes.append("Compilations are not known: this version of torch does not announce them.")
    if not hasattr(utils, "get_compilation_metrics"):
        notes.append("Causes and stages of compilations are not known in this version of torch.")
    if not hasattr(utils, "graph_break_reasons"):
        notes.append("Graph breaks are not known in this version of torch.")
    return notes


def owners(records: Iterable[Any]) -> dict[str, Any]:
    """The last record of each compilation that names its function: backward ones name none."""
    return {_id(record): record for record in records if getattr(record, "co_filename", None)}


def is_record_of(record: Any, trigger: str, compile_id: str) -> bool:
    """Whether a record is that of a compilation that was announced with this trigger and number."""
    is_backward = not getattr(record, "co_filename", None)
    return _id(record) == compile_id and is_backward == (trigger == _BACKWARD)


def _id(record: Any) -> str:
    return str(getattr(record, "compile_id", None))


def described(
    trigger: str, compile_id: str, duration_ns: int, record: Any, owner: Any, breaks: Iterable[Any]
) -> Compilation:
    """A compilation of `duration_ns` that was announced, of which torch has a record, or None."""
    reason = _reason(getattr(record, "recompile_reason", None))
    hits, misses = ("hit", "miss")
    return Compilation(
        compile_id=compile_id,
        function=str(getattr(owner, "co_name", None) or ""),
        file=str(getattr(owner, "co_filename", None) or ""),
        line=_number(owner, "co_firstlineno"),
        cause=_cause(trigger, compile_id, reason),
        reason=reason,
        **_stages(trigger, duration_ns, record),
        cache_hits=_cached(record, hits),
        cache_misses=_cached(record, misses),
        breaks=described_breaks(breaks),
        failure=_cut(getattr(record, "fail_reason", None)),
        cuda_graph_skipped=_cut(getattr(record, "cudagraph_skip_reason", None)),
    )


def _cause(trigger: str, compile_id: str, reason: str) -> str:
    if trigger == _RECORDING:
        return CUDA_GRAPH
    if trigger == _BACKWARD:
        return FIRST_BACKWARD
    return FIRST_CALL if not reason and compile_id.endswith("/0") else AGAIN


def _stages(trigger: str, duration_ns: int, record: Any) -> dict[str, int]:
    """The time of each stage. Torch nests them: dynamo, AOT, inductor, waiting for compilers."""
    names = (
        "aot_autograd_cumulative_compile_time_us",
        "inductor_cumulative_compile_time_us",
        "triton_compile_time_us",
    )
    aot, inductor, build = (1000 * _number(record, name) for name in names)
    outer = duration_ns if trigger == _BACKWARD else min(max(aot, inductor), duration_ns)
    inner = min(inductor, outer)
    built = min(build, inner)
    return {
        "dynamo_ns": duration_ns - outer,
        "aot_ns": outer - inner,
        "inductor_ns": inner - built,
        "build_ns": built,
    }


def _number(record: Any, name: str) -> int:
    value = getattr(record, name, None)
    return int(value) if isinstance(value, int | float) else 0


def _cached(record: Any, outcome: str) -> int:
    """The graphs that caches had, or had not. AOT's cache has all graphs, or none."""
    kinds = ("inductor_fx_local_cache", "inductor_fx_remote_cache", "aotautograd_local_cache")
    counts = {kind: _number(record, f"{kind}_{outcome}_count") for kind in kinds}
    *graphs, whole = counts.values()
    return sum(graphs) or (whole if outcome == "hit" else 0)


def _reason(text: Any) -> str:
    """The first line of torch's reason, without the number of the version that did not fit."""
    lines = [line for line in str(text or "").splitlines() if line.strip()]
    return _VERSION.sub("", _cut(lines[0])) if lines else ""


def _cut(text: Any) -> str:
    return str(text or "").strip()[:_LONGEST_TEXT]


def described_breaks(records: Iterable[Any]) -> tuple[GraphBreak, ...]:
    """The breaks of one compilation, each once with its number."""
    counts: dict[GraphBreak, int] = {}
    for record in records:
        one = _described_break(record)
        counts[one] = counts.get(one, 0) + 1
    return tuple(one._replace(times=count) for one, count in counts.items())


def _described_break(record: Any) -> GraphBreak:
    stack = getattr(record, "user_stack", None) or ()
    lines = [line.strip() for line in str(getattr(record, "reason", "")).splitlines()]
    first = next(filter(None, lines), "")
    place = (str(stack[-1].filename), int(stack[-1].lineno or 0)) if stack else ("", 0)
    explanation, hint = (_titled(title, lines) for title in ("Explanation: ", "Hint: "))
    return GraphBreak(*place, _cut(first), explanation, hint)


def _titled(title: str, lines: list[str]) -> str:
    found = [line.removeprefix(title) for line in lines if line.startswith(title)]
    return _cut("\n".join(found))
