"""torch-tb-profiler, TensorBoard's plugin, reads what we write: time on the CPU, operators and modules."""

import shutil
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torch_tb_profiler", reason="torch-tb-profiler is not installed")

import mtprof_nb as mtp  # noqa: E402
from mtprof_nb.capture.kineto import exported_trace  # noqa: E402
from mtprof_nb.reading import read  # noqa: E402


def _train(steps: int, prof: Any) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(steps):
        optimizer.zero_grad()
        model(torch.randn(8, 16)).sum().backward()
        optimizer.step()
        prof.step()


def _read(path: Path) -> Any:
    from torch_tb_profiler.io.cache import Cache
    from torch_tb_profiler.profiler.data import RunProfileData
    from torch_tb_profiler.profiler.run_generator import RunGenerator

    profile = RunProfileData.parse("worker", 0, str(path), Cache())
    return RunGenerator("worker", 0, profile).generate_run_profile()


def _modules(rows: list[dict[str, Any]]) -> list[Any]:
    return [(row["name"], row["occurences"], row["operators"], _modules(row["children"])) for row in rows]


@pytest.mark.filterwarnings("ignore")
def test_the_plugin_reports_what_it_reports_of_kinetos_own_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, kinetos = tmp_path / "ours.pt.trace.json", tmp_path / "kinetos.pt.trace.json"

    def copy_too(path: Path, **options: Any) -> Any:
        shutil.copy(path, kinetos)
        return read(path, **options)

    monkeypatch.setattr(exported_trace, "read", copy_too)
    monkeypatch.setattr(exported_trace.Noted, "of_session", lambda _, kineto_ns: kineto_ns)
    flags = {"record_shapes": True, "with_stack": True, "profile_memory": True}
    with mtp.profile(schedule=mtp.schedule(wait=0, warmup=1, active=3), **flags) as prof:
        _train(4, prof)
    prof.export_chrome_trace(str(ours))
    own, other = _read(ours), _read(kinetos)

    performance, expected = (
        {row["name"]: row["value"] for row in run.overview["performance"][0]["children"]} for run in (own, other)
    )
    assert performance["CPU Exec"] == expected["CPU Exec"] > 0
    assert performance == expected
    operators, expected_operators = (run.operation_table_by_name["data"] for run in (own, other))
    assert operators == [{**row, "has_call_stack": True} for row in expected_operators]
    assert operators
    modules, expected_modules = (_modules(run.get_module_view()["data"]) for run in (own, other))
    assert modules == expected_modules
    assert "Linear" in str(modules)
