"""`%%mtprofile` on top of a cell adds a panel, and nothing else: each cell runs with and without it."""

from __future__ import annotations

import re
from typing import Any

import pytest
from conftest import Kernel, Ran, is_panel

CELLS = {
    "last expression": "x = 2\nx + 1",
    "silenced by a semicolon": "x = 2\nx + 1;",
    "silenced, then a comment": "x = 2\nx + 1;  # done",
    "None is not shown": "None",
    "a tensor": "t = torch.ones(2, 2) @ torch.ones(2, 2)\nt",
    "no expression at the end": "x = 2",
    "only a comment": "# nothing here",
    "output in order": (
        "import sys\nprint('a')\ndisplay('b')\nprint('c', file=sys.stderr)\nprint('d')\ndisplay('e')\n'f'"
    ),
    "a multi-line string": "text = '''one\n  two\n\ttabs\n\n    four'''\ntext",
    "functions and classes": "def f(x):\n    return x * 2\n\nclass A:\n    y = f(3)\n\nA.y",
    "a future import": "from __future__ import annotations\ndef f(x: Undefined): ...\nf.__annotations__",
    "a docstring first": "'''a docstring'''\nx = 1",
    "no scope of its own": "x = 1\ndef f():\n    global x\n    x = 5\nf()\n[x for _ in range(2)]",
    "deleted names": "x = 1\ny = 2\ndel x",
    "globals": "globals()['made'] = 1\nsorted(name for name in globals() if 'mtprof' in name)",
    "locals": "sorted(name for name in dir() if 'mtprof' in name or 'begin' in name)",
    "await": "import asyncio\nx = await asyncio.sleep(0, 'slept')\nx",
    "await on the kernel's loop and thread": (
        "import asyncio, threading\nawait asyncio.sleep(0)\n"
        "asyncio.get_running_loop() is LOOP, threading.current_thread() is THREAD"
    ),
    "async for and with": (
        "import contextlib\n"
        "async def numbers():\n    yield 1\n    yield 2\n"
        "@contextlib.asynccontextmanager\nasync def opened():\n    yield 'open'\n"
        "async with opened() as o:\n    found = [n async for n in numbers()]\no, found"
    ),
    "a task goes on": "import asyncio\ntask = asyncio.ensure_future(asyncio.sleep(0, 7))\nawait task",
    "an exception": "x = 1\n\n1 / 0\ny = 2",
    "an exception in a function": "def f(n):\n    return 1 / n\n\n\nx = 3\nf(0)",
    "an exception after await": "import asyncio\nawait asyncio.sleep(0)\n1 / 0",
    "an exception of torch": "torch.ones(2) @ torch.ones(3)",
    "a chained exception": "try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    raise ValueError('then') from e",
    "an exception group": "raise ExceptionGroup('many', [ValueError('a'), TypeError('b')])",
    "an interrupt of its own": "raise KeyboardInterrupt",
    "a syntax error": "x = 1\ny = = 2",
    "an indentation error": "x = 1\n  y = 2",
    "an error of compilation": "x = 1\nreturn 5",
    "sys.exit": "import sys\nx = 1\nsys.exit(3)",
    "a failing repr": "class A:\n    def __repr__(self):\n        raise ValueError('no repr')\nA()",
    "warnings": "import warnings\nfor _ in range(2):\n    warnings.warn('careful')\nwarnings.warn('again')",
    "logging": "import logging\nlogging.getLogger('some').error('logged')",
    "a shell command": "!echo hello\nx = !echo there\nx",
    "no expansion of $x": "x = 3\n'$x {x} $HOME'",
    "a line magic": "%env MTPROF_TEST=1\n%env MTPROF_TEST",
    "an assigned magic": "where = %pwd\nlen(where) > 0",
    "an inner %%time": "%%time\nx = 1\nx + 1",
    "an inner %%capture": "%%capture out\nprint('captured')\n5",
    "an inner %%bash": "%%bash\necho $((1 + 1))",
    "an inner %%html": "%%html\n<b>bold</b>",
    "an inner magic that fails": "%%time\n1 / 0",
    "an unknown inner magic": "%%nosuchmagic\nx = 1",
    "captured output": (
        "from IPython.utils.io import capture_output\n"
        "with capture_output() as c:\n    print(1)\n    display(2)\nc.stdout, len(c.outputs)"
    ),
    "help on an object": "len?",
    "automagic in one line": "pwd",
    "an indented cell": "    x = 1\n    x + 1",
    "blank lines first": "\n\nx = 1\n1 / 0",
    "pasted prompts": ">>> x = 1\n>>> x + 1",
    "a cell inside the cell": "result = get_ipython().run_cell('inner = 1\\ninner')\nprint('after')\nresult.result",
    "a failing cell inside the cell": "result = get_ipython().run_cell('1 / 0')\nprint('after')\nresult.success",
    "a blank cell inside the cell": "get_ipython().run_cell('')\nprint('after')\n5",
    "next input": "get_ipython().set_next_input('x = 5')",
    "clear_output": "from IPython.display import clear_output\nprint(1)\nclear_output()\nprint(2)",
    "updated displays": "handle = display('a', display_id='same')\nhandle.update('b')",
    "threads": "import threading\nt = threading.Thread(target=print, args=('from a thread',))\nt.start()\nt.join()",
    "a word like paste": "x = 'paste'\nx",
    "rich output": "from IPython.display import HTML\nHTML('<i>x</i>')",
    "the last value": "x = 41\nx + 1",
}
NEVER_RUN = (CELLS["a syntax error"], CELLS["an indentation error"])
SETUP = """
import asyncio, threading
await asyncio.sleep(0)
import sys
sys.modules["IPython.core.interactiveshell"].__dict__.get("__warningregistry__", {}).clear()
LOOP, THREAD = asyncio.get_running_loop(), threading.current_thread()
"""
#: What a first line that is not the magic changes by itself: there, the plain cell has none.
WITHOUT_FIRST_LINE = ("%%", "pwd", "    x", ">>>", "\n")


def _namespace(kernel: Kernel) -> Any:
    return kernel.value("sorted((k, type(v).__name__) for k, v in globals().items() if not k.startswith('_'))")


def _normal(text: str) -> str:
    text = re.sub(r"\x1b\[[\d;]*m", "", text)
    text = re.sub(r"In\[\d+\]|Out\[\d+\]", "In[n]", text)
    text = re.sub(r"(/ipykernel_\d+/)?\b\d{5,}\.py", "cell.py", text)
    text = re.sub(r"0x[0-9a-f]+", "0x", text)
    text = re.sub(r"(CPU times|Wall time|Compiler|Parser) *:.*", r"\1", text)
    text = re.sub(r"Task-\d+", "Task", text)
    return re.sub(
        r"(?m)^( +1) (# plain|get_ipython\(\)\.run_cell_magic\('mtprofile', '[-a-z]*', None\))$", r"\1 first line", text
    )


def _comparable(ran: Ran) -> list[Any]:
    """Everything published, the panel aside: streams joined, numbers that differ between any two runs taken out."""
    found: list[Any] = []
    for kind, content in ran.messages:
        if is_panel(content) or kind.startswith("comm_"):
            continue
        if kind == "stream" and found and found[-1][0] == f"stream {content['name']}":
            found[-1] = (found[-1][0], _normal(found[-1][1] + content["text"]))
        elif kind == "stream":
            found.append((f"stream {content['name']}", _normal(content["text"])))
        elif kind == "error":
            found.append((kind, content["ename"], _normal(content["evalue"]), _normal("\n".join(content["traceback"]))))
        else:
            found.append((kind, _normal(repr(content.get("data", content)))))
    reply = {key: ran.reply.get(key) for key in ("status", "ename", "evalue", "payload")}
    return [*found, _normal(repr(reply))]


def _without_line_numbers(parts: list[Any]) -> list[str]:
    """For a cell that has one line more under the magic than without it."""
    texts = [re.sub(r"line \d+|-* ?>? *\d+ +|first line", "", repr(part)) for part in parts]
    return [re.sub(r"( *\\n *)+", "; ", text) for text in texts]


@pytest.mark.parametrize("flags", ["", "--all"])
@pytest.mark.parametrize("cell", CELLS.values(), ids=list(CELLS))
def test_a_cell_does_what_it_does_without_the_magic(kernel: Kernel, cell: str, flags: str) -> None:
    has_first_line = not cell.startswith(WITHOUT_FIRST_LINE)
    kernel.run(SETUP)
    plain = kernel.run("# plain\n" * has_first_line + cell)
    plain_namespace = _namespace(kernel)
    kernel.empty()
    kernel.run(SETUP)
    profiled = kernel.run(f"%%mtprofile {flags}\n{cell}")

    expected, found = _comparable(plain), _comparable(profiled)
    if not has_first_line:
        expected, found = _without_line_numbers(expected), _without_line_numbers(found)
    assert found == expected
    assert _namespace(kernel) == plain_namespace
    assert [is_panel(content) for _, content in profiled.messages].count(True) == (cell not in NEVER_RUN)
    assert cell in NEVER_RUN or is_panel(profiled.messages[-1][1])
