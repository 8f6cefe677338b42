"""Nodes and lines of fused kernels, from graphs and wrappers made by hand; timed kernels."""

from types import ModuleType

import pytest

from mtprof_nb.capture.compiled import timed_kernels
from mtprof_nb.capture.compiled.graph_text import read_graph
from mtprof_nb.capture.compiled.kernel_slices import slice_kernels, weights
from mtprof_nb.capture.compiled.wrapper_text import read_wrapper

GRAPH = """class GraphModule(torch.nn.Module):
    def forward(self, arg0_1: "f32[4, 8][8, 1]cpu", arg1_1: "f32[8, 8][8, 1]cpu"):
        # {words}File: net.py:5 in f, code: h = torch.exp(x)
        exp: "f32[4, 8][8, 1]cpu" = torch.ops.aten.exp.default(arg0_1);  arg0_1 = None

        # {words}File: net.py:6 in f, code: h = h + 1
        add: "f32[4, 8][8, 1]cpu" = torch.ops.aten.add.Tensor(exp, 1);  exp = None
        view: "f32[4, 8][8, 1]cpu" = torch.ops.aten.reshape.default(add, [4, 8]);  add = None

        # {words}File: net.py:7 in f, code: y = h @ w
        mm: "f32[4, 8][8, 1]cpu" = torch.ops.aten.mm.default(view, arg1_1);  view = arg1_1 = None

        # No stacktrace found for following nodes
        neg: "f32[4, 8][8, 1]cpu" = torch.ops.aten.neg.default(mm);  mm = None

        # {words}File: net.py:8 in f, code: return y.relu()
        relu: "f32[4, 8][8, 1]cpu" = torch.ops.aten.relu.default(neg);  neg = None
        return (relu,)
"""
KERNEL = """cpp_fused_{name} = async_compile.cpp_pybinding(['const float*', 'float*'], r'''
extern "C"  void  kernel(const float* in_ptr0,
                       float* out_ptr0)
{{
}}
''')
"""
CALLS = """
def call(args):
    arg0_1, arg1_1 = args
    buf0 = empty_strided_cpu((4, 8), (8, 1), torch.float32)
    cpp_fused_exp_0(arg0_1, buf0)
    buf1 = empty_strided_cpu((4, 8), (8, 1), torch.float32)
    extern_kernels.mm(buf0, arg1_1, out=buf1)
    buf2 = empty_strided_cpu((4, 8), (8, 1), torch.float32)
    {last}
    return (buf2, )
"""
TWO = KERNEL.format(name="exp_0") + KERNEL.format(name="relu_1")


@pytest.mark.parametrize("words", ["", "Backward of forward node: "])
def test_a_fused_kernel_has_the_nodes_between_its_buffers(words: str) -> None:
    graph = read_graph(GRAPH.format(words=words))
    wrapper = read_wrapper(TWO + CALLS.format(last="cpp_fused_relu_1(buf1, buf2)"))

    found = slice_kernels(wrapper, graph)

    first, last = found.nodes.values()
    assert found.unknown == 0
    assert [node.op for node in first] == ["exp", "add"]
    assert [node.op for node in last] == ["neg", "relu"]
    weighed = {frame.line: weight for frame, (weight, _) in weights(first, graph).items()}
    assert weighed == {5: 8 * 32, 6: 32}
    # A node that the compiler added belongs to the line that it is computed for.
    lines = {frame.line: dict(ops) for frame, (_, ops) in weights(last, graph).items()}
    assert lines == {8: {"neg": 1, "relu": 1}}


def test_a_kernel_that_lacks_what_its_nodes_need_is_not_known() -> None:
    graph = read_graph(GRAPH.format(words=""))
    wrapper = read_wrapper(TWO + CALLS.format(last="cpp_fused_relu_1(arg1_1, buf2)"))

    found = slice_kernels(wrapper, graph)

    assert len(found.nodes) == found.unknown == 1


def test_without_a_graph_no_kernel_has_lines() -> None:
    wrapper = read_wrapper(TWO + CALLS.format(last="cpp_fused_relu_1(buf1, buf2)"))

    assert slice_kernels(wrapper, read_graph("")).unknown == 2


def test_kernels_are_put_back_unless_others_replaced_them(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("wrapper")
    module.cpp_fused_0 = module.cpp_fused_1 = len
    module.cpp_text = "no kernel"
    monkeypatch.setattr(timed_kernels, "loaded_wrappers", lambda: [module])
    timed = timed_kernels.TimedKernels(lambda kernel, name: (kernel, name))

    timed.install()
    assert (module.cpp_fused_0, module.cpp_text) == ((len, "cpp_fused_0"), "no kernel")
    module.cpp_fused_1 = theirs = object()
    timed.remove()
    timed.remove()

    assert module.cpp_fused_0 is len
    assert module.cpp_fused_1 is theirs
