"""Real interrupts of a real kernel, at moments drawn by lot: it answers, nothing stays, the next profile is whole."""

from __future__ import annotations

import random
import time
from collections.abc import Callable

import pytest
from conftest import LEFT_BEHIND, TIMEOUT_S, Kernel, Ran

CELL = "%%mtprofile {flags}\nx = torch.ones(20, 20)\nfor _ in range(300):\n    x = x.mm(x).clamp(max=1)\n'done'"
NEXT = "%%mtprofile -q -o following\ny = torch.ones(2, 2).mm(torch.ones(2, 2))\n7"
COUNT = "[event.name for event in following.events()].count('aten::mm')"


def _settled(kernel: Kernel, sent: str) -> Ran:
    """The reply to the cell; none, where the signal hit the kernel's own code, which then sends none."""
    ran = Ran({})
    while True:
        message = kernel.client.get_iopub_msg(timeout=TIMEOUT_S)
        if message["parent_header"].get("msg_id") == sent:
            ran.messages.append((message["msg_type"], message["content"]))
            if message["content"].get("execution_state") == "idle":
                break
    # A kernel replies in the order of the requests: where the next reply comes first, the cell's never will.
    asked = kernel.client.kernel_info()
    while True:
        reply = kernel.client.get_shell_msg(timeout=TIMEOUT_S)
        if reply["parent_header"].get("msg_id") == sent:
            ran.reply = reply["content"]
        if reply["parent_header"].get("msg_id") == asked:
            return ran


def _assert_nothing_left(kernel: Kernel, number: int, ran: Ran) -> None:
    left = kernel.run(LEFT_BEHIND, silent=True)
    assert left.stdout == "", (number, left.stdout, ran.messages)


@pytest.mark.soak
def test_interrupts_at_random_moments_leave_a_kernel_that_answers_and_profiles(
    kernel: Kernel, rounds: Callable[[int, int], int]
) -> None:
    lot = random.Random(8)
    fates: dict[str, int] = {}
    cells = [CELL.format(flags=flags) for flags in ("", "--with-stack", "--hook kineto")]
    took: dict[str, float] = {}
    for cell in (*cells, *cells):
        began = time.monotonic()
        assert kernel.run(cell).result == "'done'"
        took[cell] = time.monotonic() - began
    for number in range(rounds(12, 200)):
        cell = cells[number % len(cells)]
        sent = kernel.send(cell)
        time.sleep(lot.uniform(0, took[cell]))
        kernel.manager.interrupt_kernel()
        ran = _settled(kernel, sent)
        fate = ran.reply.get("ename", "well") if ran.reply else "no reply"
        fates[fate] = fates.get(fate, 0) + 1
        assert fate in ("well", "KeyboardInterrupt", "no reply"), ran.messages
        # Where the signal hit the kernel's own code, the cell's end was not reported: the next cell reports it then.
        if fate != "no reply":
            _assert_nothing_left(kernel, number, ran)
        following = kernel.run(NEXT)
        assert (following.status, following.result, following.stderr) == ("ok", "7", ""), (number, ran.messages)
        assert kernel.value(COUNT) == 1
        _assert_nothing_left(kernel, number, ran)
    assert sum(fates.values()) == rounds(12, 200)
    print(f"{sum(fates.values())} interrupts: {fates}")
