"""The programs that are profiled: each is the text of a cell, and the names that it finds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

#: What a training cell does in each step.
_TRAINING = """
for step in range(steps):
    optimizer.zero_grad()
    predicted = model(inputs)
    loss = criterion(predicted, targets)
    loss.backward()
    optimizer.step()
"""

#: Small functions, many calls of which stand between two ops.
_FUNCTIONS = """
def weight(word, depth):
    if depth:
        return weight(word, depth - 1)
    return len(word) * 1e-3

def score(words):
    total = 0.0
    for word in words:
        total += weight(word, 3)
    return total
"""
_PYTHON_HEAVY = """
for step in range(steps):
    state = state * decay + score(words)
    state = state.clamp(-1.0, 1.0)
    summary = state.mean()
"""
#: Small ops. Each makes a tensor of its number, and that is five events.
_SMALL_OPS = """
for step in range(steps):
    scaled = state * 1.0001
"""


@dataclass(frozen=True)
class Program:
    """A cell and its namespace. `weight`: how many of its steps take as long as one of the standard program's."""

    name: str
    source: str
    names: Callable[[], dict[str, Any]]
    weight: float = 1.0

    def steps(self, standard: int) -> int:
        """As many steps as take about as long as `standard` steps of the standard program."""
        return max(round(standard * self.weight), 1)

    def namespace(self, steps: int) -> dict[str, Any]:
        """The names, new and the same each time."""
        import torch

        torch.set_num_threads(1)
        torch.manual_seed(0)
        return {"steps": steps, **self.names()}

    def prepare(self, steps: int) -> Callable[[], None]:
        """The program, ready to run again and again, once warm."""
        code = compile(self.source, f"<{self.name}>", "exec")
        names = self.namespace(steps)
        exec(code, {**names, "steps": 3})
        return lambda: exec(code, names)


def _training(model: Any, inputs: Any, targets: Any, criterion: Any) -> dict[str, Any]:
    import torch

    # One op a parameter, as on the devices that have no fused optimizer: many small events are what is measured.
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, foreach=False)
    return {"model": model, "inputs": inputs, "targets": targets, "criterion": criterion, "optimizer": optimizer}


def _mlp() -> dict[str, Any]:
    import torch
    from torch import nn

    layers = [layer for _ in range(6) for layer in (nn.Linear(32, 32), nn.ReLU())]
    return _training(nn.Sequential(*layers), torch.randn(16, 32), torch.randn(16, 32), nn.functional.mse_loss)


def _convolutions() -> dict[str, Any]:
    import torch
    from torch import nn

    model = nn.Sequential(
        *(nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(8, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Linear(16 * 7 * 7, 10)),
    )
    return _training(model, torch.randn(8, 1, 28, 28), torch.randint(10, (8,)), nn.functional.cross_entropy)


def _encoder() -> dict[str, Any]:
    import torch
    from torch import nn

    layer = nn.TransformerEncoderLayer(64, 4, dim_feedforward=128, batch_first=True)
    model = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    return _training(model, torch.randn(4, 16, 64), torch.randn(4, 16, 64), nn.functional.mse_loss)


def _python_heavy() -> dict[str, Any]:
    import torch

    words = ("the", "quick", "brown", "fox", "jumps", "over", "the", "lazy", "dog", "and", "runs", "away")
    module: dict[str, Any] = {}
    exec(compile(_FUNCTIONS, "words.py", "exec"), module)
    return {"words": words, "score": module["score"], "decay": 0.9, "state": torch.zeros(64)}


def _small_ops() -> dict[str, Any]:
    import torch

    return {"state": torch.ones(64)}


MLP = Program("mlp", _TRAINING, _mlp)
PROGRAMS = (
    MLP,
    Program("convolutions", _TRAINING, _convolutions, weight=0.2),
    Program("encoder", _TRAINING, _encoder, weight=0.2),
    Program("python-heavy", _PYTHON_HEAVY, _python_heavy, weight=8.0),
)
#: The same with its functions in the cell, where their lines are marked too.
IN_CELL = Program("python-heavy, functions in the cell", _FUNCTIONS + _PYTHON_HEAVY, _python_heavy, weight=8.0)
SMALL_OPS = Program("small ops", _SMALL_OPS, _small_ops)

#: What each flag set of the table asks for.
FLAGS: dict[str, dict[str, bool]] = {
    "no flags": {},
    "shapes": {"record_shapes": True},
    "memory": {"profile_memory": True},
    "stack": {"with_stack": True},
    "all": {
        "record_shapes": True,
        "profile_memory": True,
        "with_stack": True,
        "with_flops": True,
        "with_modules": True,
    },
}
