"""Stacks of hook `kineto`: the innermost frame is the function that ran, whatever called torch from it."""

import inspect

import pytest

import mtprof_nb as mtp

torch = pytest.importorskip("torch")

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
