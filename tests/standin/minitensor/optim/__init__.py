"""Optimizers."""

from .._dispatch.dispatcher import dispatch


class Optimizer:
    def __init__(self, params):
        self.params = list(params)

    def step(self):
        raise NotImplementedError


class SGD(Optimizer):
    def step(self):
        for param in self.params:
            dispatch("scale", param.device, param, 0.9)
