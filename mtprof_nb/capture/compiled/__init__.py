"""Opens regions of `torch.compile`: the user's lines of their calls, and times of kernels."""
