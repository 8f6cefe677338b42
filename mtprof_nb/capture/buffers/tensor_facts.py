"""Facts from the arguments of one PyTorch op: device, shapes, operations. Nothing read here keeps a tensor."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from mtprof_nb.capture.flops import elementwise
from mtprof_nb.capture.torch_private.operators import packet_of, without_overrides

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
        self.cpu = torch.device("cpu")
        # torch's own attributes: a subclass may have put others in their place.
        self._read_device, self._read_shape, self._read_dtype = (
            getattr(torch.Tensor, name).__get__ for name in ("device", "shape", "dtype")
        )
        self._flops: dict[Any, int] = {}
        self._shapes: dict[InputShapes, InputShapes] = {}
        self._formulas: dict[Any, Callable[..., int]] | None = None

    def tensors(self, args: Any, kwargs: dict[str, Any]) -> list[Any]:
        """The tensors among the arguments, one level of lists deep."""
        tensors = []
        for value in (*args, *kwargs.values()) if kwargs else args:
            if isinstance(value, self._tensor):
                tensors.append(value)
            elif isinstance(value, list | tuple):
                tensors += [item for item in value if isinstance(item, self._tensor)]
        return tensors

    def device(self, tensors: list[Any]) -> Any:
        """The device of the first tensor that is not on the CPU, else the CPU; None without a tensor."""
        device = None
        for tensor in tensors:
            if tensor.__class__ in self._plain:
                # Asking for the device, and the device for its type, takes five times as long.
                device = self.cpu if tensor.is_cpu else tensor.device
            else:
                device = self._device_of_subclass(tensor)
            if device is not self.cpu and device.type != "cpu":
                return device
        return device

    def _device_of_subclass(self, tensor: Any) -> Any:
        """The device of its storage, read past attributes of the subclass."""
        try:
            with self._without_overrides():
                return self._read_device(tensor)
        except Exception:  # a subclass may compute it in Python, and fail
            return self.cpu

    def device_of_result(self, result: Any, kwargs: dict[str, Any]) -> Any:
        """The device of an op without input tensors: that of its result, or of the argument `device`."""
        device = self.device(self.tensors((result,), {}))
        wanted = kwargs.get("device")
        return device if device is not None else wanted if hasattr(wanted, "type") else self.cpu

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

    def flops(self, op: Any, args: Any, kwargs: dict[str, Any], result: Any) -> int:
        """Operations by PyTorch's registered formula, or as Kineto counts them; -1 where neither knows this op."""
        if self._formulas is None:
            aten = import_module("torch").ops.aten
            registered = import_module("torch.utils.flop_counter").flop_registry
            self._formulas = {aten.add: elementwise, aten.mul: elementwise, **registered}
        formula = self._formulas.get(packet_of(op))
        if formula is None or result is None:
            return -1
        key = (op, *map(self._key, args), *((name, self._key(value)) for name, value in kwargs.items()))
        count = self._flops.get(key)
        if count is None:
            try:
                count = int(formula(*args, **kwargs, out_val=result))
            except Exception:  # a formula is PyTorch's or a library's: where it fails there is no number
                count = -1
            self._flops[key] = count
        return count

    def _key(self, value: Any) -> Any:
        if isinstance(value, self._tensor):
            return self._shape(value)
        return tuple(map(self._key, value)) if isinstance(value, list | tuple) else repr(value)


def dtype_name(dtype: Any) -> str:
    """As Kineto writes it: `float`, `long int`."""
    name = str(dtype).removeprefix("torch.")
    return _KINETO_DTYPES.get(name, name)
