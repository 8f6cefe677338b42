"""A runtime of some hundred lines with the enter and exit points of a real one, for tests that run everywhere."""

from . import nn, npu, optim, profiler
from ._dispatch.dispatcher import dispatch, pipeline
from ._tensor import Tensor, ones, tensor

__all__ = ["Tensor", "dispatch", "nn", "npu", "ones", "optim", "pipeline", "profiler", "tensor"]
