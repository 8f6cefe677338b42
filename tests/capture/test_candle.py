"""Hook `candle` on Candle itself, where it is installed and built."""

import pytest
from peer_contract import *  # noqa: F403
from peer_contract import Peer

candle = pytest.importorskip(
    "candle", reason="Candle is not installed: build it and put it on PYTHONPATH", exc_type=ImportError
)
# Candle looks this up when its profiler first runs, and keeps it.
candle.profiler.profiler._set_npu_functional_profiler_active(False)
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:candle")


@pytest.fixture
def peer() -> Peer:
    return Peer("candle", "_C._autograd_engine", "_C._autograd_node", ("_C._storage", "CyCPUUntypedStorage"))


def test_the_flag_that_guards_compiled_fast_paths_is_up_while_recording_and_down_after(
    peer: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    flags: list[bool] = []
    monkeypatch.setattr(peer.part("_C._tensor_api"), "cy_set_npu_profiler_active", flags.append)
    own = peer.part("profiler").profile()
    hook = peer.hook()
    hook.start()
    own.start()
    own.stop()
    during = list(flags)
    hook.stop()

    assert during == [True, True, True]
    assert flags[3:] == [False]
