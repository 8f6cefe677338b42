"""Facts from the arguments of one PyTorch op: device, shapes, operations. Nothing read here keeps a tensor."""

from __future__ import annotations

from typing import Any

from mtprof_nb.capture.torch_private.operators import without_overrides

#: Element types by the names that Kineto gives them.
_KINETO_DTYPES = {
    "float32": "float",
    "float64": "double",
    "float16": "c10::Half",
    "bfloat16": "c10::BFloat16",
    "int64": "long int",
    "int32": "int",
    "int16": "short int",
    "int8": "signed char",
    "uint8": "unsigned char",
    "complex64": "c10::complex<float>",
    "complex128": "c10::complex<double>",
}
#: A shape and an element type for each input: of a list of tensors, the shapes in one tuple; `((), None)` otherwise.
InputShapes = tuple[tuple[Any, Any], ...]


class TensorFacts:
    """Reads arguments of `torch`. Tensors of other classes are read without calling their `__torch_function__`."""

    def __init__(self, torch: Any) -> None:
        self._tensor = torch.Tensor
        self._plain = frozenset({torch.Tensor, torch.nn.Parameter})
        self._without_overrides = without_overrides(torch)
        # torch's own attributes: a subclass may have put others in their place.
        self._read_shape, self._read_dtype = (getattr(torch.Tensor, name).__get__ for name in ("shape", "dtype"))
        self._shapes: dict[InputShapes, InputShapes] = {}

    def shapes(self, args: Any, kwargs: dict[str, Any]) -> InputShapes:
        """One entry for each positional argument, then one for each keyword that is a tensor or a list of them."""
        entries = [self._entry(value) for value in args]
        entries += [entry for value in kwargs.values() if (entry := self._entry(value))[1] is not None]
        shapes = tuple(entries)
        # One copy of each: the garbage collector would scan thousands of equal ones again and again.
        return self._shapes.setdefault(shapes, shapes)

    def _entry(self, value: Any) -> tuple[Any, Any]:
        if isinstance(value, self._tensor):
            return self._shape(value)
        if isinstance(value, list | tuple) and value and isinstance(value[0], self._tensor):
            entries = [self._shape(item) if isinstance(item, self._tensor) else ((), None) for item in value]
            return tuple(shape for shape, _ in entries), entries[0][1]
        return (), None

    def _shape(self, tensor: Any) -> tuple[Any, Any]:
        if tensor.__class__ in self._plain and not tensor.is_nested:
            return tensor.shape, tensor.dtype
        try:
            with self._without_overrides():
                # A size that is only known as a symbol is -1.
                sizes = self._read_shape(tensor)
                return tuple(size if isinstance(size, int) else -1 for size in sizes), self._read_dtype(tensor)
        except Exception:  # a nested or foreign tensor may have no sizes at all
            return (), self._read_dtype(tensor)


def dtype_name(dtype: Any) -> str:
    """As Kineto writes it: `float`, `long int`."""
    name = str(dtype).removeprefix("torch.")
    return _KINETO_DTYPES.get(name, name)
