"""Programs that look like flawed ones and have no flaw, by the rule that must be silent."""

from __future__ import annotations

from programs import program

FLAWLESS = {
    "float64_in_float32": program(
        """
        import torch
        x = torch.randn(600, 600)
        """,
        """
        total = torch.zeros((), dtype=torch.double)
        for _ in range(10):
            total += (x * 2.0).exp().sum()
        """,
    ),
    "float64_everywhere": program(
        """
        import torch
        """,
        """
        x = torch.randn(400, 400, dtype=torch.float64)
        for _ in range(10):
            y = x @ x
        """,
    ),
    "converted_to_and_fro": program(
        """
        import torch
        x = torch.randint(0, 9, (600, 600))
        """,
        """
        for _ in range(10):
            y = x.float()
            z = y.add_(1).sum()
        """,
    ),
    "waits_for_input": program(
        """
        import torch
        from torch.utils.data import DataLoader
        x = torch.randn(1500, 1500)
        items = list(torch.randn(8, 8))
        """,
        """
        for _ in DataLoader(items, batch_size=4):
            y = x @ x @ x
        """,
    ),
    "missing_no_grad": program(
        """
        import torch
        model = torch.nn.Sequential(*(torch.nn.Linear(256, 256) for _ in range(8)))
        x = torch.randn(1024, 256)
        """,
        """
        loss = model(x).mean()
        """,
    ),
    "parameters_one_by_one": program(
        """
        import torch
        model = torch.nn.Sequential(*(torch.nn.Linear(16, 16) for _ in range(20)))
        optimizer = torch.optim.Adam(model.parameters(), fused=True)
        x = torch.randn(4, 16)
        """,
        """
        for _ in range(3):
            model(x).sum().backward()
            optimizer.step()
        """,
    ),
    "loop_over_elements": program(
        """
        import torch
        x = torch.randn(300, 8)
        """,
        """
        total = 0.0
        for i in range(300):
            total = total + x[0].sin().sum()
        """,
    ),
    "slow_backward": program(
        """
        import torch
        x = torch.randn(8, 2_000)
        w = torch.randn(2_000, 2_000, requires_grad=True)
        """,
        """
        for _ in range(3):
            used = x @ w
            used.sum().backward()
        """,
    ),
    "bound_by_python": program(
        """
        import torch
        w = torch.randn(250, 250)
        """,
        """
        for step in range(600):
            h = w @ w
        """,
    ),
    "grows_by_cat": program(
        """
        import torch
        row = torch.randn(1, 4_000)
        """,
        """
        for count in range(20):
            parts = [row for _ in range(count + 2)]
            whole = torch.cat(parts)
        """,
    ),
    "pointwise_chain": program(
        """
        import torch
        x = torch.randn(1_500, 1_000)
        """,
        """
        for _ in range(3):
            y = (x * 0.5).sum()
            z = (x + 1).mean()
        """,
    ),
    "needless_contiguous": program(
        """
        import torch
        x = torch.randn(1_000, 1_000)
        """,
        """
        for _ in range(8):
            y = x.t().contiguous()
            z = y.view(-1).sum()
        """,
    ),
    "grows_each_step": program(
        """
        import torch
        model = torch.nn.Linear(256, 256)
        optimizer = torch.optim.Adam(model.parameters())
        x = torch.randn(2_000, 256)
        """,
        """
        losses = []
        for _ in range(8):
            optimizer.zero_grad()
            output = model(x)
            loss = output.sum()
            losses.append(loss.detach())
            loss.backward()
            optimizer.step()
        """,
    ),
    "activations_at_peak": program(
        """
        import torch
        x = torch.randn(1_000, 10_000)
        """,
        """
        kept = [x.sin() for _ in range(8)]
        """,
    ),
    "slow_first_step": program(
        """
        import time, torch
        import mtprof_nb as mtp
        x = torch.randn(4, 4)
        y = x @ x
        """,
        """
        for step in range(6):
            y = x @ x
            time.sleep(0.4 if step == 3 else 0.05)
            mtp.step()
        """,
    ),
    "garbage_collections": program(
        """
        import gc
        import torch
        x = torch.randn(8, 8)
        """,
        """
        for _ in range(4):
            rows = ["number " * (number % 3) for number in range(20_000)]
            y = x @ x
        gc.collect()
        """,
    ),
}
