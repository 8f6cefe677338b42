"""Traces that torch's own profiler exported: averages, links and stacks are those of torch, on the same run."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mtprof_nb.model.trace import OP, PHASES, Trace
from mtprof_nb.reading import read
from mtprof_nb.tables.averages import key_averages

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402
from torch import profiler as torch_profiler  # noqa: E402

EVERYTHING = dict.fromkeys(("record_shapes", "profile_memory", "with_stack", "with_flops", "with_modules"), True)
FACTS = ("count", "cpu_time_total", "self_cpu_time_total", "cpu_memory_usage", "self_cpu_memory_usage")


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 4, 3), nn.Linear(4 * 36, 2)

    def forward(self, x: Any) -> Any:
        hidden = torch.relu(self.first(x)).flatten(1)
        return self.second(hidden) + torch.cat([hidden, hidden]).sum()


def _trained() -> Callable[[], None]:
    net = Net()
    optimizer = torch.optim.Adam(net.parameters())

    def step() -> None:
        with torch_profiler.record_function("my scope"):
            loss = net(torch.ones(2, 3, 8, 8)).sum()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def _recorded(folder: Path, **flags: Any) -> tuple[Any, Path]:
    step = _trained()
    step()
    schedule = torch_profiler.schedule(wait=0, warmup=1, active=2, repeat=1)
    with torch_profiler.profile(activities=[torch_profiler.ProfilerActivity.CPU], schedule=schedule, **flags) as prof:
        for _ in range(3):
            step()
            prof.step()
    path = folder / "trace.json"
    prof.export_chrome_trace(str(path))
    return prof, path


@pytest.mark.parametrize("flags", [{}, EVERYTHING], ids=["no flags", "all flags"])
@pytest.mark.parametrize("by_shape", [False, True])
def test_averages_are_torchs_own(tmp_path: Path, flags: dict[str, bool], by_shape: bool) -> None:
    prof, path = _recorded(tmp_path, **flags)

    rows = key_averages(read(path), group_by_input_shape=by_shape)

    own = {(row.key, str(row.input_shapes)): [getattr(row, fact) for fact in FACTS] for row in rows}
    # Before 2.15 torch lists Python functions too.
    is_python = _python_names(path)
    theirs = {
        (row.key, str(row.input_shapes)): [getattr(row, fact) for fact in FACTS]
        for row in prof.key_averages(group_by_input_shape=by_shape)
        if row.key not in is_python
    }
    assert ("aten::conv2d" in {key for key, _ in own}, own.keys()) == (True, theirs.keys())
    for key, facts in theirs.items():
        assert own[key] == pytest.approx(facts, abs=1e-6), key


def _python_names(path: Path) -> set[str]:
    events = json.loads(path.read_text())["traceEvents"]
    return {event["name"] for event in events if event.get("cat") == "python_function"}


def _loaded(folder: Path) -> Trace:
    return read(_recorded(folder, with_stack=True, with_modules=True)[1])


def test_phases_and_forward_ops_are_those_of_a_live_recording(tmp_path: Path) -> None:
    trace = _loaded(tmp_path)

    phases: dict[str, set[str]] = {}
    for name, phase, kind in zip(trace.name.tolist(), trace.phase.tolist(), trace.kind.tolist(), strict=True):
        if kind == OP:
            phases.setdefault(PHASES[phase], set()).add(trace.names[name])
    assert {"aten::conv2d", "aten::linear", "aten::cat"} <= phases["forward"]
    assert {"ConvolutionBackward0", "aten::convolution_backward"} <= phases["backward"]
    assert "aten::_foreach_lerp_" in phases["optimizer"] or "aten::lerp_" in phases["optimizer"]
    backward = trace.names.index("aten::convolution_backward")
    forward = {trace.names[trace.name[row]] for row in trace.forward[trace.name == backward].tolist()}
    assert len(forward) == 1
    assert forward.pop() in {"aten::_convolution", "aten::convolution", "aten::mkldnn_convolution", "aten::conv2d"}
    assert sorted(set(trace.step.tolist())) == [1, 2]


def test_stacks_and_modules_lead_to_the_users_functions(tmp_path: Path) -> None:
    trace = _loaded(tmp_path)

    rows = np.flatnonzero((trace.name == trace.names.index("aten::conv2d")) & (trace.kind == OP)).tolist()
    assert trace.stacks is not None
    functions = [frame.function for frame in trace.stacks.stack(trace.stack[rows[0]])]
    own = [function for function in functions if function in ("step", "forward", "_recorded")]
    assert own[-3:] == ["forward", "step", "_recorded"]
    assert {trace.modules[trace.module[row]] for row in rows} == {"Net.Conv2d"}
    assert trace.notes == ("Lines in stacks are those of `def`: the file has no others.",)
