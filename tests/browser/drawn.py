"""Shapes on the canvas of a chart: a canvas has no elements to look for, so that it says what it drew."""

from typing import Any

from playwright.sync_api import Locator

_SHAPES = """canvas => canvas.shapes.map(({ x, y, width, height, label, isLit, bar }) =>
  ({ x, y, width, height, label, isLit, bar }))"""


def canvas(body: Locator) -> Locator:
    return body.locator("canvas.mtprof-canvas")


def shapes(body: Locator) -> list[dict[str, Any]]:
    """All shapes, in pixels of the canvas."""
    found: list[dict[str, Any]] = canvas(body).evaluate(_SHAPES)
    return found


def bars(body: Locator) -> list[dict[str, Any]]:
    """The bars of a timeline."""
    return [shape for shape in shapes(body) if shape["bar"] is not None]


def wait_for(body: Locator, condition: str, timeout: int = 30_000) -> None:
    """Waits until a condition of JavaScript holds for the `shapes` of the chart."""
    handle = canvas(body).element_handle()
    body.page.wait_for_function(f"canvas => (shapes => {condition})(canvas.shapes)", arg=handle, timeout=timeout)


def middle(body: Locator, label: str) -> tuple[float, float]:
    """The pixel of the page in the middle of the widest shape with a label, once it is drawn."""
    wait_for(body, f"shapes.some(({{ label }}) => label === {label!r})")
    shape = max((shape for shape in shapes(body) if shape["label"] == label), key=lambda shape: shape["width"])
    canvas(body).scroll_into_view_if_needed()
    box = canvas(body).bounding_box()
    assert box is not None
    left, right = max(shape["x"], 92), min(shape["x"] + shape["width"], box["width"] - 12)
    return box["x"] + (left + right) / 2, box["y"] + shape["y"] + shape["height"] / 2


def picture(body: Locator) -> str:
    """The pixels of the chart, to compare."""
    return str(canvas(body).evaluate("canvas => canvas.toDataURL()"))
