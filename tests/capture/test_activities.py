"""Activities by name or member, ours or torch's."""

import sys
from dataclasses import dataclass, field

import pytest

import mtprof_nb as mtp
from mtprof_nb.capture.activities import as_activity, available, resolve_activities
from mtprof_nb.capture.hook import Request
from mtprof_nb.capture.kineto.torch_profiler import make_profiler


def test_each_activity_is_itself():
    assert [activity.name for activity in mtp.ProfilerActivity] == ["CPU", "CUDA", "XPU", "MTIA", "HPU", "NPU"]


@pytest.mark.parametrize(
    ("given", "expected"), [("cpu", "CPU"), ("CUDA", "CUDA"), ("PrivateUse1", "NPU"), ("ProfilerActivity.XPU", "XPU")]
)
def test_an_activity_is_known_by_any_of_its_names(given, expected):
    assert as_activity(given) is mtp.ProfilerActivity[expected]


def test_torchs_members_are_taken():
    torch = pytest.importorskip("torch")
    assert as_activity(torch.profiler.ProfilerActivity.CPU) is mtp.ProfilerActivity.CPU
    assert as_activity(torch.profiler.ProfilerActivity.PrivateUse1) is mtp.ProfilerActivity.NPU
    assert {as_activity(member) for member in torch.profiler.ProfilerActivity.__members__.values()} == {
        *mtp.ProfilerActivity
    }


def test_an_unknown_activity_is_refused_with_the_supported_ones():
    with pytest.raises(ValueError, match="unknown activity 'TPU': supported here are CPU"):
        mtp.profile(activities=["TPU"])


def test_none_stands_for_every_supported_activity():
    names, filters = resolve_activities(None)
    assert names == {activity.value for activity in mtp.supported_activities()}
    assert filters == {}


def test_an_activity_that_is_not_available_is_left_out_with_a_warning():
    if mtp.ProfilerActivity.CUDA in mtp.supported_activities():
        pytest.skip("this machine records CUDA")
    with pytest.warns(mtp.MtprofWarning, match="CUDA is not available here"):
        names, _ = resolve_activities(["cpu", "cuda"])
    assert names == {"CPU"}
    with pytest.raises(ValueError, match="none of these activities can be recorded here"):
        resolve_activities(["cuda"])


def test_before_a_runtime_is_imported_every_activity_stands_and_is_judged_once_it_is(monkeypatch):
    torch = pytest.importorskip("torch")
    for name in ("torch", "mindtorch_v2", "candle"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    everything, _ = resolve_activities(None)
    chosen, _ = resolve_activities(["cpu", "cuda"])
    assert (everything, chosen) == ({"CPU", "CUDA", "XPU", "MTIA", "HPU", "NPU"}, {"CPU", "CUDA"})

    monkeypatch.setitem(sys.modules, "torch", torch)
    activity = torch.profiler.ProfilerActivity
    monkeypatch.setattr(torch.profiler, "supported_activities", lambda: {activity.CPU, activity.CUDA})
    assert available(everything) >= {"CPU", "CUDA"}
    assert available(chosen) == {"CPU", "CUDA"}
    monkeypatch.setattr(torch.profiler, "supported_activities", lambda: {activity.CPU})
    with pytest.warns(mtp.MtprofWarning, match="CUDA is not available here"):
        assert available(chosen) == {"CPU"}


def test_an_activity_named_twice_is_refused_as_in_torch():
    for twice in (["cpu", "cpu"], ["cpu", {"cpu": ["cpu_op"]}], [{"cpu": []}, "CPU"]):
        with pytest.raises(ValueError, match="activity CPU specified more than once"):
            resolve_activities(twice)


@dataclass
class ActivityConfig:
    """Built as torch's `ProfilerActivityConfig`, which came with 2.15."""

    activity_types: list[str] | None = None
    profiler_configs: list[object] = field(default_factory=list)


class PerformanceMetricsConfig:
    pass


def test_a_configured_activity_is_filtered_by_its_types_and_refused_with_what_is_not_recorded_here():
    assert resolve_activities([{"cpu": ActivityConfig()}]) == ({"CPU"}, {})
    assert resolve_activities([{"cpu": ActivityConfig(["cpu_op"])}]) == ({"CPU"}, {"CPU": {"cpu_op"}})
    assert resolve_activities([{"cpu": ActivityConfig([])}]) == ({"CPU"}, {"CPU": set()})
    with pytest.raises(ValueError, match=r"PerformanceMetricsConfig: .* not used here; leave it out"):
        mtp.profile(activities=[{"cpu": ActivityConfig(profiler_configs=[PerformanceMetricsConfig()])}])


def test_torchs_own_configuration_of_an_activity_is_taken():
    torch = pytest.importorskip("torch")
    if not hasattr(torch.profiler, "ProfilerActivityConfig"):
        pytest.skip("PyTorch 2.15 or later has ProfilerActivityConfig")
    ops = {"cpu": mtp.ProfilerActivityConfig(activity_types=["CPU_OP"])}
    with mtp.profile(activities=[ops]) as prof:
        torch.ones(3)
    assert prof.activity_filters == {mtp.ProfilerActivity.CPU: {"CPU_OP"}}
    assert "aten::ones" in {event.name for event in prof.events()}
    with pytest.raises(ValueError, match="CuspyConfig: "):
        mtp.profile(activities=["cpu", {"cuda": mtp.ProfilerActivityConfig(profiler_configs=[mtp.CuspyConfig()])}])


@pytest.mark.parametrize("name", ["CUDA", "XPU", "MTIA", "HPU", "NPU"])
def test_torchs_profiler_records_the_device_that_was_chosen(name, monkeypatch):
    torch = pytest.importorskip("torch")
    activity = torch.profiler.ProfilerActivity
    of_device = getattr(activity, {"NPU": "PrivateUse1"}.get(name, name))
    monkeypatch.setattr(torch.profiler, "supported_activities", lambda: {activity.CPU, of_device})
    monkeypatch.setattr(torch._C, "_get_privateuse1_backend_name", lambda: "npu")
    asked = {}
    monkeypatch.setattr(torch.autograd.profiler, "profile", lambda **options: asked.update(options))
    profile = mtp.profile(activities=["cpu", name.lower()])
    make_profiler(torch, Request(activities=frozenset({"CPU", name})), with_python=False)

    assert profile.activities == {mtp.ProfilerActivity.CPU, mtp.ProfilerActivity[name]}
    assert profile.use_device == asked["use_device"] == name.lower()
