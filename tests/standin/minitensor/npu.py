"""A device that is always there, and counts what it was told to hold."""

held = 0


def is_available():
    return True


def memory_allocated(device=None):
    return held
