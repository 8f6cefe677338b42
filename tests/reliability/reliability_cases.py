"""What the reliability tests record with, and how they see that a recording is whole."""

import contextlib
from collections.abc import Iterator
from typing import Any

import leftovers
import torch

import mtprof_nb as mtp

EVERY_FLAG = {
    "record_shapes": True,
    "profile_memory": True,
    "with_stack": True,
    "with_flops": True,
    "with_modules": True,
}
#: Hooks of PyTorch, bare and with all that they can record.
RECORDINGS: list[dict[str, Any]] = [
    {"hook": "kineto"},
    {"hook": "kineto", **EVERY_FLAG},
    {"hook": "dispatch"},
    {"hook": "dispatch", **EVERY_FLAG},
]
IDS = ["kineto", "kineto-every-flag", "dispatch", "dispatch-every-flag"]


def names(prof: mtp.profile) -> list[str]:
    """The name of each event."""
    return [prof.trace.names[name] for name in prof.trace.name]


def assert_next_profile_is_complete(**options: Any) -> None:
    """A recording now has exactly what it runs."""
    x = torch.eye(2)
    with mtp.profile(**options) as prof, mtp.record_function("next"):
        torch.mm(x, x)
    found = names(prof)
    assert (found.count("aten::mm"), found.count("next")) == (1, 1), found


@contextlib.contextmanager
def nothing_left() -> Iterator[None]:
    """Nothing active, installed or patched at the end."""
    before = leftovers.snapshot()
    yield
    left = leftovers.close(before)
    assert not left, left
