"""Hook `dispatch`: a `TorchDispatchMode` that runs below autograd."""
