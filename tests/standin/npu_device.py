"""An `npu` device on any machine: PyTorch's PrivateUse1 backend, whose ops run on a CPU payload. Once a process."""

import torch
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

_payload = {}
_libraries = []


def register():
    """From now on torch has a device `npu:0`."""
    _setup_privateuseone_for_python_backend("npu")
    library = torch.library.Library("_", "IMPL")
    library.fallback(_fallback, "PrivateUse1")
    aten = torch.library.Library("aten", "IMPL")
    aten.impl("empty.memory_format", _empty, "PrivateUse1")
    aten.impl("empty_strided", _empty_strided, "PrivateUse1")
    aten.impl("_copy_from", _copy_from, "PrivateUse1")
    _libraries.extend((library, aten))


def on_npu(tensor):
    """A copy of a CPU tensor there."""
    made = torch._C._acc.create_empty_tensor(tensor.shape, tensor.dtype)
    _payload[made.untyped_storage()._cdata] = tensor.clone()
    return made


def on_cpu(value):
    """The payload of a tensor there; anything else as it is."""
    if isinstance(value, torch.Tensor) and value.device.type == "npu":
        return _payload[value.untyped_storage()._cdata]
    return [on_cpu(item) for item in value] if isinstance(value, list | tuple) else value


def _fallback(op, *args, **kwargs):
    kwargs = {key: "cpu" if key == "device" else on_cpu(value) for key, value in kwargs.items()}
    result = op(*map(on_cpu, args), **kwargs)
    return on_npu(result) if isinstance(result, torch.Tensor) else result


def _empty(size, *, dtype=None, **_options):
    return on_npu(torch.empty(size, dtype=dtype))


def _empty_strided(size, stride, *, dtype=None, **_options):
    return on_npu(torch.empty_strided(size, stride, dtype=dtype))


def _copy_from(source, target, non_blocking=False):
    on_cpu(target).copy_(on_cpu(source))
    return target
