"""Runs the nodes of a graph, a chain in this small world, from the result back."""

from collections import deque

from .._tensor import ones


class _GraphTask:
    def __init__(self):
        self.ready = deque()

    def run(self):
        while self.ready:
            node = self.ready.popleft()
            for tensor, grad in zip(node.inputs, node.backward(), strict=True):
                if grad is None:
                    continue
                tensor.grad = grad
                if tensor.grad_fn is not None:
                    self.ready.append(tensor.grad_fn)


def _run_backward(outputs):
    task = _GraphTask()
    task.ready.extend(output.grad_fn for output in outputs)
    task.run()


def backward(output):
    output.grad = ones(*output.shape, device=output.device)
    _run_backward((output,))
