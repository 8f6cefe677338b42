"""Program of `make demo`: a small training run profiled in the terminal, then the quickstart as a page to open."""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from torch import nn

import mtprof_nb as mtp

ROOT = Path(__file__).parent.parent
NOTEBOOK = ROOT / "notebooks" / "01_quickstart.ipynb"
PAGE = ROOT / "build" / "quickstart.html"
STEPS = 20


class SmallNet(nn.Module):
    """One layer a line, so that each has its own cost."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(1, 16, 3, padding=1)
        self.pool = nn.MaxPool2d(2)
        self.classify = nn.Linear(16 * 14 * 14, 10)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Scores of the ten classes."""
        features = self.convolution(images)
        features = torch.relu(features)
        features = self.pool(features)
        return self.classify(features.flatten(1))


def train(model: nn.Module, steps: int) -> None:
    """Some steps on random pictures."""
    optimizer = torch.optim.Adam(model.parameters())
    images, labels = torch.randn(64, 1, 28, 28), torch.randint(10, (64,))
    for _ in mtp.steps(range(steps)):
        optimizer.zero_grad()
        scores = model(images)
        loss = nn.functional.cross_entropy(scores, labels)
        loss.backward()
        optimizer.step()


def profile_training() -> mtp.profile:
    """Training run, recorded with exact source lines."""
    torch.manual_seed(0)
    # The net is small: threads would wait for each other more than they help.
    torch.set_num_threads(1)
    model = SmallNet()
    train(model, 2)
    with mtp.profile(with_stack=True, name=f"{STEPS} steps of a small convolutional net") as prof:
        train(model, STEPS)
    return prof


def write_page(notebook: Path, page: Path) -> None:
    """Execute a notebook from top to bottom and leave it, with its outputs, as one HTML file."""
    from nbconvert import HTMLExporter
    from tutorials import executed

    # The page stands alone: nothing on it needs what these would load from elsewhere.
    exporter = HTMLExporter(embed_images=True, require_js_url="", mathjax_url="", jquery_url="")
    html, _ = exporter.from_notebook_node(executed(notebook))
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(html, encoding="utf-8")


def main() -> None:
    """Print the hottest lines, with what backward and the optimizer owe to them, and ops; the address of the page."""
    profile_training().show()
    print(f"\nexecuting {NOTEBOOK.relative_to(ROOT)} …")
    write_page(NOTEBOOK, PAGE)
    print(f"open {PAGE.as_uri()}")
    print("or `make lab` for the same notebook, live")


if __name__ == "__main__":
    sys.exit(main())
