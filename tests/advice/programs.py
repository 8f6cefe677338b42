"""Programs with a flaw that a rule finds."""

from __future__ import annotations

from textwrap import dedent
from typing import NamedTuple


class Program(NamedTuple):
    """A program: what is there before the recording, and what is recorded."""

    before: str
    recorded: str


def program(before: str, recorded: str) -> Program:
    return Program(dedent(before).strip() + "\n", dedent(recorded).strip() + "\n")


#: For each rule a program in which it fires, and the line of `recorded` that it names, or None.
FLAWED = {
    "float64_in_float32": (
        program(
            """
            import numpy as np, torch
            scale = torch.from_numpy(np.random.rand(600))
            x = torch.randn(600, 600)
            """,
            """
            for _ in range(10):
                scaled = x * scale
                y = scaled.exp().sin().sum()
            """,
        ),
        2,
    ),
    "float64_everywhere": (
        program(
            """
            import numpy as np, torch
            data = np.random.rand(400, 400)
            """,
            """
            x = torch.from_numpy(data)
            for _ in range(10):
                y = x @ x
            """,
        ),
        3,
    ),
    "converted_to_and_fro": (
        program(
            """
            import torch
            x = torch.randint(0, 9, (600, 600))
            """,
            """
            for _ in range(10):
                x = x.float().add_(1).long()
            """,
        ),
        2,
    ),
    "waits_for_input": (
        program(
            """
            import time, torch
            from torch.utils.data import DataLoader
            model = torch.nn.Linear(8, 8)
            items = list(torch.randn(64, 8))
            """,
            """
            def collate(batch):
                time.sleep(0.002)
                return torch.stack(batch)
            for x in DataLoader(items, batch_size=8, collate_fn=collate):
                y = model(x)
            """,
        ),
        3,
    ),
    "missing_no_grad": (
        program(
            """
            import torch
            model = torch.nn.Sequential(*(torch.nn.Linear(256, 256) for _ in range(8)))
            x = torch.randn(1024, 256)
            """,
            """
            for _ in range(3):
                score = model(x).mean().item()
            """,
        ),
        2,
    ),
    "parameters_one_by_one": (
        program(
            """
            import torch
            model = torch.nn.Sequential(*(torch.nn.Linear(16, 16) for _ in range(20)))
            optimizer = torch.optim.Adam(model.parameters(), foreach=False)
            x = torch.randn(4, 16)
            """,
            """
            for _ in range(3):
                model(x).sum().backward()
                optimizer.step()
            """,
        ),
        3,
    ),
    "loop_over_elements": (
        program(
            """
            import torch
            x = torch.randn(300, 8)
            """,
            """
            total = 0.0
            for i in range(len(x)):
                total = total + x[i].sin().sum()
            """,
        ),
        3,
    ),
    "slow_backward": (
        program(
            """
            import torch
            table = torch.nn.Embedding(400_000, 32)
            rows = torch.arange(8)
            """,
            """
            for _ in range(10):
                used = table(rows)
                used.sum().backward()
            """,
        ),
        2,
    ),
    "bound_by_python": (
        program(
            """
            import torch
            h, w = torch.zeros(4), torch.randn(4)
            """,
            """
            for step in range(8_000):
                total = sum(number * 3 + 1 for number in range(200))
                h = h + w
            """,
        ),
        3,
    ),
    "grows_by_cat": (
        program(
            """
            import torch
            whole, row = torch.zeros(1, 4_000), torch.randn(1, 4_000)
            """,
            """
            for _ in range(200):
                whole = torch.cat([whole, row])
            """,
        ),
        2,
    ),
    "pointwise_chain": (
        program(
            """
            import torch
            x = torch.randn(1_500, 1_000)
            """,
            """
            for _ in range(20):
                y = x * 0.5
                y = y + 1
                y = y.sqrt() + y * y
            """,
        ),
        4,
    ),
    "needless_contiguous": (
        program(
            """
            import torch
            x = torch.randn(1_000, 1_000)
            """,
            """
            for _ in range(8):
                y = x.t().contiguous()
                z = y.sum()
            """,
        ),
        2,
    ),
    "grows_each_step": (
        program(
            """
            import torch
            model = torch.nn.Linear(256, 256)
            optimizer = torch.optim.SGD(model.parameters())
            x = torch.randn(2_000, 256)
            """,
            """
            outputs = []
            for _ in range(8):
                optimizer.zero_grad()
                output = model(x)
                outputs.append(output)
                output.sum().backward()
                optimizer.step()
            """,
        ),
        4,
    ),
    "activations_at_peak": (
        program(
            """
            import torch
            x = torch.randn(1_000, 10_000, requires_grad=True)
            """,
            """
            y = x
            for _ in range(8):
                y = y.sin()
            y.sum().backward()
            """,
        ),
        3,
    ),
    "slow_first_step": (
        program(
            """
            import time, torch
            import mtprof_nb as mtp
            x = torch.randn(4, 4)
            """,
            """
            for step in range(6):
                y = x @ x
                time.sleep(0.2 if step == 0 else 0.002)
                mtp.step()
            """,
        ),
        None,
    ),
    "garbage_collections": (
        program(
            """
            import gc
            import torch
            x = torch.randn(8, 8)
            """,
            """
            for _ in range(6):
                y = x @ x
                gc.collect()
            """,
        ),
        None,
    ),
}
