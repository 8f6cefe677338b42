"""Chrome traces that others recorded, loaded by this package and by HolisticTraceAnalysis, each in its own process."""

from __future__ import annotations

import gzip
import json
import logging
import os
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks import child
from benchmarks.figure import Figure, Spread, at_least, at_most
from benchmarks.memory import forget_peak, is_known, peak, resident
from benchmarks.sampling import Rounds, Sample, Scale, in_turns, wall_clock

#: Recordings of `FOLDER` that HolisticTraceAnalysis can read, the larger ones.
NAMES = ("a100_before", "v100_after", "rtx2080ti_resnet", "a100_ddp_rank0", "h100_timesformer")
#: The one that is also loaded in a new process, with the imports.
_FIRST_LOADED = "h100_timesformer"
FOLDER = Path(os.environ.get("MTPROF_TRACES") or child.ROOT.parent / "shared" / "traces")
_OURS, _PARSE, _WHOLE = "mtprof_nb", "HTA parse_trace_file", "HTA TraceAnalysis"
_MILLION = 1_000_000
#: Events of one launch in a made-up recording.
_EVENTS_OF_LAUNCH = 5


def figures(group: str, scale: Scale) -> list[Figure]:
    """Time and peak memory beside HolisticTraceAnalysis, and of a recording of a million events."""
    found: list[Figure] = []
    if find_spec("hta") is not None:
        for name in NAMES if scale.seconds else ():
            path = FOLDER / f"{name}.json.gz"
            found += _beside(group, name, path, scale, (_OURS, _PARSE, _WHOLE)) if path.is_file() else []
            found += [_first(group, name, path, scale)] if path.is_file() and name == _FIRST_LOADED else []
    with tempfile.TemporaryDirectory() as folder:
        return found + _made_up(group, Path(folder, "made_up.json.gz"), scale)


def _beside(group: str, name: str, path: Path, scale: Scale, ways: tuple[str, ...]) -> list[Figure]:
    rounds = in_turns({way: partial(_in_process, way, path) for way in ways}, scale, scale.share(0.04))
    title = f"{name}, {rounds.median(_OURS, 'spans'):,.0f} spans: "
    speed = partial(rounds.figure, group, f"{title}load", _OURS, what="s", bound=at_least(6), is_speedup=True)
    found = [speed(peer=peer) for peer in ways[1:]]
    if is_known():
        behind = " / ".join(f"{rounds.median(way, 'peak') / 1e6:.0f} MB" for way in (_OURS, _PARSE))
        peaks = partial(rounds.figure, group, f"{title}peak memory", _OURS, _PARSE, "peak", bound=at_most(0.25))
        found.append(peaks(behind=behind))
    return found


def _first(group: str, name: str, path: Path, scale: Scale) -> Figure:
    ways = {way: partial(_in_process, way, path, "measure_first") for way in (_OURS, _PARSE)}
    title = f"{name}: import and first load in a new process"
    return in_turns(ways, scale, scale.share(0.02)).figure(group, title, _OURS, _PARSE, "s", is_speedup=True)


def _made_up(group: str, path: Path, scale: Scale) -> list[Figure]:
    events = _MILLION if scale.builds else scale.sizes[-1]
    write(path, events)
    rounds = in_turns({_OURS: partial(_in_process, _OURS, path)}, scale, scale.share(0.04))
    title = f"made up, {events:,} events: "
    found = [_seconds(group, f"{title}load", rounds, events)]
    if scale.builds and find_spec("hta") is not None:
        found += _beside(group, "made up", path, replace(scale, least_rounds=1, most_rounds=1), (_OURS, _PARSE))
    return found


def _seconds(group: str, title: str, rounds: Rounds, events: int) -> Figure:
    spread = Spread.of(rounds.values(_OURS, "s"))
    behind = f"{spread.median * 1e6 / events:.2f} µs an event"
    bound = at_most(6) if events >= _MILLION else None
    return Figure(group, title, "", spread, len(rounds), unit="s", bound=bound, behind=behind)


def _in_process(way: str, path: Path, function: str = "measure") -> Sample:
    found: Sample = child.call(f"benchmarks.foreign:{function}", way, str(path))
    return found


def measure_first(way: str, path: str) -> Sample:
    """Seconds of the first load in this process, with all imports that it needs."""
    logging.disable(logging.CRITICAL)
    began = wall_clock()
    _WAYS[way]()(path)
    return {"s": wall_clock() - began}


def measure(way: str, path: str) -> Sample:
    """Seconds, and the peak of memory over what the process held before, which has loaded a small trace."""
    logging.disable(logging.CRITICAL)
    load = _WAYS[way]()
    with tempfile.TemporaryDirectory() as folder:
        small = Path(folder, "small.json.gz")
        write(small, 100)
        load(str(small))
    before = resident() if is_known() else 0
    if is_known():
        forget_peak()
    began = wall_clock()
    loaded = load(path)
    seconds = wall_clock() - began
    return {"s": seconds, "peak": peak() - before if is_known() else 0, "spans": float(loaded)}


def _ours() -> Callable[[str], int]:
    import mtprof_nb

    return lambda path: len(mtprof_nb.load(path).trace)


def _parse() -> Callable[[str], int]:
    from hta.common.trace import parse_trace_file

    return lambda path: len(parse_trace_file(path)[1])


def _whole() -> Callable[[str], int]:
    from hta.trace_analysis import TraceAnalysis

    return lambda path: len(TraceAnalysis(trace_files={0: path}).t.get_trace(0))


_WAYS: dict[str, Callable[[], Callable[[str], int]]] = {_OURS: _ours, _PARSE: _parse, _WHOLE: _whole}


def write(path: Path, events: int) -> None:
    """A Chrome trace as Kineto writes it: ops that launch kernels, in steps of a profiler."""
    launches = max(events // _EVENTS_OF_LAUNCH, 1)
    with gzip.open(path, "wt", compresslevel=1) as file:
        file.write('{"schemaVersion": 1, "deviceProperties": [], "traceEvents": [\n')
        for number in range(launches):
            text = ",\n".join(json.dumps(event) for event in _launch(number))
            file.write(text + (",\n" if number < launches - 1 else "\n"))
        file.write('], "traceName": "made_up.json"}')


def _launch(number: int) -> Iterator[dict[str, Any]]:
    """An op, the call inside it, its kernel, and the flow between the two; a step now and then in place of the flow."""
    ts, place = 1_700_000_000_000_000 + number * 20, {"pid": 1000, "tid": 1000}
    op = {"External id": number + 1, "Record function id": 0, "Input Dims": [[64, 64], [64, number % 64 + 1]]}
    op |= {"Input type": ["float", "float"], "Ev Idx": number}
    yield _span("cpu_op", f"aten::op{number % 200}", ts, 15, place, op)
    call = {"External id": number + 1, "cbid": 211, "correlation": number + 1}
    yield _span("cuda_runtime", "cudaLaunchKernel", ts + 5, 5, place, call)
    device = {"pid": 0, "tid": 7}
    shape = {"grid": [number % 32 + 1, 1, 1], "block": [256, 1, 1], "registers per thread": 32, "shared memory": 0}
    facts = {"External id": number + 1, "device": 0, "stream": 7, "context": 1, "correlation": number + 1}
    yield _span("kernel", f"void kernel{number % 100}<float>(int, float*)", ts + 30, 12, device, {**facts, **shape})
    if number % 1000 == 0:
        yield _span("user_annotation", f"ProfilerStep#{number // 1000}", ts, 19_999, place, {"External id": 0})
    else:
        yield {"ph": "s", "id": number + 1, "ts": ts + 5, "cat": "ac2g", "name": "ac2g", **place}
    yield {"ph": "f", "id": number + 1, "ts": ts + 30, "cat": "ac2g", "name": "ac2g", "bp": "e", **device}


def _span(category: str, name: str, ts: int, dur: int, place: dict[str, int], args: dict[str, Any]) -> dict[str, Any]:
    return {"ph": "X", "cat": category, "name": name, **place, "ts": ts, "dur": dur, "args": args}
