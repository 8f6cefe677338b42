"""Further programs as people write them: with a flaw that a rule finds, or alike and without it."""

from __future__ import annotations

from programs import program

_TRAINED = """
import torch
from torch import nn
model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, y = torch.randn(64, 64), torch.randint(0, 10, (64,))
more, labels = torch.randn(4_000, 64), torch.randint(0, 10, (4_000,))
"""

#: By a sentence: the program, the rule that finds its flaw, and the line.
FLAWED_TOO = {
    "a mask is filled element by element": (
        program(
            "import torch",
            """
            for _ in range(4):
                mask = torch.zeros(48, 48)
                for i in range(48):
                    for j in range(i + 1, 48):
                        mask[i, j] = float("-inf")
            """,
        ),
        "loop_over_elements",
        5,
    ),
    "a custom backward goes through rows": (
        program(
            """
            import torch
            x = torch.randn(400, 16, requires_grad=True)
            """,
            """
            class Rectified(torch.autograd.Function):
                @staticmethod
                def forward(ctx, x):
                    ctx.save_for_backward(x)
                    return x.clamp(min=0)

                @staticmethod
                def backward(ctx, gradient):
                    (x,) = ctx.saved_tensors
                    found = torch.empty_like(gradient)
                    for i in range(len(x)):
                        found[i] = gradient[i] * (x[i] > 0)
                    return found

            Rectified.apply(x).sum().backward()
            """,
        ),
        "loop_over_elements",
        12,
    ),
    "rows of a list become tensors one by one": (
        program(
            """
            import torch
            rows = [[float(number) for number in range(300)] for _ in range(300)]
            """,
            """
            for row in rows:
                x = torch.tensor(row)
                y = x.sum()
            """,
        ),
        "tensors_of_numbers",
        2,
    ),
    "a product of several tensors": (
        program(
            """
            import torch
            factors = [torch.randn(1_500, 1_000) for _ in range(5)]
            """,
            """
            for _ in range(8):
                y = factors[0] * factors[1] * factors[2] * factors[3] * factors[4]
            """,
        ),
        "pointwise_chain",
        2,
    ),
    "validation in a cell that trains": (
        program(
            _TRAINED,
            """
            for epoch in range(4):
                for _ in range(4):
                    optimizer.zero_grad()
                    nn.functional.cross_entropy(model(x), y).backward()
                    optimizer.step()
                loss = nn.functional.cross_entropy(model(more), labels)
            """,
        ),
        "missing_no_grad",
        6,
    ),
    "validation by a function that training calls too": (
        program(
            _TRAINED,
            """
            def loss_of(x, y):
                return nn.functional.cross_entropy(model(x), y)

            def evaluate():
                return loss_of(more, labels).item()

            for epoch in range(4):
                optimizer.zero_grad()
                loss_of(x, y).backward()
                optimizer.step()
                evaluate()
            """,
        ),
        "missing_no_grad",
        5,
    ),
}

#: By a sentence: the program, and the rule that must be silent.
FLAWLESS_TOO = {
    "a loop over batches that trains": (
        program(
            _TRAINED + "batches = more[:2_560].reshape(40, 64, 64)",
            """
            for i in range(len(batches)):
                optimizer.zero_grad()
                model(batches[i]).square().mean().backward()
                optimizer.step()
            """,
        ),
        "loop_over_elements",
    ),
    "a loop over batches with large products": (
        program(
            """
            import torch
            batches, weight = torch.randn(40, 500, 500), torch.randn(500, 500)
            """,
            """
            for i in range(len(batches)):
                scores = batches[i] @ weight
            """,
        ),
        "loop_over_elements",
    ),
    "an iteration over batches that trains": (
        program(
            _TRAINED + "batches = more[:2_560].reshape(40, 64, 64)",
            """
            for batch in batches:
                optimizer.zero_grad()
                model(batch).square().mean().backward()
                optimizer.step()
            """,
        ),
        "loop_over_elements",
    ),
    "decoding that reads the tokens that it wrote": (
        program(
            """
            import torch
            table, weight = torch.randn(1_000, 64), torch.randn(64, 1_000)
            tokens = torch.zeros(128, dtype=torch.long)
            """,
            """
            for t in range(127):
                tokens[t + 1] = (table[tokens[t]] @ weight).argmax()
            """,
        ),
        "loop_over_elements",
    ),
    "sentences of many lengths, each with an end": (
        program(
            """
            import random, torch
            random.seed(0)
            words, end = torch.randn(64, 1_024), torch.randn(1, 1_024)
            sentences = [words[: random.randint(20, 60)] for _ in range(300)]
            """,
            """
            for sentence in sentences:
                y = torch.cat([sentence, end]).mean(0)
            """,
        ),
        "grows_by_cat",
    ),
    "arrays become tensors one by one": (
        program(
            """
            import numpy as np, torch
            rows = np.random.rand(300, 300).astype("float32")
            """,
            """
            for row in rows:
                x = torch.from_numpy(row)
                y = x.sum()
            """,
        ),
        "tensors_of_numbers",
    ),
    "validation without gradients in a cell that trains": (
        program(
            _TRAINED,
            """
            for epoch in range(4):
                optimizer.zero_grad()
                nn.functional.cross_entropy(model(x), y).backward()
                optimizer.step()
                with torch.no_grad():
                    loss = nn.functional.cross_entropy(model(more), labels)
            """,
        ),
        "missing_no_grad",
    ),
    "checkpoints, custom functions and gradients of gradients": (
        program(
            _TRAINED
            + """
from torch.utils.checkpoint import checkpoint
class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x): return x * 2
    @staticmethod
    def backward(ctx, gradient): return gradient * 2
leaf = torch.randn(2_000, 256, requires_grad=True)
""",
            """
            for _ in range(4):
                checkpoint(model, more, use_reentrant=False).square().mean().backward()
                Doubled.apply(model(more)).square().mean().backward()
                (gradient,) = torch.autograd.grad((leaf**3).sum(), leaf, create_graph=True)
                gradient.square().sum().backward()
            """,
        ),
        "missing_no_grad",
    ),
    "a score of one op that is kept": (
        program(
            _TRAINED,
            """
            for epoch in range(6):
                optimizer.zero_grad()
                scores = model(more)
                nn.functional.cross_entropy(scores, labels).backward()
                optimizer.step()
                chances = scores.softmax(1)
            """,
        ),
        "missing_no_grad",
    ),
    "two optimizers, which make their state in their first steps": (
        program(
            _TRAINED
            + """
other = nn.Sequential(nn.Linear(64, 1_024), nn.ReLU(), nn.Linear(1_024, 256))
first = torch.optim.Adam(model.parameters())
second = torch.optim.Adam(other.parameters())
""",
            """
            for _ in range(6):
                first.zero_grad()
                model(x).square().mean().backward()
                first.step()
                second.zero_grad()
                other(x).square().mean().backward()
                second.step()
            """,
        ),
        "grows_each_step",
    ),
    "a step that ends before its backward pass": (
        program(
            _TRAINED,
            """
            for step in range(4):
                optimizer.zero_grad()
                loss = nn.functional.cross_entropy(model(more), labels)
                if step < 3:
                    loss.backward()
                    optimizer.step()
            """,
        ),
        "missing_no_grad",
    ),
    "a benchmark of one op": (
        program(
            """
            import torch
            a, b = torch.randn(1_500, 1_000), torch.randn(1_500, 1_000)
            """,
            """
            for _ in range(20):
                c = a + b
            """,
        ),
        "pointwise_chain",
    ),
    "a benchmark of two ops": (
        program(
            """
            import torch
            a, b = torch.randn(1_500, 1_000), torch.randn(1_500, 1_000)
            """,
            """
            for _ in range(20):
                torch.add(a, b)
                torch.mul(a, b)
            """,
        ),
        "pointwise_chain",
    ),
}
