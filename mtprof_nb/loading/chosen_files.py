"""The files that a path, a list, a pattern or a folder stands for."""

from __future__ import annotations

import glob
import gzip
import json
import os
import re
import zlib
from collections.abc import Iterable
from pathlib import Path

from mtprof_nb.errors import LoadError

SUFFIXES = (".mtp", ".json", ".json.gz")
#: Ascend's folders have other JSON files, and parts of the same trace, beside this one.
_ASCEND = "trace_view.json"
#: One of these is in the beginning of every Chrome trace, and of hardly another JSON file.
_SIGNS = ('"traceEvents"', '"schemaVersion"', '"ph"')
_BEGINNING = 1 << 16

PathLike = str | os.PathLike[str]


def chosen_files(path: PathLike | Iterable[PathLike]) -> list[Path]:
    """The files that `path` stands for, each once. `LoadError` if there are none."""
    given = [path] if isinstance(path, str | os.PathLike) else list(path)
    if not given or "" in given:
        msg = f"cannot load an empty {'name' if given else 'list'}: name at least one file"
        raise LoadError(msg)
    by_real_path = {os.path.realpath(file): file for one in given for file in _files(one)}
    return list(by_real_path.values())


def is_own(file: Path) -> bool:
    """Whether a file is one that `save()` writes: a zip file."""
    try:
        with file.open("rb") as opened:
            return opened.read(2) == b"PK"
    except OSError as error:
        msg = f"cannot load {str(file)!r}: {error.strerror or error}"
        raise LoadError(msg) from error


def _files(given: PathLike) -> list[Path]:
    path = Path(os.fsdecode(given)).expanduser()
    try:
        if path.is_dir():
            return _in_folder(path)
        if os.path.lexists(path):
            _check_regular(path)
            return [path]
    except ValueError as error:
        msg = f"cannot load {os.fspath(given)!r}: {error}"
        raise LoadError(msg) from error
    if not glob.has_magic(str(path)):
        msg = f"there is no file {str(path)!r}: check its name; the current folder is {str(Path.cwd())!r}"
        raise LoadError(msg)
    matches = [Path(match) for match in glob.glob(str(path), recursive=True)]  # noqa: PTH207 - of any root
    for match in matches:
        if not match.is_dir():
            _check_regular(match)
    if not matches:
        msg = f"no file matches {str(path)!r}: check the pattern; the current folder is {str(Path.cwd())!r}"
        raise LoadError(msg)
    return [file for match in _in_order(matches) for file in (_in_folder(match) if match.is_dir() else [match])]


def _check_regular(path: Path) -> None:
    """Raise `LoadError` for a device, which may have no end, and for a pipe, which may wait for a writer."""
    if path.exists() and not path.is_file():
        msg = f"cannot load {str(path)!r}: it is no regular file: copy its content into one"
        raise LoadError(msg)


def _in_folder(folder: Path) -> list[Path]:
    """The recordings in a folder and in those inside it."""
    candidates = [file for file in folder.rglob("*") if _may_be_recording(file.relative_to(folder)) and file.is_file()]
    views = [file for file in candidates if file.name.removesuffix(".gz") == _ASCEND]
    recordings = _in_order(views or [file for file in candidates if is_own(file) or _is_chrome_trace(file)])
    if not recordings:
        msg = f"the folder {str(folder)!r} has no recording: name a folder with files in .mtp, .json or .json.gz"
        raise LoadError(msg)
    return recordings


def _may_be_recording(path: Path) -> bool:
    return path.name.endswith(SUFFIXES) and not any(part.startswith(".") for part in path.parts)


def _is_chrome_trace(file: Path) -> bool:
    try:
        with gzip.open(file) if file.suffix == ".gz" else file.open("rb") as opened:
            beginning = opened.read(_BEGINNING)
    except (OSError, EOFError, zlib.error):
        # Reading it raises the error.
        return True
    text = beginning.decode(json.detect_encoding(beginning), "replace")
    return any(sign in text for sign in _SIGNS)


def _in_order(files: Iterable[Path]) -> list[Path]:
    """By name, with `rank9` before `rank10`."""
    return sorted(files, key=lambda file: [(len(part), part) for part in re.findall(r"\d+|\D+", str(file))])
