"""Hook `kineto`: PyTorch's own recorder, and how its results become a `Trace`."""
