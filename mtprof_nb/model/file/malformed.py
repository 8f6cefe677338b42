"""The problem of a file that cannot be read, before it is known which file it is."""

from typing import NoReturn


class MalformedError(Exception):
    """A part of a file is not as it was written: what is wrong, and where. `remedy` is what to do."""

    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__(problem)
        self.remedy = remedy


def refuse(problem: str, remedy: str = "copy the file again, or save the recording again") -> NoReturn:
    """Raise `MalformedError`."""
    raise MalformedError(problem, remedy) from None
