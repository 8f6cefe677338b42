"""Fixtures of the tests of hooks."""

from collections.abc import Iterator

import pytest
from enter_exit_recording import runtime_state


@pytest.fixture
def nothing_stays_patched() -> Iterator[None]:
    """The stand-in is after a test as it was before."""
    before = runtime_state()
    yield
    assert runtime_state() == before
