"""Rules about gradients and the backward pass."""
