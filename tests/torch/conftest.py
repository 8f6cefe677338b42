"""Fixtures of the tests on PyTorch."""

from collections.abc import Iterator

import pytest
from marked_cells import Shell, new_shell


@pytest.fixture(scope="module")
def shell() -> Iterator[Shell]:
    """A shell with the extension, torch and nn, for the cells of one file."""
    with new_shell() as made:
        made.ip.run_cell("%load_ext mtprof_nb\nimport torch\nfrom torch import nn")
        yield made
        made.ip.run_cell("%unload_ext mtprof_nb")
