"""The parser of `mtprof`, whose errors are one line with a remedy."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any, NoReturn

from mtprof_nb.cell.options import nearest


class UsageError(Exception):
    """The arguments cannot mean anything here: no such file, or a value that does not fit."""


class Parser(argparse.ArgumentParser):
    """Parses all of its arguments. A mistake is one line on stderr, and exit status 2."""

    def __init__(self, prog: str | None = None, **options: Any) -> None:
        super().__init__(prog, allow_abbrev=False, **options)

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """The arguments, none of which may be unknown: a subcommand names its own mistakes."""
        given, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return given, unknown

    def error(self, message: str) -> NoReturn:
        """Exit with status 2 and one line on stderr."""
        hint = nearest(message, list(self._option_string_actions))
        self.exit(2, f"{self.prog}: {message} ({hint}{self.prog} -h shows how it is used)\n")
