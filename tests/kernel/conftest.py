"""One real kernel for the whole folder: torch is imported into it once, and each test gets an empty namespace."""

from __future__ import annotations

import ast
import os
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from jupyter_client.manager import KernelManager

TIMEOUT_S = 300
WIDGET = "application/vnd.jupyter.widget-view+json"
#: How the page without scripts begins.
PAGE = '<div style="font-size:13px'


@dataclass
class Ran:
    """The result of one execute request: the reply, and everything published for it, in order."""

    reply: dict[str, Any]
    messages: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    @property
    def status(self) -> str:
        return self.reply["status"]

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [content for name, content in self.messages if name == kind]

    def stream(self, name: str) -> str:
        return "".join(content["text"] for content in self.of("stream") if content["name"] == name)

    @property
    def stdout(self) -> str:
        return self.stream("stdout")

    @property
    def stderr(self) -> str:
        return self.stream("stderr")

    @property
    def result(self) -> str | None:
        """The text of `Out[n]`."""
        results = self.of("execute_result")
        return results[-1]["data"]["text/plain"] if results else None

    @property
    def traceback(self) -> str:
        lines = [line for content in self.of("error") for line in content["traceback"]]
        return re.sub(r"\x1b\[[\d;]*m", "", "\n".join(lines))

    @property
    def panels(self) -> list[dict[str, Any]]:
        """The profiles shown: the mime bundle of each."""
        return [content["data"] for content in self.of("display_data") if is_panel(content)]


def is_panel(content: dict[str, Any]) -> bool:
    """Whether a message shows a profile: nothing else here carries a page like that."""
    return PAGE in content.get("data", {}).get("text/html", "")


class Kernel:
    """A kernel and the client that drives it, one cell at a time."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        environment = os.environ | {
            "IPYTHONDIR": str(folder / "ipython"),
            "OMP_NUM_THREADS": "1",
            "JUPYTER_PLATFORM_DIRS": "1",
        }
        self.manager = KernelManager()
        (folder / "cwd").mkdir()
        self.manager.start_kernel(env=environment, cwd=str(folder / "cwd"))
        self.client = self.manager.client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=TIMEOUT_S)

    def send(self, code: str, **request: Any) -> str:
        """Ask for `code` to be run; nobody answers its questions unless `allow_stdin` is given."""
        content = {"allow_stdin": False, "stop_on_error": False, **request}
        cell_id = content.pop("cell_id", None)
        if cell_id is None:
            return self.client.execute(code, **content)
        # The client of jupyter_client names no cell, as JupyterLab does.
        defaults = {"silent": False, "store_history": True, "user_expressions": {}}
        message = self.client.session.msg("execute_request", {"code": code, **defaults, **content})
        message["metadata"]["cellId"] = cell_id
        self.client.shell_channel.send(message)
        sent: str = message["header"]["msg_id"]
        return sent

    def complete(self, code: str, cursor: int) -> list[str]:
        """Completions of the tab key at `cursor`."""
        reply = self.client.complete(code, cursor, reply=True, timeout=TIMEOUT_S)
        found: list[str] = reply["content"]["matches"]
        return found

    def history(self, number: int) -> str:
        """The text that a frontend gets for input `number` of this session."""
        reply = self.client.history(
            hist_access_type="range", session=0, start=number, stop=number + 1, raw=True, reply=True, timeout=TIMEOUT_S
        )
        text: str = reply["content"]["history"][0][2]
        return text

    def finish(self, request: str) -> Ran:
        """Wait until the kernel has done what `send` asked for."""
        ran = Ran({})
        while True:
            message = self.client.get_iopub_msg(timeout=TIMEOUT_S)
            if message["parent_header"].get("msg_id") != request:
                continue
            if message["msg_type"] == "status" and message["content"]["execution_state"] == "idle":
                break
            if message["msg_type"] not in ("status", "execute_input"):
                ran.messages.append((message["msg_type"], message["content"]))
        while True:
            reply = self.client.get_shell_msg(timeout=TIMEOUT_S)
            if reply["parent_header"].get("msg_id") == request:
                ran.reply = reply["content"]
                return ran

    def run(self, code: str, **request: Any) -> Ran:
        return self.finish(self.send(code, **request))

    def run_until(self, code: str, said: str, **request: Any) -> str:
        """Send `code` and wait until it has printed `said`."""
        sent = self.send(code, **request)
        while True:
            message = self.client.get_iopub_msg(timeout=TIMEOUT_S)
            if message["msg_type"] == "stream" and said in message["content"]["text"]:
                return sent

    def last(self, expression: str) -> Any:
        """The value of `expression`, in which `prof` is the last profile."""
        return self.value(f"(lambda prof: {expression})(__import__('mtprof_nb').last())")

    def ops(self) -> list[str]:
        """Names of the ops of the last profile."""
        found: list[str] = self.last("sorted({event.name for event in prof.events() if event.kind == 'op'})")
        return found

    def answer(self, code: str, answers: list[str]) -> Ran:
        """Run `code`, and type one answer after the other where it asks."""
        sent = self.send(code, allow_stdin=True)
        for text in answers:
            self.client.get_stdin_msg(timeout=TIMEOUT_S)
            self.client.input(text)
        return self.finish(sent)

    def interrupt_when(self, code: str, said: str, **request: Any) -> Ran:
        """Run `code`, and interrupt the kernel once it has printed `said`."""
        sent = self.run_until(code, said, **request)
        time.sleep(0.1)
        self.manager.interrupt_kernel()
        return self.finish(sent)

    def empty(self) -> None:
        """Forget what the user has made: %reset would, but collects garbage three times on the way."""
        emptied = self.run(EMPTY, silent=True)
        assert emptied.status == "ok", emptied.messages

    def value(self, expression: str) -> Any:
        """`expression` in the user's namespace, as plain Python (its repr must be a literal)."""
        found = self.run("", silent=True, user_expressions={"value": expression}).reply["user_expressions"]["value"]
        assert found["status"] == "ok", found
        return ast.literal_eval(found["data"]["text/plain"])

    def close(self) -> None:
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)


@pytest.fixture(scope="session")
def shared_kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    kernel = Kernel(tmp_path_factory.mktemp("kernel"))
    assert kernel.run("%load_ext mtprof_nb\nimport torch").status == "ok"
    yield kernel
    kernel.close()


@pytest.fixture
def kernel(shared_kernel: Kernel) -> Iterator[Kernel]:
    """The shared kernel, emptied; afterwards nothing of a recording may be left in it."""
    shared_kernel.empty()
    yield shared_kernel
    left = shared_kernel.run(LEFT_BEHIND, silent=True)
    assert left.stdout == "", left.messages


@pytest.fixture
def new_kernel(tmp_path: Path) -> Iterator[Kernel]:
    """A kernel of the test's own, with nothing imported."""
    kernel = Kernel(tmp_path)
    yield kernel
    kernel.close()


EMPTY = """
(lambda ip: [ip.user_ns.pop(name) for name in list(ip.user_ns) if name not in ip.user_ns_hidden])(get_ipython())
import torch
%mtprofile_config --reset
"""

LEFT_BEHIND = """
def _left_behind():
    import sys, threading, torch
    ip = get_ipython()
    ours = lambda thing: "mtprof" in repr(thing) or "mtprof" in str(getattr(thing, "__module__", ""))
    found = [t.name for t in threading.enumerate() if "mtprof" in t.name]
    found += [f for f in sys.meta_path if ours(f)]
    found += [f for e in ("pre_run_cell", "post_run_cell", "pre_execute", "post_execute")
              for f in ip.events.callbacks[e] if ours(f)]
    found += [name for name in ("showtraceback",) if name in vars(ip)]
    if "mtprof" in repr(sys.displayhook):
        found.append("sys.displayhook")
    if torch.autograd._profiler_enabled():
        found.append("a torch profiler")
    ours = sys.modules.get("mtprof_nb")
    if ours is not None and ours.active() is not None:
        found.append("an active profile")
    if found:
        print(found)
_left_behind()
del _left_behind
"""
