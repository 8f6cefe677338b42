"""Code and frames of other threads are read as Python itself knows them, whatever happens to them meanwhile."""

import importlib.machinery
import importlib.util
import shlex
import subprocess
import sys
import sysconfig
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType
from typing import Any

import pytest

from mtprof_nb.capture.native.compiler import find_compiler
from mtprof_nb.capture.native.recorder_key import SOURCE
from mtprof_nb.capture.samples.python_stacks import line_of
from mtprof_nb.errors import BuildError

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="frames are read on Linux")

_FOLDER = Path(__file__).parent / "frame_reading"


@pytest.fixture(scope="module")
def reading(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The reading part of the recorder, as a module of its own."""
    target = tmp_path_factory.mktemp("reading") / "frame_reading.so"
    try:
        compiler = find_compiler()
    except BuildError as error:
        pytest.skip(str(error))
    flags = shlex.split(f"-O1 -fPIC -shared -std=c++17 -I{SOURCE} -I{sysconfig.get_path('include')}")
    subprocess.run([*compiler, *flags, str(_FOLDER / "frame_reading.cpp"), "-o", str(target)], check=True)
    loader = importlib.machinery.ExtensionFileLoader("frame_reading", str(target))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("frame_reading", loader))
    loader.exec_module(module)
    return module


def codes_in(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from codes_in(constant)


@pytest.mark.parametrize("name", ["argparse", "dataclasses", "inspect", "typing", "asyncio.base_events", __name__])
def test_lines_are_those_that_python_tells(reading: Any, name: str) -> None:
    spec = importlib.util.find_spec(name)
    path = Path(__file__) if spec is None or spec.origin is None else Path(spec.origin)
    code = compile(path.read_text(encoding="utf-8"), str(path), "exec")
    for each in codes_in(code):
        file, function, lines = reading.facts(each)
        assert (file, function) == (each.co_filename, each.co_name)
        expected = [line_of(each, instruction) or each.co_firstlineno for instruction in range(0, 2 * len(lines), 2)]
        assert lines == expected, each


@pytest.mark.parametrize("name", ["é", "名", "𝔫", "a" * 5000, ""])
def test_texts_of_any_width_are_read(reading: Any, name: str) -> None:
    code = compile("def f(): pass", name, "exec")

    assert reading.facts(code)[0] == name[:4096]


@pytest.mark.parametrize("other", [3, "text", [1], object(), len])
def test_other_objects_are_no_code(reading: Any, other: object) -> None:
    assert reading.facts(other) is None


def deep(call: Callable[[], object], levels: int) -> None:
    if levels:
        deep(call, levels - 1)
    else:
        call()


def generated(call: Callable[[], object]) -> None:
    def inner() -> Iterator[object]:
        yield call()

    def outer() -> Iterator[object]:
        yield from inner()

    sorted(outer(), key=str)


def stack_of(reading: Any, begin: Callable[[Callable[[], object]], object], way: int) -> Any:
    """The stack of a thread that runs `begin`, which calls its argument and waits there."""
    is_there, go = threading.Event(), threading.Event()

    def wait_for_reader() -> None:
        is_there.set()
        go.wait(60)

    thread = threading.Thread(target=lambda: begin(wait_for_reader))
    thread.start()
    is_there.wait()
    try:
        found: Any = None
        while found is None or found[0][0][0] != "wait":
            found = reading.stack(thread.native_id, way)
        return found
    finally:
        go.set()
        thread.join()


@pytest.mark.parametrize("way", [1, 2])
def test_a_stack_through_generators_and_c_code_is_whole(reading: Any, way: int) -> None:
    frames, is_cut = stack_of(reading, generated, way)

    names = [name for name, _ in frames]
    assert names[names.index("inner") :][:3] == ["inner", "outer", "generated"]
    first = generated.__code__.co_firstlineno
    assert [line - first for name, line in frames if name in ("inner", "outer", "generated")] == [2, 5, 7]
    assert not is_cut


@pytest.mark.parametrize(("levels", "cut"), [(30, False), (900, False), (6000, True)])
def test_a_deep_stack_is_read_and_a_very_deep_one_is_cut(reading: Any, levels: int, cut: bool) -> None:
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(20_000)
    try:
        frames, is_cut = stack_of(reading, lambda call: deep(call, levels), 1)
    finally:
        sys.setrecursionlimit(before)

    assert is_cut == cut
    assert sum(name == "deep" for name, _ in frames) == levels + 1 or cut
    assert len(frames) <= 4000


def test_frames_of_c_code_that_lead_to_each_other_are_no_stack(reading: Any) -> None:
    assert reading.circle()
