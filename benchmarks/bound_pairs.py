"""Programs with a flaw that a rule of the advice finds, each beside the program after the fix."""

from __future__ import annotations

from textwrap import dedent
from typing import NamedTuple


class Pair(NamedTuple):
    """A program before and after the fix of a rule. `before` runs once, and makes what both need."""

    rule: str
    name: str
    before: str
    flawed: str
    fixed: str


def _pair(rule: str, name: str, before: str, flawed: str, fixed: str) -> Pair:
    return Pair(rule, name, *(dedent(text).strip() + "\n" for text in (before, flawed, fixed)))


_TORCH = "import numpy as np, torch\nfrom torch import nn\ntorch.manual_seed(0)\n"


def _converted(count: int, times: int) -> Pair:
    return _pair(
        "converted_to_and_fro",
        f"{count} numbers",
        f"{_TORCH}x = torch.randint(0, 9, ({count},)); y = x.float()",
        f"z = x\nfor _ in range({times}):\n    z = z.float().add_(1).long()",
        f"z = y\nfor _ in range({times}):\n    z = z.add_(0)",
    )


def _bytes(size: int) -> Pair:
    return _pair(
        "converted_to_and_fro",
        f"bytes, {size} pixels",
        f"{_TORCH}images = torch.randint(0, 255, (16, 3, {size}, {size}), dtype=torch.uint8); floats = images.float()",
        "z = images\nfor _ in range(8):\n    z = z.float().mul_(1.1).clamp_(0, 255).byte()",
        "z = floats\nfor _ in range(8):\n    z = z.mul_(1.1).clamp_(0, 255)",
    )


def _doubled(size: int) -> Pair:
    return _pair(
        "converted_to_and_fro",
        f"double, {size} rows",
        f"{_TORCH}x = torch.randn({size}, {size})",
        "z = x\nfor _ in range(8):\n    z = z.double().exp().sin().float()",
        "z = x\nfor _ in range(8):\n    z = z.exp().sin()",
    )


def _normalised(size: int, times: int) -> Pair:
    return _pair(
        "float64_in_float32",
        f"{size} rows",
        f"{_TORCH}scale = torch.from_numpy(np.random.rand({size})); x = torch.randn({size}, {size})",
        f"for _ in range({times}):\n    y = (x * scale).exp().sin().sum()",
        f"narrow = scale.float()\nfor _ in range({times}):\n    y = (x * narrow).exp().sin().sum()",
    )


def _products(size: int, times: int) -> Pair:
    return _pair(
        "float64_everywhere",
        f"{size} rows",
        f"{_TORCH}data = np.random.rand({size}, {size})",
        f"x = torch.from_numpy(data)\nfor _ in range({times}):\n    y = (x @ x).relu()",
        f"x = torch.as_tensor(data, dtype=torch.float32)\nfor _ in range({times}):\n    y = (x @ x).relu()",
    )


def _optimizer(layers: int, width: int, kind: str) -> Pair:
    steps = "for _ in range(3):\n    optimizers[{}].zero_grad()\n    models[{}](x).sum().backward()\n"
    steps += "    optimizers[{}].step()"
    return _pair(
        "parameters_one_by_one",
        f"{kind}, {layers} layers of {width}",
        f"{_TORCH}models = [nn.Sequential(*(nn.Linear({width}, {width}) for _ in range({layers}))) for _ in range(2)]\n"
        f"x = torch.randn(4, {width})\nchoices = {{'foreach': False}}, {{'fused': True}}\n"
        f"optimizers = [torch.optim.{kind}(m.parameters(), lr=1e-9, **c) for m, c in zip(models, choices)]",
        steps.replace("{}", "0"),
        steps.replace("{}", "1"),
    )


def _elements(name: str, before: str, flawed: str, fixed: str) -> Pair:
    return _pair("loop_over_elements", name, _TORCH + before, flawed, fixed)


def _numbers(width: int) -> Pair:
    return _pair(
        "tensors_of_numbers",
        f"lists of {width}",
        f"{_TORCH}rows = [[float(n) for n in range({width})] for _ in range(300)]; tensors = torch.tensor(rows)",
        "for row in rows:\n    y = torch.tensor(row).sum()",
        "for row in tensors:\n    y = row.sum()",
    )


def _growing(width: int, times: int) -> Pair:
    return _pair(
        "grows_by_cat",
        f"{times} rows of {width}",
        f"{_TORCH}row = torch.randn(1, {width})",
        f"whole = row\nfor _ in range({times}):\n    whole = torch.cat([whole, row])",
        f"parts = [row]\nfor _ in range({times}):\n    parts.append(row)\nwhole = torch.cat(parts)",
    )


_TIME = "import gc, time\n"

PAIRS = (
    *(_converted(count, times) for count, times in ((10, 200), (1_000, 200), (100_000, 20), (2_000_000, 4))),
    *map(_bytes, (16, 64, 256)),
    *map(_doubled, (32, 256, 1_000)),
    *(_normalised(size, times) for size, times in ((64, 40), (300, 10), (1_500, 2))),
    *(_products(size, times) for size, times in ((64, 60), (400, 6))),
    *(_optimizer(*given) for given in ((20, 16, "Adam"), (20, 16, "SGD"), (6, 512, "AdamW"))),
    _elements(
        "rows, forward alone",
        "x = torch.randn(300, 8)",
        "total = 0.0\nfor i in range(len(x)):\n    total = total + x[i].sin().sum()",
        "total = x.sin().sum()",
    ),
    _elements(
        "rows, with backward",
        "rows, weight = torch.randn(400, 16), torch.randn(16, requires_grad=True)",
        """
        scores = []
        for i in range(len(rows)):
            row = rows[i]
            scores.append(torch.sigmoid(row @ weight))
        torch.stack(scores).mean().backward()
        """,
        "torch.sigmoid(rows @ weight).mean().backward()",
    ),
    _elements(
        "rows of a leaf, with backward",
        "rows = torch.randn(200, 64, requires_grad=True)",
        "loss = 0\nfor i in range(len(rows)):\n    loss = loss + rows[i].square().sum()\nloss.backward()",
        "rows.square().sum().backward()",
    ),
    _elements(
        "iteration, with backward",
        "rows, weight = torch.randn(400, 16), torch.randn(16, requires_grad=True)",
        "scores = []\nfor row in rows:\n    scores.append((row * weight).sum().tanh())\n"
        "torch.stack(scores).mean().backward()",
        "(rows * weight).sum(1).tanh().mean().backward()",
    ),
    _elements(
        "written in place",
        "x = torch.randn(300, 8)",
        "y = torch.empty(300, 8)\nfor i in range(len(x)):\n    y[i] = x[i] * 2",
        "y = x * 2",
    ),
    *map(_numbers, (3, 300)),
    *(_growing(width, times) for width, times in ((4, 400), (4_000, 200), (64_000, 60))),
    _pair(
        "grows_by_cat",
        "with backward",
        f"{_TORCH}rows = torch.randn(200, 1, 500, requires_grad=True)",
        "parts = rows.unbind(0)\nwhole = parts[0]\nfor part in parts[1:]:\n    whole = torch.cat([whole, part])\n"
        "whole.square().sum().backward()",
        "torch.cat(rows.unbind(0)).square().sum().backward()",
    ),
    _pair(
        "bound_by_python",
        "small ops",
        f"{_TORCH}parts = [torch.randn(4) for _ in range(2_000)]; w = torch.randn(4); whole = torch.stack(parts)",
        "for part in parts:\n    total = sum(n * 3 + 1 for n in range(150))\n    h = part + w",
        "total = sum(n * 3 + 1 for n in range(150))\nh = whole + w",
    ),
    _pair(
        "slow_backward",
        "select",
        f"{_TORCH}x = torch.randn(64, 20_000, requires_grad=True)",
        "y = 0\nfor i in range(24):\n    y = y + x[i].sum()\ny.backward()",
        "y = 0\nrows = x.unbind(0)\nfor i in range(24):\n    y = y + rows[i].sum()\ny.backward()",
    ),
    _pair(
        "slow_backward",
        "slice",
        f"{_TORCH}x = torch.randn(400, 2_000, requires_grad=True)",
        "y = 0\nfor i in range(40):\n    y = y + x[10 * i : 10 * i + 10].sum()\ny.backward()",
        "y = 0\nparts = x.split(10)\nfor i in range(40):\n    y = y + parts[i].sum()\ny.backward()",
    ),
    _pair(
        "slow_backward",
        "embedding",
        f"{_TORCH}tables = [nn.Embedding(100_000, 32, sparse=one) for one in (False, True)]\n"
        "rows = torch.arange(8)\noptimizers = [torch.optim.SGD(one.parameters(), lr=1e-9) for one in tables]",
        *(
            f"for _ in range(4):\n    optimizers[{at}].zero_grad()\n    used = tables[{at}](rows)\n"
            f"    used.sum().backward()\n    optimizers[{at}].step()"
            for at in range(2)
        ),
    ),
    *(
        _pair(
            "pointwise_chain",
            f"{rows} rows",
            f"{_TORCH}x = torch.randn({rows}, 1_100); room = torch.empty({rows}, 1_100)",
            "for _ in range(4):\n    y = x * 0.5\n    y = y + 1\n    y = y.abs()\n    y = y - 3",
            "for _ in range(4):\n    y = torch.mul(x, 0.5, out=room).add_(1).abs_().sub_(3)",
        )
        for rows in (1_000, 4_000)
    ),
    *(
        _pair(
            "needless_contiguous",
            f"{size} rows",
            f"{_TORCH}x = torch.randn({size}, {size})",
            f"for _ in range({times}):\n    y = x.t().contiguous()\n    z = y.{op}",
            f"for _ in range({times}):\n    y = x.t()\n    z = y.{op}",
        )
        for size, times, op in ((32, 200, "sum()"), (1_000, 8, "sum()"), (1_500, 4, "mul(2)"))
    ),
    _pair(
        "needless_contiguous",
        "with backward",
        f"{_TORCH}x = torch.randn(700, 700, requires_grad=True)",
        "for _ in range(8):\n    x.t().contiguous().sum().backward()",
        "for _ in range(8):\n    x.t().sum().backward()",
    ),
    _pair(
        "garbage_collections",
        "called",
        f"{_TIME}{_TORCH}x = torch.randn(8, 8)",
        "for _ in range(12):\n    y = x @ x\n    gc.collect()",
        "for _ in range(12):\n    y = x @ x",
    ),
    _pair(
        "garbage_collections",
        "of themselves",
        f"{_TIME}{_TORCH}x = torch.randn(8, 8); gc.freeze()",
        "for _ in range(100):\n    y = x @ x\n    kept = [[number] for number in range(3_000)]",
        "gc.disable()\nfor _ in range(100):\n    y = x @ x\n    kept = [[number] for number in range(3_000)]\n"
        "gc.enable()",
    ),
    _pair(
        "waits_for_input",
        "items in memory",
        f"{_TORCH}from torch.utils.data import DataLoader, TensorDataset\n"
        "x, y = torch.randn(4_000, 16), torch.randint(0, 2, (4_000,)); data = TensorDataset(x, y)",
        "for a, b in DataLoader(data, batch_size=64, shuffle=True):\n    z = a * 2",
        "order = torch.randperm(len(x))\nfor rows in order.split(64):\n    a, b = x[rows], y[rows]\n    z = a * 2",
    ),
    _pair(
        "waits_for_input",
        "slow items",
        f"{_TIME}{_TORCH}from torch.utils.data import DataLoader\n"
        "class Slow:\n    def __len__(self): return 64\n"
        "    def __getitem__(self, at):\n        time.sleep(0.0005)\n        return torch.ones(8)\n"
        "slow, quick = Slow(), list(torch.ones(64, 8))",
        "for a in DataLoader(slow, batch_size=8):\n    z = a * 2",
        "for a in DataLoader(quick, batch_size=8):\n    z = a * 2",
    ),
    _pair(
        "too_many_threads",
        "8 threads",
        f"{_TORCH}x = torch.randn(128, 128)",
        "torch.set_num_threads(8)\nfor _ in range(60):\n    y = x @ x",
        "torch.set_num_threads(1)\nfor _ in range(60):\n    y = x @ x",
    ),
    _pair(
        "slow_first_step",
        "preparation",
        f"{_TIME}{_TORCH}from contextlib import suppress\nimport mtprof_nb as mtp\n"
        "from mtprof_nb.errors import MtprofError\nx = torch.randn(64, 64)",
        *(
            f"for step in range(6):\n    y = x @ x\n    time.sleep({first} if step == 0 else 0.001)\n"
            "    with suppress(MtprofError):  # nothing records\n        mtp.step()"
            for first in (0.02, 0.001)
        ),
    ),
)

#: Pairs of which the fix lowers the peak of memory.
OF_MEMORY = (
    _pair(
        "missing_no_grad",
        "layers",
        f"{_TORCH}model = nn.Sequential(*(nn.Linear(256, 256) for _ in range(8))); x = torch.randn(1_024, 256)",
        "for _ in range(3):\n    score = model(x).mean().item()",
        "with torch.inference_mode():\n    for _ in range(3):\n        score = model(x).mean().item()",
    ),
    _pair(
        "missing_no_grad",
        "layers and activations",
        f"{_TORCH}layers = (m for _ in range(6) for m in (nn.Linear(256, 256), nn.GELU(), nn.Dropout()))\n"
        "model = nn.Sequential(*layers); x = torch.randn(1_024, 256)",
        "for _ in range(3):\n    score = model(x).softmax(1).mean().item()",
        "with torch.inference_mode():\n    for _ in range(3):\n        score = model(x).softmax(1).mean().item()",
    ),
    *(
        _pair(
            "grows_each_step",
            f"{steps} steps",
            f"{_TORCH}model = nn.Linear(256, 256); optimizer = torch.optim.SGD(model.parameters(), lr=1e-9)\n"
            "x = torch.randn(2_000, 256)",
            f"kept = []\nfor _ in range({steps}):\n    optimizer.zero_grad()\n    output = model(x)\n"
            "    kept.append(output)\n    output.sum().backward()\n    optimizer.step()",
            f"kept = []\nfor _ in range({steps}):\n    optimizer.zero_grad()\n    output = model(x)\n"
            "    kept.append(output.sum().item())\n    output.sum().backward()\n    optimizer.step()",
        )
        for steps in (4, 8, 20)
    ),
    _pair(
        "activations_at_peak",
        "checkpoints",
        f"{_TORCH}from torch.utils.checkpoint import checkpoint\nx = torch.randn(1_000, 10_000, requires_grad=True)\n"
        "def block(y):\n    return y.sin().cos().sin().cos()",
        "x.grad = None\ny = block(block(x))\ny.sum().backward()",
        "x.grad = None\ny = checkpoint(block, checkpoint(block, x, use_reentrant=False), use_reentrant=False)\n"
        "y.sum().backward()",
    ),
)
