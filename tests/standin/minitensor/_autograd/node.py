"""One step of the backward pass."""


class Node:
    def __init__(self, backward, inputs):
        self.backward = backward
        self.inputs = inputs
