"""How often the error that functions() states holds: `python -m benchmarks.sampled_truths [rounds]`.

Functions of known kinds run in turns. How long each takes is measured in short pieces before and after the recording.
The fastest ones count: a busy machine disturbs some of them, not all.
"""

from __future__ import annotations

import sys
import time
import zlib
from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np

import mtprof_nb as mtp

_ARITHMETIC = " + ".join(f"i * {number}" for number in range(3, 103))
_PIECES = 40
#: Bodies of the functions of each program, of a microsecond to half a millisecond each.
PROGRAMS: Mapping[str, tuple[str, ...]] = {
    "arithmetic": (f"a = {_ARITHMETIC}", f"a = {_ARITHMETIC[:300].rpartition(' + ')[0]}"),
    "numpy": ("a = x * x + x * 2.0", "a = x[::2] + 1", "a = np.sqrt(x)"),
    "slices": ("a = values[10:2000]; del a", "a = values[::-1]; del a", "a = values + values; del a"),
    "attributes": ("a = " + " + ".join(["thing.x"] * 80), "; ".join(["thing.y = i"] * 60)),
    "properties": ("a = thing.p", "a = " + " + ".join(["thing.x"] * 40)),
    "strings": ("; ".join(["a = f'{i}-{i * 2}-{i!r}'"] * 10), "; ".join(["a = str(i) * 50"] * 10)),
    "dictionaries": ("; ".join(f"known[{key}] = i" for key in range(60)), "; ".join(["a = known.copy()"] * 3)),
    "comprehensions": ("a = [j * j for j in small]", "a = {j: j for j in small}", "a = sum(small)"),
    "C code that keeps the GIL": ("a = sorted(small, key=key)", "a = zlib.crc32(data)"),
    "C code that releases the GIL": ("a = zlib.compress(data, 1)", "time.sleep(0.0005)"),
}
#: Functions inside those that are counted for the one that calls them.
_INSIDE = {"<listcomp>": "f0", "<dictcomp>": "f1", "key": "f0", "p": "f0"}


class Thing:
    """Attributes, and a property that takes a microsecond."""

    x, y = 1, 2

    @property
    def p(self) -> int:
        return self.x + self.x * 2 + self.x * 3 + self.x * 4 + self.x * 5 + self.x * 6 + self.x * 7


def made(bodies: tuple[str, ...]) -> dict[str, Any]:
    """The functions of a program: `run` calls all in turns, `timed` with the clock around each body."""
    lines = ["def key(v):", "    return -v", "def nothing(i):", "    t = clock(); spent['nothing'] += clock() - t"]
    for number, body in enumerate(bodies):
        lines += [f"def f{number}(i):", f"    {body}", f"def t{number}(i):"]
        lines += [f"    t = clock(); {body}; spent['f{number}'] += clock() - t"]
    lines += ["def run(n):", "    for i in range(n):", *(f"        f{each}(i)" for each in range(len(bodies)))]
    lines += ["def timed(n):", "    for i in range(n):", "        nothing(i)"]
    lines += [f"        t{each}(i)" for each in range(len(bodies))]
    names: dict[str, Any] = {"clock": time.perf_counter, "spent": Counter(), "zlib": zlib, "time": time}
    names |= {"x": np.random.default_rng(0).random(20_000), "np": np, "values": list(range(3000)), "small": range(200)}
    names |= {"thing": Thing(), "known": {}, "data": np.random.default_rng(0).bytes(20_000)}
    exec(compile("\n".join(lines), "truths.py", "exec"), names)
    return names


def seconds_of(names: dict[str, Any], count: int) -> float:
    began = time.perf_counter()
    names["run"](count)
    return time.perf_counter() - began


def shares(names: dict[str, Any], count: int) -> dict[str, float]:
    """The share of each function in the time of `run`."""
    spent, whole = {}, float("inf")
    for _ in range(_PIECES):
        names["spent"].clear()
        names["timed"](count)
        spent = {name: min(ns, spent.get(name, ns)) for name, ns in names["spent"].items()}
        whole = min(whole, seconds_of(names, count))
    return {name: (ns - spent["nothing"]) / whole for name, ns in spent.items() if name != "nothing"}


def checked(names: dict[str, Any]) -> list[tuple[str, float, float, float, bool]]:
    """Of one recording, for each function: truth, what was told, its error, and whether the error holds."""
    count = max(int(200 * 0.3 / seconds_of(names, 200)), 100)
    before = shares(names, max(count // 100, 1))
    with mtp.profile(with_python=True) as prof:
        names["run"](count)
    after = shares(names, max(count // 100, 1))
    told, error = Counter[str](), Counter[str]()
    for row in prof.functions():
        name = _INSIDE.get(row.function, row.function)
        told[name] += row.own_ns
        error[name] += row.error_ns or 0
    whole, found = sum(told.values()), []
    for name in before:
        truth, unsure = (before[name] + after[name]) / 2 * whole, abs(before[name] - after[name]) * whole
        holds = abs(told[name] - truth) <= error[name] + unsure
        found.append((name, truth / 1e6, told[name] / 1e6, error[name] / 1e6, holds))
    return found


def main(rounds: int) -> None:
    """Print each program's last recording, and how often the error held."""
    import torch  # noqa: F401 - the native recorder needs it

    held: list[bool] = []
    for program, bodies in PROGRAMS.items():
        names = made(bodies)
        every = [checked(names) for _ in range(rounds)]
        held += [row[-1] for rows in every for row in rows]
        last = "  ".join(
            f"{name} {told:.0f} +/- {error:.0f} ms ({truth:.0f})" for name, truth, told, error, _ in every[-1]
        )
        outside = sum(not row[-1] for rows in every for row in rows)
        print(f"{program:28} {outside} of {sum(map(len, every))} outside; last: {last}", flush=True)
    print(f"the error holds in {sum(held)} of {len(held)}: {100 * sum(held) / len(held):.0f} %")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
