"""A program that is run as `python script.py` or `python -m module` would run it."""

from __future__ import annotations

import ast
import builtins
import importlib.util
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

from mtprof_nb.cli.arguments import UsageError

_MAIN = "__main__"


@dataclass
class Script:
    """A file or a module that runs as `__main__`: `become_main`, read its `tree`, `execute` it."""

    #: The path of a file, or the name of a module.
    named: str
    arguments: Sequence[str] = ()
    is_module: bool = False
    main: ModuleType = field(default_factory=lambda: ModuleType(_MAIN))

    @property
    def name(self) -> str:
        """A title for its profile."""
        return self.named if self.is_module else Path(self.named).name

    def become_main(self) -> None:
        """Be the main module of this process, and let imports look first where they would look in its own."""
        sys.modules[_MAIN] = self.main
        sys.argv = [self.named, *self.arguments]
        if not sys.flags.safe_path:
            folder = Path.cwd() if self.is_module else Path(self.named).resolve().parent
            sys.path[0] = str(folder)

    def tree(self) -> ast.Module:
        """The syntax tree. `UsageError` if there is no such program; errors of the program's own pass."""
        source, attributes = self._read_module() if self.is_module else self._read_file()
        vars(self.main).update(attributes)
        if self.is_module:
            sys.argv[0] = attributes["__file__"]
        return ast.parse(source, attributes["__file__"])

    def execute(self, tree: ast.Module) -> None:
        """Run the tree, perhaps with marks in it, in the main module."""
        names = vars(self.main)
        exec(compile(tree, names["__file__"], "exec", dont_inherit=True), names)  # noqa: S102

    def _read_file(self) -> tuple[bytes, dict[str, Any]]:
        path = os.path.abspath(self.named)  # noqa: PTH100 - as Python names it: links are not followed
        try:
            source = Path(path).read_bytes()
        except OSError as error:
            msg = f"cannot open {self.named!r} ({error.strerror}): name a Python file, or a module after -m"
            raise UsageError(msg) from None
        return source, _attributes(path, SourceFileLoader(_MAIN, path), None)

    def _read_module(self) -> tuple[str, dict[str, Any]]:
        spec = _spec_of(self.named)
        get_source = getattr(spec.loader, "get_source", None)
        source = get_source(spec.name) if get_source is not None else None
        if source is None or spec.origin is None:
            msg = f"module {self.named!r} has no Python source: name one that has"
            raise UsageError(msg)
        return source, _attributes(spec.origin, spec.loader, spec)


def _attributes(file: str, loader: Any, spec: ModuleSpec | None) -> dict[str, Any]:
    """The names that a main module has before its code runs."""
    package, cached = (spec.parent, spec.cached) if spec is not None else (None, None)
    names = {"__file__": file, "__loader__": loader, "__spec__": spec, "__package__": package}
    return names | {"__cached__": cached, "__annotations__": {}, "__builtins__": builtins}


def _spec_of(name: str) -> ModuleSpec:
    """The spec of a module; of a package, that of its `__main__`."""
    spec = _find_spec(name)
    if spec is None:
        msg = f"no module named {name!r}: name one that can be imported from here"
        raise UsageError(msg)
    if spec.submodule_search_locations is None:
        return spec
    main = _find_spec(f"{name}.{_MAIN}")
    if main is None:
        msg = f"{name!r} is a package without a module {_MAIN}: name a module in it"
        raise UsageError(msg)
    return main


def _find_spec(name: str) -> ModuleSpec | None:
    """The spec of a module, whose packages are imported; None if it, or one of these, does not exist."""
    try:
        return importlib.util.find_spec(name)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{name}.".startswith(f"{error.name}."):
            return None
        raise  # a package imports something that is missing
    except ValueError:
        return None
