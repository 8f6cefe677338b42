"""Hook `mindtorch_v2` on MindTorch v2 itself, where it is installed."""

import pytest
from peer_contract import *  # noqa: F403
from peer_contract import Peer

pytest.importorskip("mindtorch_v2", reason="MindTorch v2 is not installed: put it on PYTHONPATH")


@pytest.fixture
def peer() -> Peer:
    return Peer("mindtorch_v2", "_autograd.engine", "_autograd.node", ("_storage", "_CPUUntypedStorage"))
