"""The user's lines in stacks of compiled code, from wrappers and tables of lines made by hand."""

from pathlib import Path

import pytest
from traces import event, make_trace

from mtprof_nb.analysis.lines.attribution import attribution
from mtprof_nb.building.compiled_lines import BrokenFunctions, Share, with_user_frames
from mtprof_nb.capture.compiled.present_lines import (
    PresentLines,
    first_line_of_function,
    whole_function,
)
from mtprof_nb.capture.compiled.wrapper_text import Buffer, read_wrapper
from mtprof_nb.capture.torch_private.inductor_code import SourceFrame, frames_of_text
from mtprof_nb.model.merge import merge
from mtprof_nb.model.trace import Frame, SourceLine, Trace

WRAPPER = "/tmp" + "/torchinductor_me/ab/cabc.py"
TORCH = "/env/lib/python3.11/site-packages/torch/_dynamo/eval_frame.py"
CALLER = ("train.py", 30, "<module>")
ENGINE = ("/env/lib/python3.11/site-packages/torch/autograd/graph.py", 979, "_engine_run_backward")
ROOT = Frame("net.py", 12, "forward")
EXPLAINED = {(WRAPPER, 7): [Share((ROOT, Frame("net.py", 5, "attend")), 1, "mm")]}
NOT_BROKEN = BrokenFunctions(whole_function, lambda _file, line: line)


def in_region(line: int) -> list[tuple[str, int, str]]:
    region = ("net.py", 9, "forward")
    return [(WRAPPER, line, "call"), (TORCH, 1, "_fn"), region, (TORCH, 2, "wrap"), CALLER]


def line_of(trace: Trace, name: str) -> SourceLine:
    row = [trace.names[number] for number in trace.name].index(name)
    found = attribution(trace)
    return found.lines[found.line[row]]


def test_an_op_of_a_wrapper_has_the_users_line_in_place_of_the_regions() -> None:
    other = event("add", 10, 20, stack=in_region(8))
    trace = make_trace([event("mm", 0, 10, stack=in_region(7)), other])

    opened = with_user_frames(trace, EXPLAINED, NOT_BROKEN)

    assert line_of(opened, "mm") == ("net.py", 5)
    assert line_of(opened, "add") == ("net.py", 9)
    assert [str(frame) for frame in opened.stacks.stack(opened.stack[0])] == [
        f"{WRAPPER}:7:call",
        "net.py:5:attend",
        "net.py:12:forward",
        f"{TORCH}:2:wrap",
        "train.py:30:<module>",
    ]


def test_an_op_of_a_compiled_backward_has_the_line_of_its_forward_region() -> None:
    node = [ENGINE, ("train.py", 31, "<module>")]
    inside = [(TORCH, 3, "apply"), *node]
    backward = {"phase": "backward", "forward": 0}
    trace = make_trace(
        [
            event("CompiledFunction", 0, 10, stack=in_region(1)[1:], sequence_nr=3),
            event("CompiledFunctionBackward", 20, 40, stack=node, **backward),
            event("mm", 25, 30, stack=[(WRAPPER, 7, "call"), *inside], **backward),
            event("add", 30, 35, stack=[(WRAPPER, 8, "call"), *inside], **backward),
        ]
    )

    opened = with_user_frames(trace, EXPLAINED, NOT_BROKEN)
    found = attribution(opened)
    chain = [found.lines[line] for line in found.chains.innermost_first(int(found.chain[2]))]

    assert chain == [("net.py", 5), ("net.py", 12), ("train.py", 30)]
    assert line_of(opened, "add") == ("net.py", 9)


def test_a_backward_without_its_forward_keeps_the_line_inside() -> None:
    stack = [(WRAPPER, 7, "call"), ENGINE, ("train.py", 31, "<module>")]
    trace = make_trace([event("mm", 25, 30, stack=stack, phase="backward")])

    assert line_of(with_user_frames(trace, EXPLAINED, NOT_BROKEN), "mm") == ("net.py", 5)


def test_code_after_a_graph_break_stands_on_its_function_and_not_on_the_break() -> None:
    resumed = ("net.py", 10, "torch_dynamo_resume_in_forward_at_10")
    part = [resumed, ("net.py", 10, "forward"), CALLER]
    trace = make_trace(
        [
            event("Torch-Compiled Region: 1/0", 0, 9, stack=part[1:]),
            event("relu", 10, 19, stack=part[1:]),
            event("add", 20, 29, stack=[(TORCH, 1, "_fn"), *part]),
            event("mm", 30, 39, stack=[(WRAPPER, 7, "call"), (TORCH, 1, "_fn"), *part]),
        ]
    )
    broken = BrokenFunctions(whole_function, lambda _file, _line: 8)

    opened = with_user_frames(trace, EXPLAINED, broken)

    assert line_of(opened, "add") == line_of(opened, "Torch-Compiled Region: 1/0") == ("net.py", 8)
    assert line_of(opened, "relu") == ("net.py", 10)  # what the line of the break ran itself
    assert line_of(opened, "mm") == ("net.py", 5)


def test_lines_of_compiled_code_survive_merging() -> None:
    events = [event(name, 0, 10, stack=in_region(7)) for name in ("mm", "bmm")]
    parts = [with_user_frames(make_trace([one]), EXPLAINED, NOT_BROKEN) for one in events]

    merged = merge([make_trace([event("sin", 0, 5, stack=[CALLER])]), *parts])

    assert set(merged.compiled.call.tolist()) == set(merged.stack[:2].tolist())
    assert [merged.names[ops] for ops in merged.compiled.ops] == ["mm", "mm"]


def test_without_compiled_code_a_trace_stays_as_it_is() -> None:
    trace = make_trace([event("sin", 0, 5, stack=[CALLER])])

    assert with_user_frames(trace, EXPLAINED, NOT_BROKEN) is trace


@pytest.mark.parametrize("quotes", ["'''", "r'''"])
def test_calls_of_a_wrapper_are_read_with_their_buffers(quotes: str) -> None:
    text = f"""
cpp_fused_add_0 = async_compile.cpp_pybinding(['float*', 'const float*', 'const int64_t'], {quotes}
extern "C"  void  kernel(float* in_out_ptr0,
                       const float* in_ptr0,
                       const int64_t ks0)
{{
}}
''')

class Runner:
    def call(self, args):
        arg0_1, s0 = args
        buf0 = empty_strided_cpu((4, 4), (4, 1), torch.float32)
        # Topologically Sorted Source Nodes: [h, out], Original ATen: [aten.mm]
        extern_kernels.mm(arg0_1, reinterpret_tensor(arg0_1, (4, 4), (1, 4), 0), out=buf0)
        buf1 = buf0; del buf0  # reuse
        cpp_fused_add_0(buf1, arg0_1, s0)
        buf2 = torch.ops.aten.cumsum.default(buf1, 0)
        return (buf1, buf2, 4)
"""

    wrapper = read_wrapper(text)

    mm, fused, cumsum = wrapper.calls
    first, second = Buffer("buf0", 2), Buffer("buf0", 3)
    assert (mm.name, mm.writes, mm.commented) == ("extern_kernels.mm", (first,), ("h", "out"))
    assert (fused.kind, fused.writes) == ("cpp", (second,))
    assert fused.reads[:2] == (first, Buffer("arg0_1", 0))
    assert (cumsum.kind, cumsum.reads) == ("extern", (second,))
    assert wrapper.returns == (second, Buffer("buf2", 1), None)


@pytest.mark.parametrize("text", ["def (", "x = 1\n"])
def test_a_text_that_is_no_wrapper_is_not_read(text: str) -> None:
    assert read_wrapper(text) is None


def test_frames_are_read_from_the_text_of_a_stack() -> None:
    text = (
        '  File "net.py", line 12, in forward\n    x = self.attend(x)\n        ^^^^^^^^\n'
        '  File "net.py", line 5, in attend\n    return q @ k\n'
        "Gradient addition node due to multiple use of tensor around:"
    )

    assert frames_of_text(text) == (
        SourceFrame("net.py", 12, "forward", "x = self.attend(x)"),
        SourceFrame("net.py", 5, "attend", "return q @ k"),
    )


def frames_in(file: Path, *places: tuple[int, str]) -> list[SourceFrame]:
    return [SourceFrame(str(file), line, "f", code) for line, code in places]


def test_lines_that_moved_are_found_by_their_text(tmp_path: Path) -> None:
    file = tmp_path / "net.py"
    file.write_text("# new\n# new\ndef f(x):\n    x = x + 1\n    y = x @ x\n    x = x + 1\n")
    frames = frames_in(file, (2, "x = x + 1"), (3, "y = x @ x"), (4, "x = x + 1"))
    present = PresentLines(frames)

    assert [present.find(frame).line for frame in frames] == [4, 5, 6]
    assert not present.lost


def test_lines_that_are_gone_or_not_certain_are_lost(tmp_path: Path) -> None:
    file = tmp_path / "net.py"
    file.write_text("a = 1\nb = 2\na = 1\n")
    frames = frames_in(file, (2, "a = 1"), (1, "c = 3"))
    present = PresentLines(frames)

    assert [present.find(frame) for frame in frames] == [None, None]
    assert present.lost == {SourceLine(str(file), 1), SourceLine(str(file), 2)}


def test_a_cell_of_a_dead_kernel_is_found_among_the_present_ones(tmp_path: Path) -> None:
    old = "/tmp" + "/ipykernel_1/111.py"
    cells = [tmp_path / name for name in ("a.py", "b.py")]
    cells[0].write_text("y = x @ x\n")
    cells[1].write_text("def f(x):\n    y = x @ x\n    return y + 1\n")
    frames = [SourceFrame(old, 2, "f", "y = x @ x"), SourceFrame(old, 3, "f", "return y + 1")]

    present = PresentLines(frames, lambda: list(map(str, cells)))

    found = [present.find(frame) for frame in frames]
    assert found == [Frame(str(cells[1]), line, "f") for line in (2, 3)]
    assert PresentLines(frames, lambda: [str(cells[0])]).find(frames[0]) is None


def test_the_first_line_of_a_function_is_that_of_its_decorators(tmp_path: Path) -> None:
    file = tmp_path / "net.py"
    file.write_text("import torch\n@torch.compile\ndef f(x):\n    print(x)\n    return x\n")

    assert first_line_of_function(str(file), 4) == 2
    assert first_line_of_function(str(tmp_path / "gone.py"), 4) == 4
