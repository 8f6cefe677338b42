"""Op families: kinds of work, each with its colour in every chart."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from mtprof_nb.analysis.devices.kernel_owners import kernel_owners
from mtprof_nb.analysis.once import once_a_trace
from mtprof_nb.model.trace import ENGINE_PREFIX, OP, Int8, Trace

DARK_INK, LIGHT_INK = "#1b1f24", "#ffffff"


class Family(NamedTuple):
    """A kind of work: its title, its colour, and a text colour that is readable on it."""

    title: str
    colour: str
    ink: str


#: Any two differ for normal, protan, deutan and tritan vision; a test checks it.
FAMILIES = (
    Family("matrix product", "#1f77d0", LIGHT_INK),
    Family("convolution, pooling", "#f2a02c", DARK_INK),
    Family("attention", "#cc7abd", DARK_INK),
    Family("normalization", "#55b075", DARK_INK),
    Family("activation", "#e8d765", DARK_INK),
    Family("elementwise", "#55c8f2", DARK_INK),
    Family("reduction, loss", "#c8431f", LIGHT_INK),
    Family("copy, create, index", "#8a4f3a", LIGHT_INK),
    Family("view", "#d6dfdb", DARK_INK),
    Family("other", "#b3a8b0", DARK_INK),
    Family("scope", "#6b7582", LIGHT_INK),
)
MATRIX, CONVOLUTION, ATTENTION, NORMALIZATION, ACTIVATION, ELEMENTWISE = range(6)
REDUCTION, MOVEMENT, VIEW, OTHER, SCOPES = range(6, 11)

#: The first pattern found in an op's bare name (`addmm`, `layer_norm`) decides.
_PATTERNS = tuple(
    (family, re.compile(pattern))
    for family, pattern in (
        (ATTENTION, r"attention|flash|multi_?head|mha"),
        (CONVOLUTION, r"conv|pool|im2col|col2im|upsample|interpolate|grid_sampl"),
        (MATRIX, r"^(sparse_|scaled_|int_|grouped_)?(addmm|mm|bmm|baddbmm|addbmm|addmv|mv|ger|addr)(_|$)|matmul|gemm"),
        (MATRIX, r"linear|einsum|(^|_)(v?dot|inner|outer|tensordot|kron)$|lstm|gru(_|$)|rnn|cdist|linalg_(?!.*norm)"),
        (NORMALIZATION, r"(batch|layer|group|instance|rms|local_response|weight)_?norm|^renorm"),
        (REDUCTION, r"loss|entropy|(^|_)(nll|kl_div|sum|nansum|mean|nanmean|prod|norm|var|std|amax|amin)(_|$)"),
        (REDUCTION, r"^(max|min|argmax|argmin|any|all|aminmax|median|mode|count_nonzero|topk|sort|argsort)(_|$)"),
        (REDUCTION, r"^(logsumexp|cum(sum|prod|max|min)|logcumsumexp|hist|bincount|unique)"),
        (ACTIVATION, r"relu|gelu|silu|sigmoid|softmax|tanh|softplus|(^|_)elu|selu|mish|dropout|threshold|hardswish"),
        (MOVEMENT, r"copy|^(to|clone|contiguous|empty|new_|zeros?|ones?|full|fill|rand|normal|uniform|arange)"),
        (MOVEMENT, r"^(cat|concat|stack|hstack|vstack|repeat|roll|flip|tril|triu|pad|constant_pad|resize|set_?$|eye)"),
        (MOVEMENT, r"index|gather|scatter|embedding|masked|take|one_hot|nonzero|memcpy|memset|lift_fresh|pin_memory"),
        (VIEW, r"view|reshape|transpose|permute|expand|squeeze|flatten|slice|select|split|chunk|narrow|strided|unbind"),
        (VIEW, r"^(t|numpy_t|mt|adjoint|movedim|alias|detach|unfold|diagonal|diag|item|local_scalar_dense)$"),
        (
            ELEMENTWISE,
            r"^(add|sub|rsub|mul|div|true_divide|floor_divide|remainder|fmod|pow|exp|log|sqrt|rsqrt|reciprocal|neg|abs|sgn|sign"
            r"|clamp|clip|where|lerp|eq|ne|lt|le|gt|ge|maximum|minimum|sin|cos|tan|erf|floor|ceil|round|trunc|square"
            r"|bitwise|logical|isnan|isinf|isfinite|addcmul|addcdiv|bernoulli|atan|asin|acos|nan_to_num|fused_?(adam|sgd))",
        ),
    )
)
_WRAPPER = re.compile(rf"^({ENGINE_PREFIX}|[\w.]+::)+")
_LIBRARY = re.compile(r"^(native|foreach|cudnn|miopen|mkldnn|mps|thnn|slow|efficientzero|amp)_")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def bare_name(name: str) -> str:
    """The bare name of an op: `addmm` for `aten::addmm_`, `autograd::…: AddmmBackward0` and `_foreach_addmm`."""
    name = _WRAPPER.sub("", name).partition(".")[0]
    name = _CAMEL.sub("_", name).lower()
    name = re.sub(r"_?backward\d*$", "", name).strip("_")
    return _LIBRARY.sub("", name).strip("_")


@lru_cache(maxsize=4096)
def family(name: str) -> int:
    """The family of an op or kernel by its name; `OTHER` where none fits."""
    bare = bare_name(name[:200])
    return next((number for number, pattern in _PATTERNS if pattern.search(bare)), OTHER)


@once_a_trace
def families(trace: Trace) -> Int8:
    """The family of every event: of an op by its name, scopes `SCOPES`, also those on a device, the rest `OTHER`.

    A kernel has the family of the op that launched it; by its own name where that op has none, or there is no op.
    """
    is_work = (trace.kind == OP) | (trace.on_device & ~trace.is_user_annotation)
    by_name = np.full(len(trace.names), OTHER, np.int8)
    for name in np.flatnonzero(np.bincount(trace.name[is_work], minlength=len(trace.names))).tolist():
        by_name[name] = family(trace.names[name])
    rest = np.where(trace.is_user_annotation, np.int8(SCOPES), np.int8(OTHER))
    codes = np.where(is_work, by_name[trace.name], rest) if len(by_name) else rest
    kernels = np.flatnonzero(trace.is_device_work & (kernel_owners(trace) >= 0))
    of_op = codes[kernel_owners(trace)[kernels]]
    codes[kernels] = np.where((of_op == OTHER) | (of_op == SCOPES), codes[kernels], of_op)
    return codes
