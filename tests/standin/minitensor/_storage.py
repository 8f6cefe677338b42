"""Storage of the numbers of a tensor."""


class _CPUUntypedStorage:
    def __init__(self, array, device=None):
        self.array = array
        self.device = device
