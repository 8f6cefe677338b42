"""Exports of real recordings, beside torch's own and in the readers they are for."""

import gzip
import json
import logging
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import mtprof_nb as mtp  # noqa: E402
from mtprof_nb.analysis.memory.memory_categories import Category, categories  # noqa: E402


def _mlp() -> Callable[[], None]:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4))
    optimizer = torch.optim.Adam(model.parameters())
    inputs = torch.randn(8, 16)

    def train() -> None:
        for _ in range(2):
            with torch.profiler.record_function("forward pass"):
                loss = model(inputs + 0).sum()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()

    return train


def _convolutions() -> Callable[[], None]:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.ReLU(), torch.nn.Flatten())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    inputs = torch.randn(2, 3, 8, 8)

    def train() -> None:
        for _ in range(2):
            model(inputs * 1).sum().backward()
            optimizer.step()
            optimizer.zero_grad()

    return train


def _attention() -> Callable[[], None]:
    torch.manual_seed(0)
    model = torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
    inputs = torch.randn(4, 5, 16)

    def train() -> None:
        model(inputs * 1).sum().backward()

    return train


def _recorded(run: Callable[[], None], **flags: bool) -> mtp.profile:
    with mtp.profile(**flags) as prof:
        run()
    return prof


def _of_torch(run: Callable[[], None], **flags: bool) -> Any:
    with torch.profiler.profile(**flags) as prof:
        run()
    return prof


def _counts(document: dict[str, Any], category: str) -> Counter[str]:
    return Counter(one["name"] for one in document["traceEvents"] if one.get("cat") == category)


@pytest.mark.parametrize("flags", [{}, {"record_shapes": True}])
def test_a_chrome_trace_holds_the_ops_that_torchs_own_holds(tmp_path: Path, flags: dict[str, bool]) -> None:
    _recorded(_mlp(), **flags).export_chrome_trace(str(tmp_path / "ours.json"))
    _of_torch(_mlp(), **flags).export_chrome_trace(str(tmp_path / "torchs.json"))
    ours, torchs = (json.loads((tmp_path / name).read_text()) for name in ("ours.json", "torchs.json"))

    assert _counts(ours, "cpu_op") == _counts(torchs, "cpu_op")
    assert _counts(ours, "user_annotation") == _counts(torchs, "user_annotation")
    assert _counts(ours, "fwdbwd") == _counts(torchs, "fwdbwd")
    assert ours["baseTimeNanoseconds"] == torchs["baseTimeNanoseconds"]
    shapes = [
        sorted(
            (one["name"], json.dumps(one["args"].get("Input Dims")), json.dumps(one["args"].get("Input type")))
            for one in document["traceEvents"]
            if one.get("cat") == "cpu_op" and one["name"] in ("aten::addmm", "aten::mm", "aten::relu")
        )
        for document in (ours, torchs)
    ]
    assert shapes[0] == shapes[1]


def test_arrows_join_the_same_ops_as_torchs_own(tmp_path: Path) -> None:
    _recorded(_mlp()).export_chrome_trace(str(tmp_path / "ours.json"))
    _of_torch(_mlp()).export_chrome_trace(str(tmp_path / "torchs.json"))

    def joined(path: Path) -> Counter[tuple[str, str]]:
        events = json.loads(path.read_text())["traceEvents"]
        ops = [one for one in events if one.get("cat") == "cpu_op"]
        # The innermost op that starts at that very moment, as a viewer would have it.
        at = {(one["ts"], one["tid"]): one["name"] for one in sorted(ops, key=lambda one: -one["dur"])}
        starts = {one["id"]: one for one in events if one["ph"] == "s"}
        ends = {one["id"]: one for one in events if one["ph"] == "f"}
        return Counter(
            (at[start["ts"], start["tid"]], at[ends[number]["ts"], ends[number]["tid"]])
            for number, start in starts.items()
        )

    assert joined(tmp_path / "ours.json") == joined(tmp_path / "torchs.json")


@pytest.mark.parametrize("flags", [{}, {"record_shapes": True, "profile_memory": True, "with_stack": True}])
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("suffix", [".json", ".json.gz"])
def test_holistic_trace_analysis_finds_the_same_ops_with_the_same_times(
    tmp_path: Path, flags: dict[str, bool], suffix: str
) -> None:
    pytest.importorskip("hta")
    from hta.common.trace_parser import parse_trace_dict
    from hta.trace_analysis import TraceAnalysis

    logging.getLogger("hta").setLevel(logging.ERROR)
    with mtp.profile(**flags) as prof:
        prof.add_metadata_json("distributedInfo", '{"rank": 0, "world_size": 1}')
        _mlp()()
    path = tmp_path / f"rank0{suffix}"
    prof.export_chrome_trace(str(path))
    analysis = TraceAnalysis(trace_files={0: str(path)}, trace_dir=str(tmp_path))
    frame = analysis.t.get_trace(0)
    symbols = analysis.t.symbol_table.get_sym_table()

    names = frame["name"].map(lambda number: symbols[number])
    category = frame["cat"].map(lambda number: symbols[number])
    trace = prof.trace
    ops = Counter(trace.names[number] for number, kind in zip(trace.name, trace.kind, strict=True) if kind == 0)
    assert Counter(names[category == "cpu_op"]) == ops
    assert parse_trace_dict(str(path))["distributedInfo"] == {"rank": 0, "world_size": 1}
    # It rounds to whole microseconds: an event never becomes longer by that, and at most two shorter.
    exact = trace.duration_ns[trace.kind == 0].sum() / 1000
    assert exact - 2 * len(trace) <= frame["dur"][category == "cpu_op"].sum() <= exact


def test_stacks_of_a_real_run_lead_from_the_program_to_its_lines(tmp_path: Path) -> None:
    prof = _recorded(_mlp(), with_stack=True)
    prof.export_stacks(str(tmp_path / "stacks.txt"))
    lines = (tmp_path / "stacks.txt").read_text().splitlines()

    assert any("test_exports.py" in line and ":train" in line for line in lines)
    assert all(line.rpartition(" ")[2].isdecimal() for line in lines)
    written = sum(int(line.rpartition(" ")[2]) for line in lines)
    assert 0 < written <= sum(event.self_cpu_time_total for event in prof.events())


@pytest.mark.parametrize("program", [_mlp, _convolutions, _attention])
def test_where_a_category_of_memory_is_told_torch_tells_the_same(program: Callable[[], Callable[[], None]]) -> None:
    from torch.profiler._memory_profiler import Action, MemoryProfileTimeline, TensorKey

    flags = {"record_shapes": True, "profile_memory": True, "with_stack": True}
    trace = _recorded(program(), **flags).trace
    assert trace.allocations is not None
    made = trace.allocations.nbytes > 0
    ours = [Category(number).name for number in categories(trace)[made].tolist()]
    timeline = MemoryProfileTimeline(_of_torch(program(), **flags)._memory_profile())
    torchs, sizes = [], []
    for _, action, (key, version), nbytes in timeline.timeline:
        if action == Action.CREATE:
            category = timeline.categories.get(key, version) if isinstance(key, TensorKey) else None
            torchs.append(category.name if category else "UNKNOWN")
            sizes.append(nbytes)

    assert sizes == trace.allocations.nbytes[made].tolist()
    known = [(own, theirs) for own, theirs in zip(ours, torchs, strict=True) if own != "UNKNOWN"]
    assert [pair for pair in known if pair[0] != pair[1] and pair[1] != "UNKNOWN"] == []
    assert {"TEMPORARY", "ACTIVATION", "GRADIENT", "AUTOGRAD_DETAIL"} <= {own for own, _ in known}


def test_a_memory_timeline_ends_where_the_allocators_count_does(tmp_path: Path) -> None:
    prof = _recorded(_mlp(), record_shapes=True, profile_memory=True, with_stack=True)
    prof.export_memory_timeline(str(tmp_path / "memory.json"))
    prof.export_memory_timeline(str(tmp_path / "memory.raw.json.gz"), "cpu")
    moments, sizes = json.loads((tmp_path / "memory.json").read_text())
    raw = json.loads(gzip.decompress((tmp_path / "memory.raw.json.gz").read_bytes()))

    assert moments == sorted(moments)
    assert sum(sizes[-1]) == prof.trace.allocations.total[-1] == sum(entry[2] for entry in raw)


def test_windows_of_a_schedule_are_files_for_tensorboard(tmp_path: Path) -> None:
    run = _mlp()
    with mtp.profile(
        schedule=mtp.schedule(wait=0, warmup=1, active=1, repeat=2),
        on_trace_ready=mtp.tensorboard_trace_handler(str(tmp_path)),
    ) as prof:
        for _ in range(4):
            run()
            prof.step()

    files = sorted(tmp_path.iterdir())
    assert len(files) == 2
    assert all(_counts(json.loads(path.read_text()), "cpu_op")["aten::addmm"] == 4 for path in files)


def test_torchs_choice_between_two_writers_makes_no_difference(tmp_path: Path) -> None:
    with mtp.profile(record_shapes=True) as prof:
        torch.ones(2, 2)
    prof.export_chrome_trace(tmp_path / "one.json")
    prof.export_chrome_trace(tmp_path / "other.json", use_python_export=True)

    events = [json.loads((tmp_path / name).read_text())["traceEvents"] for name in ("one.json", "other.json")]
    assert events[0] == events[1]
