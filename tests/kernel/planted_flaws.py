"""Small training and evaluation programs, each with one flaw. The line of the flaw ends with `# HERE`."""

from __future__ import annotations

from textwrap import dedent
from typing import NamedTuple


class Program(NamedTuple):
    """A program: what is there before the recording, and what is recorded."""

    before: str
    recorded: str


def program(before: str, recorded: str) -> Program:
    return Program(dedent(before).strip() + "\n", dedent(recorded).strip() + "\n")


_TRAINING = """
import torch
from torch import nn
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10))
optimizer = torch.optim.Adam(model.parameters(), fused=True)
x, y = torch.randn(512, 64), torch.randint(0, 10, (512,))
"""
_LOOP = """
for _ in range(8):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
"""

#: By the rule that has to come first.
PLANTED: dict[str, Program] = {
    "float64_in_float32": program(
        _TRAINING
        + "import numpy as np\nmean, spread = torch.from_numpy(np.zeros(2_048)), torch.from_numpy(np.ones(2_048))\n"
        "images = torch.randn(256, 2_048)\n",
        """
        for _ in range(8):
            centred = images - mean  # HERE
            normal = centred / spread
            scores = normal.exp().sum(1).float()
        """,
    ),
    "float64_everywhere": program(
        "import numpy as np, torch\npoints = np.random.rand(300, 300)\n",
        """
        def distances(a):
            return torch.cdist(a, a)  # HERE

        data = torch.from_numpy(points)
        for _ in range(8):
            nearest = distances(data).min()
        """,
    ),
    "converted_to_and_fro": program(
        "import torch\nimages = torch.randint(0, 255, (64, 3, 64, 64), dtype=torch.uint8)\n",
        """
        for _ in range(8):
            brighter = images.float().mul_(1.1).clamp_(0, 255).byte()  # HERE
            images = brighter
        """,
    ),
    "waits_for_input": program(
        _TRAINING + "import time\nfrom torch.utils.data import DataLoader\ndata = list(zip(x, y))\n",
        """
        def collate(items):
            time.sleep(0.01)  # HERE
            return torch.stack([item for item, _ in items]), torch.stack([label for _, label in items])

        for images, labels in DataLoader(data, batch_size=64, collate_fn=collate):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(images), labels).backward()
            optimizer.step()
        """,
    ),
    "missing_no_grad": program(
        _TRAINING,
        """
        right = 0
        for _ in range(4):
            scores = model(x)  # HERE
            right += (scores.argmax(1) == y).sum().item()
        """,
    ),
    "parameters_one_by_one": program(
        _TRAINING + "model = nn.Sequential(*(nn.Linear(16, 16) for _ in range(30)))\n"
        "optimizer = torch.optim.AdamW(model.parameters(), foreach=False)\nx = torch.randn(8, 16)\n",
        """
        for _ in range(8):
            optimizer.zero_grad()
            model(x).square().mean().backward()
            optimizer.step()  # HERE
        """,
    ),
    "loop_over_elements": program(
        "import torch\nrows, weight = torch.randn(400, 16), torch.randn(16, requires_grad=True)\n",
        """
        scores = []
        for i in range(len(rows)):
            row = rows[i]  # HERE
            score = torch.sigmoid(row @ weight)
            scores.append(score)
        loss = torch.stack(scores).mean()
        loss.backward()
        """,
    ),
    "grows_by_cat": program(
        "import torch\nmodel = torch.nn.Linear(512, 512)\ntoken, cache = torch.randn(1, 512), torch.randn(1, 512)\n",
        """
        with torch.no_grad():
            for _ in range(600):
                token = model(token)
                cache = torch.cat([cache, token])  # HERE
        """,
    ),
    "slow_backward": program(
        "import torch\nfrom torch import nn\nwords = nn.Embedding(300_000, 32)\nhead = nn.Linear(32, 2)\n"
        "text = torch.randint(0, 300_000, (16, 8))\n",
        """
        def forward(tokens):
            vectors = words(tokens)  # HERE
            return head(vectors.mean(1))

        for _ in range(6):
            words.zero_grad()
            forward(text).sum().backward()
        """,
    ),
    "pointwise_chain": program(
        "import torch\nx = torch.randn(1_200, 1_000)\n",
        """
        def gelu(x):
            cube = x * x * x
            inner = (x + 0.044715 * cube) * 0.7978845608
            return 0.5 * x * (1 + inner.tanh())  # HERE

        for _ in range(4):
            y = gelu(x)
        """,
    ),
    "needless_contiguous": program(
        "import torch\nimages = torch.randn(32, 64, 64, 16)\n",
        """
        for _ in range(8):
            channels_first = images.permute(0, 3, 1, 2).contiguous()  # HERE
            mean = channels_first.mean((0, 2, 3))
        """,
    ),
    "grows_each_step": program(
        _TRAINING + "x, y = torch.randn(4_096, 64), torch.randint(0, 10, (4_096,))\n",
        """
        history = []
        for _ in range(8):
            optimizer.zero_grad()
            hidden = model[:2](x)  # HERE
            history.append(hidden)
            loss = nn.functional.cross_entropy(model[2:](hidden), y)
            loss.backward()
            optimizer.step()
        """,
    ),
}

#: Well written programs. `item()` does not wait on a CPU.
SOUND = {
    "training": program(_TRAINING, _LOOP),
    "losses that are read": program(_TRAINING, "total = 0.0\n" + _LOOP + "    total += loss.item()\n"),
    "evaluation": program(
        _TRAINING,
        """
        with torch.inference_mode():
            right = sum((model(x).argmax(1) == y).sum().item() for _ in range(8))
        """,
    ),
}
