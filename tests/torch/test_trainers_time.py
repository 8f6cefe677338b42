"""Trainers of libraries: the time of the user's functions that they call, below a dozen frames of their own."""

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from timed_functions import check

import mtprof_nb as mtp
from mtprof_nb.views.tabs.stacks.stacks_tab import stack_chart

torch = pytest.importorskip("torch")
try:
    # Before any test, for it replaces a function of torch for good.
    import lightning
except ImportError:
    lightning = None
STEPS = 10


@pytest.fixture
def work(module: Callable[[str], ModuleType]) -> ModuleType:
    return module("one")


@pytest.fixture
def collate(work: ModuleType) -> Callable[[list[Any]], dict[str, Any]]:
    def make(rows: list[Any]) -> dict[str, Any]:
        work.asleep_one(0.01)
        inputs = torch.stack(rows)
        return {"inputs": inputs, "labels": inputs.sum(1)}

    return make


def checked(prof: mtp.profile, work: ModuleType) -> None:
    """Samples are right, and stacks have the user's functions a few folded frames below the caller."""
    check(prof, work)
    labels = stack_chart(prof.trace, False, True).chart("python")["slices"]["label"]
    assert any(label.startswith("busy_one") for label in labels)
    assert any(label.endswith(" frames)") for label in labels)


def test_a_trainer_of_transformers(work: ModuleType, collate: Callable[..., Any], tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    pytest.importorskip("accelerate", reason="accelerate, which the Trainer needs, is not installed")

    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(8, 1)

        def forward(self, inputs: Any, labels: Any) -> dict[str, Any]:
            work.busy_one(0.01)
            return {"loss": ((self.layer(inputs)[:, 0] - labels) ** 2).mean()}

    arguments = transformers.TrainingArguments(
        str(tmp_path),
        max_steps=STEPS,
        per_device_train_batch_size=2,
        remove_unused_columns=False,
        disable_tqdm=True,
        use_cpu=True,
        report_to=[],
        save_strategy="no",
    )
    rows = list(torch.randn(2 * STEPS, 8))
    trainer = transformers.Trainer(Model(), arguments, train_dataset=rows, data_collator=collate)
    with mtp.profile(with_python=True, with_stack=True) as prof:
        trainer.train()

    checked(prof, work)


@pytest.mark.skipif(lightning is None, reason="lightning is not installed")
def test_a_trainer_of_lightning(work: ModuleType, collate: Callable[..., Any]) -> None:
    class Model(lightning.LightningModule):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(8, 1)

        def training_step(self, batch: dict[str, Any], _: int) -> Any:
            work.busy_one(0.01)
            return ((self.layer(batch["inputs"])[:, 0] - batch["labels"]) ** 2).mean()

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), lr=0.01)

    quiet = ("logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary")
    trainer = lightning.Trainer(max_steps=STEPS, accelerator="cpu", **dict.fromkeys(quiet, False))
    loader = torch.utils.data.DataLoader(list(torch.randn(2 * STEPS, 8)), batch_size=2, collate_fn=collate)
    with mtp.profile(with_python=True, with_stack=True) as prof:
        trainer.fit(Model(), loader)

    checked(prof, work)
