"""Stacks of hook `kineto`: the innermost frame is the function that ran, whatever called torch from it."""

import functools
import inspect
import operator

import pytest

import mtprof_nb as mtp

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.usefixtures("kineto_alone")

HERE = __file__


def stack_of(prof, op):
    event = next(event for event in prof.events() if event.name == op)
    return event.stack


def here(function, text):
    source, first = inspect.getsourcelines(function)
    line = next(first + offset for offset, line in enumerate(source) if text in line)
    return f"{HERE}:{line}:{function.__name__}"


def test_no_operator_of_a_tensor_is_a_c_function_while_stacks_are_recorded():
    def in_c():
        names = [name for name in dir(torch.Tensor) if name.startswith("__") and name.endswith("__")]
        found = {name for name in names if type(getattr(torch.Tensor, name)).__name__.endswith("_descriptor")}
        own = {name for name in found if getattr(torch.Tensor, name) is not getattr(object, name, None)}
        return own - {"__delitem__", "__weakref__"}

    before = in_c()
    assert {"__add__", "__itruediv__"} <= before
    with mtp.profile(with_stack=True):
        torch.ones(2).sin()
        assert in_c() == set()
    assert in_c() == before


def divided(x):
    y = x.clone()
    y /= 2
    return y


def written(x):
    x.real = torch.ones(3, 3)


@pytest.mark.parametrize(
    ("function", "op", "text"),
    [
        (divided, "aten::div_", "y /= 2"),
        (written, "aten::copy_", "x.real ="),
    ],
)
def test_what_is_no_call_in_the_source_has_its_own_line(function, op, text):
    x = torch.rand(3, 3)
    with mtp.profile(with_stack=True) as prof:
        function(x)
    assert stack_of(prof, op)[0] == here(function, text)


def partial(x):
    return functools.partial(torch.sin, x)()


def mapped(x):
    return list(map(torch.sin, [x]))


def method(x):
    return operator.methodcaller("sin")(x)


def constructed(_x):
    return torch.Tensor([1.0])


@pytest.mark.parametrize(
    ("function", "op"),
    [(partial, "aten::sin"), (mapped, "aten::sin"), (method, "aten::sin"), (constructed, "aten::lift_fresh")],
)
def test_torch_called_from_c_leaves_the_running_function_innermost(function, op):
    x = torch.rand(3, 3)

    def outer():
        return function(x)

    with mtp.profile(with_stack=True) as prof:
        outer()
    assert stack_of(prof, op)[:2] == [here(function, "def "), here(outer, "return")]


def largest(x):
    return max([3, 1], key=lambda v: x.sin().sum().item() * v)


def summed(x):
    return sum(x.sin().sum() for _ in range(2))


def ordered(x):
    return sorted([3, 1], key=lambda v: x.sin().sum().item() * v)


def folded(x):
    return functools.reduce(lambda a, b: a.sin() + b, [x, x])


def evaluated(x):
    return eval("x.sin()", {"x": x})


@pytest.mark.parametrize("function", [largest, summed, ordered, folded, evaluated])
def test_a_builtin_that_calls_back_has_its_caller_on_the_stack_once(function):
    x = torch.rand(3, 3)

    def outer():
        return function(x)

    with mtp.profile(with_stack=True) as prof:
        outer()
    assert stack_of(prof, "aten::sin")[1:3] == [here(function, "return"), here(outer, "return")]


def test_a_function_that_calls_itself_has_a_frame_for_each_call():
    def descend(depth):
        return descend(depth - 1) if depth else torch.ones(2).sin()

    with mtp.profile(with_stack=True) as prof:
        descend(2)
    assert [frame for frame in stack_of(prof, "aten::sin") if frame.endswith("descend")] == [
        here(descend, "return")
    ] * 3
