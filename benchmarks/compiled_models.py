"""Six programs that inductor compiles, and the lines of their kernels beside inductor's own."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable
from contextlib import contextmanager
from os import environ
from pathlib import Path
from typing import Any

#: Makes a program: a function that runs one step of it, compiled.
Program = Callable[[Any], Callable[[], Any]]


def transformer(torch: Any) -> Callable[[], Any]:
    nn, width, heads = torch.nn, 64, 2

    class Block(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x: Any) -> Any:
            b, t, d = x.shape
            h = self.first(x)
            q, k, v = self.qkv(h).view(b, t, 3, heads, d // heads).permute(2, 0, 3, 1, 4)
            s = q @ k.transpose(-1, -2) / math.sqrt(d // heads)
            p = torch.softmax(s, dim=-1)
            y = (p @ v).transpose(1, 2).reshape(b, t, d)
            x = x + self.out(y)
            h = self.second(x)
            h = nn.functional.gelu(self.up(h))
            x = x + self.down(h)
            return x * torch.sigmoid(x)

    return _trained(torch, Block(), torch.randn(16, 64, width))


def conv_net(torch: Any) -> Callable[[], Any]:
    nn = torch.nn

    class Net(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.one, self.two = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 8, 3, padding=1)
            self.norm, self.head = nn.BatchNorm2d(8), nn.Linear(8, 10)

        def forward(self, x: Any) -> Any:
            x = self.one(x)
            x = self.norm(x)
            x = torch.relu(x)
            x = self.two(x) + x
            x = x.mean((2, 3))
            return self.head(x)

    return _trained(torch, Net(), torch.randn(4, 3, 16, 16))


def llama(torch: Any) -> Callable[[], Any]:
    nn, width, heads = torch.nn, 64, 2

    class Layer(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.gate, self.up = nn.Linear(width, 2 * width), nn.Linear(width, 2 * width)
            self.down, self.weight = nn.Linear(2 * width, width), nn.Parameter(torch.ones(width))

        def norm(self, x: Any) -> Any:
            scale = torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
            return x * scale * self.weight

        def rope(self, x: Any, cos: Any, sin: Any) -> Any:
            one, two = x.chunk(2, dim=-1)
            turned = torch.cat((-two, one), dim=-1)
            return x * cos + turned * sin

        def forward(self, x: Any) -> Any:
            b, t, d = x.shape
            at = torch.arange(t, dtype=x.dtype)[:, None] / torch.arange(1, d // heads + 1)
            cos, sin = torch.cos(at), torch.sin(at)
            q, k, v = self.qkv(self.norm(x)).view(b, t, 3, heads, d // heads).permute(2, 0, 3, 1, 4)
            q, k = self.rope(q, cos, sin), self.rope(k, cos, sin)
            y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(y.transpose(1, 2).reshape(b, t, d))
            h = self.norm(x)
            h = nn.functional.silu(self.gate(h)) * self.up(h)
            return x + self.down(h)

    return _trained(torch, Layer(), torch.randn(2, 32, width))


def embedding(torch: Any) -> Callable[[], Any]:
    nn = torch.nn

    class Model(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.table, self.head = nn.Embedding(100, 32), nn.Linear(32, 100)

        def forward(self, words: Any) -> Any:
            x = self.table(words)
            x = torch.tanh(x)
            scores = self.head(x)
            return nn.functional.cross_entropy(scores.flatten(0, 1), words.flatten())

    return _trained(torch, Model(), torch.randint(0, 100, (4, 16)))


def optimizer(torch: Any) -> Callable[[], Any]:
    model = torch.nn.Linear(32, 32)
    chosen = torch.optim.AdamW(model.parameters(), foreach=False)
    model(torch.randn(4, 32)).sum().backward()

    @torch.compile(fullgraph=False)  # type: ignore[untyped-decorator]
    def step() -> None:
        chosen.step()

    return step


def flex(torch: Any) -> Callable[[], Any]:
    from torch.nn.attention.flex_attention import flex_attention

    def causal(score: Any, _b: Any, _h: Any, q: Any, k: Any) -> Any:
        return torch.where(q >= k, score, -math.inf)

    @torch.compile  # type: ignore[untyped-decorator]
    def attend(q: Any, k: Any, v: Any) -> Any:
        q = torch.tanh(q)
        return flex_attention(q, k, v, score_mod=causal)

    q, k, v = (torch.randn(1, 2, 128, 32) for _ in range(3))

    def run() -> Any:
        with torch.no_grad():
            return attend(q, k, v)

    return run


def _trained(torch: Any, model: Any, x: Any) -> Callable[[], Any]:
    compiled = torch.compile(model)

    def step() -> Any:
        loss = compiled(x).sum()
        loss.backward()
        return loss.detach()

    return step


PROGRAMS: dict[str, Program] = {
    "transformer": transformer,
    "conv net": conv_net,
    "llama": llama,
    "embedding": embedding,
    "optimizer": optimizer,
    "flex attention": flex,
}


@contextmanager
def own_cache() -> Any:
    """Lets inductor compile everything anew, in a folder that is removed."""
    with tempfile.TemporaryDirectory() as folder:
        environ["TORCHINDUCTOR_CACHE_DIR"] = folder
        yield Path(folder)


def lines_of_kernels(name: str) -> dict[str, int]:
    """How many fused kernels of a program have the lines of inductor's origins, in this process."""
    import torch
    from torch._inductor.codegen import cpp

    origins: dict[str, set[tuple[str, int]]] = {}
    original = cpp.set_kernel_post_grad_provenance_tracing

    def noted(schedule: Any, kernel: str, *rest: Any, **more: Any) -> Any:
        origins.setdefault(kernel, set()).update(_lines_of_schedule(schedule))
        return original(schedule, kernel, *rest, **more)

    cpp.set_kernel_post_grad_provenance_tracing = noted
    with own_cache():
        step = PROGRAMS[name](torch)
        for _ in range(2):
            step()
        return _compared(origins)


def _lines_of_schedule(schedule: Any) -> set[tuple[str, int]]:
    from mtprof_nb.capture.compiled.graph_text import Node
    from mtprof_nb.capture.torch_private.inductor_code import frames_of_text

    found = set()
    for scheduled in schedule if isinstance(schedule, list) else ():
        for origin in getattr(getattr(scheduled, "node", None), "origins", ()):
            _, _, op = str(origin.target).partition(".")
            is_view = Node("", op.partition(".")[0] or "getitem", (), 0).is_view
            if not is_view and (frames := frames_of_text(origin.stack_trace)):
                found.add(frames[-1][:2])
    return found


def _compared(origins: dict[str, set[tuple[str, int]]]) -> dict[str, int]:
    from mtprof_nb.capture.compiled.opened_regions import OpenedRegions
    from mtprof_nb.capture.compiled.wrapper_text import CPP, read_wrapper
    from mtprof_nb.capture.torch_private.inductor_code import wrapper_files

    counts = dict.fromkeys(("kernels", "same lines", "fewer lines", "other lines", "unknown"), 0)
    for file in wrapper_files():
        wrapper = read_wrapper(Path(file).read_text())
        opened = OpenedRegions({file})
        for call in wrapper.calls if wrapper else ():
            if call.kind == CPP:
                shares = opened.explained.get((file, call.line), [])
                lines = {share.frames[-1][:2] for share in shares}
                counts["kernels"] += 1
                counts[_verdict(lines, origins.get(call.name, set()))] += 1
    return counts


def _verdict(lines: set[tuple[str, int]], origins: set[tuple[str, int]]) -> str:
    if not lines:
        return "unknown"
    if lines == origins:
        return "same lines"
    return "fewer lines" if lines < origins else "other lines"
