"""The figures as an aligned table, as JSON with versions and machine, and as the table of the README."""

from __future__ import annotations

import json
import os
import platform
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from benchmarks.figure import Figure

_PACKAGES = ("mtprof_nb", "torch", "numpy", "ipython", "ipywidgets", "anywidget", "plotly")
_HEADERS = ("what", "beside", "median", "quartiles", "rounds", "bound", "holds", "behind it")
_BEGIN, _END = "<!-- figures -->", "<!-- end of figures -->"


def machine() -> dict[str, Any]:
    """Where and with what the figures were measured."""
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        **{package: found for package in _PACKAGES if (found := _version(package))},
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "")


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def rows(figures: list[Figure]) -> list[tuple[str, ...]]:
    """A row of text for each figure, in the order of `_HEADERS`."""
    return [
        (
            figure.what,
            figure.beside,
            f"{_short(figure.value.median)} {figure.unit}",
            f"{_short(figure.value.low)}–{_short(figure.value.high)}",
            str(figure.rounds),
            str(figure.bound or ""),
            figure.verdict,
            figure.behind,
        )
        for figure in figures
    ]


def _short(value: float) -> str:
    return f"{value:.3g}" if abs(value) < 100 else f"{value:,.0f}"


def text(figures: list[Figure]) -> str:
    """An aligned table, a heading for each group, and a last line that counts the bounds."""
    body = rows(figures)
    widths = [max(map(len, column)) for column in zip(_HEADERS, *body, strict=True)]
    lines = [_aligned(_HEADERS, widths)]
    group = ""
    for figure, row in zip(figures, body, strict=True):
        if figure.group != group:
            group = figure.group
            lines += ["", group]
        lines.append(_aligned(row, widths))
    return "\n".join([*lines, "", summary(figures)])


def _aligned(row: tuple[str, ...], widths: list[int]) -> str:
    return "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def summary(figures: list[Figure]) -> str:
    """How many bounds hold, and which do not."""
    bound = [figure for figure in figures if figure.bound is not None]
    broken = [figure for figure in bound if figure.verdict.startswith("no")]
    said = f"{len(bound) - len(broken)} of {len(bound)} bounds hold"
    return said + "".join(f"\nnot held: {figure.group}: {figure.what}" for figure in broken)


def markdown(figures: list[Figure], where: dict[str, Any]) -> str:
    """The tables of the README, a heading for each group."""
    lines = [
        ", ".join(f"{key} {value}" for key, value in where.items()) + ".",
        "",
        summary(figures).replace("\n", "  \n"),
    ]
    group = ""
    for figure, row in zip(figures, rows(figures), strict=True):
        if figure.group != group:
            group = figure.group
            lines += ["", f"### {group}", "", f"| {' | '.join(_HEADERS)} |", "|" + "---|" * len(_HEADERS)]
        lines.append(f"| {' | '.join(row)} |")
    return "\n".join(lines)


def write_json(figures: list[Figure], where: dict[str, Any], path: Path) -> None:
    """Everything that was measured, with its machine."""
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {"machine": where, "figures": [figure.as_json() for figure in figures]}
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def read_json(path: Path) -> tuple[list[Figure], dict[str, Any]]:
    """Results that `write_json` wrote."""
    content = json.loads(path.read_text(encoding="utf-8"))
    return [Figure.from_json(figure) for figure in content["figures"]], content["machine"]


def put_into_readme(figures: list[Figure], where: dict[str, Any], readme: Path) -> None:
    """Replace the tables between the marks in `readme`; `ValueError` where the marks are missing."""
    content = readme.read_text(encoding="utf-8")
    before, begin, rest = content.partition(_BEGIN)
    _, end, after = rest.partition(_END)
    if not begin or not end:
        msg = f"{readme.name} has no place for figures: put {_BEGIN} and {_END} where they belong"
        raise ValueError(msg)
    readme.write_text(f"{before}{begin}\n{markdown(figures, where)}\n{end}{after}", encoding="utf-8")
