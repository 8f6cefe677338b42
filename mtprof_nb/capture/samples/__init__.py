"""Samples of Python stacks: when they are taken, what a stack is, which threads they keep."""
