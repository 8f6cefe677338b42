"""A host and a GPU with clocks of their own, which write what they do as Kineto writes it into a Chrome trace."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PID, MAIN, ENGINE, DEVICE = 4242, 4242, 4250, 0
COMPUTE, COMMUNICATION = 7, 20
_BASE_NS = 1_790_000_000_000_000_000
#: Microseconds that a launch takes, and from its end to the start of its kernel, and between queued kernels.
_LAUNCH_US, _DELAY_US, _BETWEEN_US = 5.5, 4.0, 1.3


@dataclass
class SimulatedGpu:
    """Calls are written in the order in which a program makes them; the clock of the host moves on with each."""

    events: list[dict[str, Any]] = field(default_factory=list)
    now: float = 100.0
    _free: dict[int, float] = field(default_factory=dict)
    _thread: int = MAIN
    _correlation: int = 900
    _op: int = 0
    _python: list[int] = field(default_factory=list)
    _pythons: int = 0
    _opened: list[int] = field(default_factory=list)
    _addresses: int = 0
    _held: dict[int, int] = field(default_factory=lambda: {0: 0, 1: 0})
    _noise: random.Random = field(default_factory=lambda: random.Random(7))

    def work(self, microseconds: float) -> None:
        """Let the host work on something that is not recorded, such as Python code."""
        self.now += microseconds * self._noise.uniform(0.85, 1.2)

    @contextmanager
    def _span(self, category: str, name: str, tid: int | None = None, **args: Any) -> Iterator[dict[str, Any]]:
        event = {"ph": "X", "cat": category, "name": name, "pid": PID, "tid": tid or self._thread}
        event |= {"ts": self.now, "dur": 0.0, "args": args}
        self.events.append(event)
        yield event
        event["dur"] = self.now - event["ts"]

    @contextmanager
    def op(self, name: str, dims: Any = (), before: float = 4.0, after: float = 2.5, **args: Any) -> Iterator[int]:
        """An op with input shapes; what is called meanwhile runs inside it."""
        self._op += 1
        number = self._op
        shapes = {"Input Dims": dims, "Input type": ["float"] * len(dims)} if dims else {}
        with self._span("cpu_op", name, **{"External id": number, **shapes, **args}):
            self._opened.append(number)
            self.work(before)
            yield number
            self.work(after)
            self._opened.pop()

    @contextmanager
    def scope(self, name: str) -> Iterator[None]:
        """A scope of `record_function`, with a scope on the device around the kernels that were launched in it."""
        first = len(self.events)
        self._op += 1
        number = self._op
        with self._span("user_annotation", name, **{"External id": number}):
            yield
        inside = [one for one in self.events[first:] if one["cat"] in ("kernel", "gpu_memcpy")]
        for stream in sorted({one["tid"] for one in inside}):
            mine = [one for one in inside if one["tid"] == stream]
            start, end = mine[0]["ts"], max(one["ts"] + one["dur"] for one in mine)
            self._on_device("gpu_user_annotation", name, start, end - start, stream, {"External id": number})

    @contextmanager
    def function(self, name: str) -> Iterator[None]:
        """A call of a Python function, as `train.py(12): step`."""
        self._pythons += 1
        number, parent = self._pythons, self._python[-1] if self._python else None
        with self._span("python_function", name, **{"Python id": number, "Python parent id": parent}):
            self._python.append(number)
            self.work(2)
            yield
            self._python.pop()
            self.work(1)

    @contextmanager
    def engine(self) -> Iterator[None]:
        """Run on the thread of autograd's engine, while the main thread waits."""
        self._thread = ENGINE
        self.work(15)
        yield
        self._thread = MAIN
        self.work(8)

    def launch(self, name: str, microseconds: float, grid: int = 0, stream: int = COMPUTE, **args: Any) -> None:
        """Launch a kernel; `grid` is its number of blocks."""
        shape = {"grid": [grid, 1, 1], "block": [256, 1, 1]} if grid else {}
        occupancy = {"est. achieved occupancy %": min(100, round(grid / 6))} if grid else {}
        with self._call("cudaLaunchKernel", _LAUNCH_US) as correlation:
            pass
        facts = {"registers per thread": 32, "shared memory": 0, **shape, **occupancy, **args}
        self._queue("kernel", name, microseconds, stream, correlation, facts)

    def graph(self, *kernels: tuple[str, float]) -> None:
        """Replay a CUDA graph: one call launches all kernels."""
        with self._call("cudaGraphLaunch", 14.0) as correlation:
            pass
        for name, microseconds in kernels:
            self._queue("kernel", name, microseconds, COMPUTE, correlation, {"grid": [64, 1, 1], "block": [256, 1, 1]})

    def copy(self, direction: str, memories: str, nbytes: int, *, waits: bool = False) -> None:
        """Copy bytes; the host `waits` for it where its memory is pageable."""
        speed = 12_000 if "Pageable" in memories else 25_000
        facts = {"bytes": nbytes, "memory bandwidth (GB/s)": speed / 1_000}
        with self._call("cudaMemcpyAsync", _LAUNCH_US) as correlation:
            name = f"Memcpy {direction} ({memories})"
            end = self._queue("gpu_memcpy", name, 1.2 + nbytes / speed, COMPUTE, correlation, facts)
            if waits:
                self.now = max(self.now, end + 3)

    def synchronize(self, stream: int = COMPUTE) -> None:
        """Let the host wait for a stream."""
        with self._call("cudaStreamSynchronize", 2.0):
            self.now = max(self.now, self._free.get(stream, 0) + 3)

    def after(self, stream: int, other: int) -> None:
        """Let one stream wait for what was launched on another."""
        self._free[stream] = max(self._free.get(stream, 0), self._free.get(other, 0))

    def allocate(self, nbytes: int, on_device: bool = True) -> int:
        """An allocation, or a release where `nbytes` is negative; returns its address."""
        self._addresses += 1
        self._memory(nbytes, 0x7F00_0000 + 0x1000 * self._addresses, on_device)
        self.work(0.4)
        return 0x7F00_0000 + 0x1000 * self._addresses

    def release(self, nbytes: int, address: int, on_device: bool = True) -> None:
        """Release what `allocate` gave an address."""
        self._memory(-nbytes, address, on_device)

    def _memory(self, nbytes: int, address: int, on_device: bool) -> None:
        kind = int(on_device)
        self._held[kind] += nbytes
        facts = {"Total Allocated": self._held[kind], "Bytes": nbytes, "Addr": address}
        facts |= {"Device Id": 0 if on_device else -1, "Device Type": kind}
        event = {"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": PID, "tid": self._thread}
        self.events.append({**event, "ts": self.now, "args": facts})

    @contextmanager
    def _call(self, name: str, microseconds: float) -> Iterator[int]:
        self._correlation += 1
        correlation = self._correlation
        external = {"External id": self._opened[-1]} if self._opened else {}
        with self._span("cuda_runtime", name, correlation=correlation, **external):
            yield correlation
            self.work(microseconds)

    def _queue(
        self, category: str, name: str, took: float, stream: int, correlation: int, facts: dict[str, Any]
    ) -> float:
        start = max(self.now + _DELAY_US, self._free.get(stream, 0) + _BETWEEN_US)
        took *= self._noise.uniform(0.96, 1.05)
        external = {"External id": self._opened[-1]} if self._opened else {}
        args = {**external, "device": DEVICE, "context": 1, "stream": stream, "correlation": correlation, **facts}
        self._on_device(category, name, start, took, stream, args)
        self._free[stream] = start + took
        return start + took

    def _on_device(
        self, category: str, name: str, start: float, took: float, stream: int, args: dict[str, Any]
    ) -> None:
        event = {"ph": "X", "cat": category, "name": name, "pid": DEVICE, "tid": stream, "ts": start, "dur": took}
        self.events.append({**event, "args": args})


def write(gpu: SimulatedGpu, path: Path, **about: Any) -> None:
    """Write the Chrome trace; equal events give equal bytes."""
    events = sorted(gpu.events, key=lambda event: event["ts"])
    for number, event in enumerate(events):
        event["ts"] = round(event["ts"], 3)
        event["args"] = {**event["args"], "Ev Idx": number} if event["pid"] == PID else event["args"]
        if "dur" in event:
            event["dur"] = round(event["dur"], 3)
    document = {
        "schemaVersion": 1,
        "deviceProperties": [{"id": DEVICE, "name": "Simulated GPU", "totalGlobalMem": 16 << 30, "numSms": 80}],
        **about,
        "displayTimeUnit": "ms",
        "baseTimeNanoseconds": _BASE_NS,
        "traceEvents": [*events, *_names(), *_flows(events)],
    }
    text = json.dumps(document, separators=(",", ":"))
    path.write_bytes(gzip.compress(text.encode(), mtime=0))


def _names() -> Iterator[dict[str, Any]]:
    """Names of processes and threads."""
    named = {"process_name": (PID, 0, "python"), "process_labels": (PID, 0, "CPU")}
    for kind, (pid, tid, name) in named.items():
        key = "labels" if kind == "process_labels" else "name"
        yield {"name": kind, "ph": "M", "ts": 0, "pid": pid, "tid": tid, "args": {key: name}}
    yield {"name": "process_labels", "ph": "M", "ts": 0, "pid": DEVICE, "tid": 0, "args": {"labels": "GPU 0"}}
    for pid, tid, name in ((PID, MAIN, "MainThread"), (PID, ENGINE, "pt_autograd_0")):
        yield {"name": "thread_name", "ph": "M", "ts": 0, "pid": pid, "tid": tid, "args": {"name": name}}
    for stream in (COMPUTE, COMMUNICATION):
        args = {"name": f"stream {stream}"}
        yield {"name": "thread_name", "ph": "M", "ts": 0, "pid": DEVICE, "tid": stream, "args": args}


def _flows(events: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Arrows from each call to what it launched."""
    for event in events:
        number = event["args"].get("correlation")
        if number is None:
            continue
        is_call = event["cat"] == "cuda_runtime"
        place = {key: event[key] for key in ("pid", "tid", "ts")}
        ending = {"ph": "s"} if is_call else {"ph": "f", "bp": "e"}
        yield {**ending, "id": number, **place, "cat": "ac2g", "name": "ac2g"}
