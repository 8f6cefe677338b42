"""Python-level operators of `torch.Tensor` while stacks are recorded.

`a + b` reaches torch from C, so Kineto's Python tracer sees no call and no line. As a Python function the
operator is a call like any other. Compiled code is not concerned: Dynamo reads operators from bytecode.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

_BINARY = (
    "__add__ __radd__ __iadd__ __sub__ __isub__ __mul__ __rmul__ __imul__ __truediv__ __itruediv__ __div__ __idiv__"
    " __ifloordiv__ __matmul__ __mod__ __imod__ __and__ __iand__ __rand__ __or__ __ior__ __ror__ __xor__ __ixor__"
    " __rxor__ __lshift__ __ilshift__ __rshift__ __irshift__ __eq__ __ne__ __lt__ __le__ __gt__ __ge__ __getitem__"
    " __pow__ __ipow__ __rpow__ __rsub__ __rmatmul__"
)
_UNARY = "__bool__ __nonzero__ __float__ __int__ __long__ __index__ __invert__ __complex__ __neg__ __pos__ __abs__"
_PROPERTIES = "T mT H mH real imag"


#: The original and its Python operator, by name and identity of the original. Kept for good: Python 3.13 goes on
#: calling the `__getitem__` that a class had when it was changed for the thousandth time.
_made: dict[tuple[str, int], tuple[Any, Any]] = {}


class TensorOperators:
    """Replaces the operators of `torch.Tensor` that are C functions by Python functions, and puts them back."""

    def __init__(self, torch: Any) -> None:
        self._tensor = torch.Tensor
        self._replaced: list[tuple[str, Any]] = []
        #: Operands that cannot have a `__torch_function__` of their own.
        self._plain = frozenset({torch.Tensor, torch.nn.Parameter, int, float, bool, complex, type(None), slice, tuple})
        self._has_torch_function = torch.overrides.has_torch_function
        self._handle_torch_function = torch.overrides.handle_torch_function

    def install(self) -> None:
        wrappers = {
            self._binary: _BINARY.split(),
            self._unary: _UNARY.split(),
            self._ternary: ["__setitem__"],
            self._attribute: _PROPERTIES.split(),
        }
        found = [(name, self._operator(name, wrap)) for wrap, names in wrappers.items() for name in names]
        # All at once, without reading in between: a class has a thousand version tags, and each reading after a change
        # takes one. When they are used up, Python's attribute cache is off for this class for good.
        for name, operator in found:
            if operator is not None:
                self._replaced.append((name, self._tensor.__dict__.get(name)))
                setattr(self._tensor, name, operator)

    def remove(self) -> None:
        while self._replaced:
            name, own = self._replaced.pop()
            if own is None:
                delattr(self._tensor, name)
            else:
                setattr(self._tensor, name, own)

    def _operator(self, name: str, wrap: Callable[[Any], Any]) -> Any:
        """The Python operator for one of C, None where there is none."""
        original = getattr(self._tensor, name, None)
        if original is None or isinstance(original, FunctionType):
            return None
        key = (name, id(original))
        if key not in _made:
            operator = wrap(original)
            if callable(operator):
                operator.__name__, operator.__doc__ = name, original.__doc__
            _made[key] = (original, operator)
        return _made[key][1]

    def _binary(self, original: Any) -> Any:
        plain, overridden, handle = self._plain, self._has_torch_function, self._handle_torch_function

        def operator(self: Any, other: Any, /) -> Any:
            if self.__class__ in plain and other.__class__ in plain:
                return original(self, other)
            # A subclass must get the original function in `__torch_function__`, which torch looks up by name.
            if overridden((self, other)):
                return handle(original, (self, other), self, other)
            return original(self, other)

        return operator

    def _unary(self, original: Any) -> Any:
        plain, overridden, handle = self._plain, self._has_torch_function, self._handle_torch_function

        def operator(self: Any, /) -> Any:
            if self.__class__ not in plain and overridden((self,)):
                return handle(original, (self,), self)
            return original(self)

        return operator

    def _ternary(self, original: Any) -> Any:
        plain, overridden, handle = self._plain, self._has_torch_function, self._handle_torch_function

        def operator(self: Any, key: Any, value: Any, /) -> Any:
            if self.__class__ in plain and value.__class__ in plain and key.__class__ in plain:
                return original(self, key, value)
            if overridden((self, key, value)):
                return handle(original, (self, key, value), self, key, value)
            return original(self, key, value)

        return operator

    def _attribute(self, original: Any) -> Any:
        def read(tensor: Any) -> Any:
            return original.__get__(tensor)

        def write(tensor: Any, value: Any) -> None:
            original.__set__(tensor, value)

        return property(read, write, doc=original.__doc__)
