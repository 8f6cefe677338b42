"""Files that are no Chrome traces, known by how they begin: what each one is, and what to do with it."""

from __future__ import annotations

from collections.abc import Iterable

#: Enough for every beginning that is known.
LENGTH = 512
_DECOMPRESS = "decompress it with `{}`, and load the result"
_BEGINNINGS = (
    (
        b"SQLite format 3\0",
        "a database, as Nsight Systems and Ascend's profiler write",
        "export a Chrome trace from it",
    ),
    (b"\x1f\x8b", "compressed twice with gzip", _DECOMPRESS.format("gzip -d")),
    (b"\x28\xb5\x2f\xfd", "compressed with Zstandard", _DECOMPRESS.format("zstd -d")),
    (b"\xfd7zXZ\0", "compressed with xz", _DECOMPRESS.format("xz -d")),
    (b"BZh", "compressed with bzip2", _DECOMPRESS.format("bzip2 -d")),
    (b"version https://git-lfs", "a pointer of Git LFS, not the file itself", "fetch the file with `git lfs pull`"),
    *((begin, "a web page", "download the file itself") for begin in (b"<!DOCTYPE html", b"<!doctype html", b"<html")),
)
_PICKLE, _PROTOCOLS = 0x80, range(2, 6)
_TAR, _TAR_PLACE = b"ustar", 257
#: Perfetto's packets begin so, and a line of text may.
_PACKET = b"\n"


def other_file(beginning: bytes) -> tuple[str, str] | None:
    """The kind of a file that begins so, and the remedy; None for one that is not known."""
    if not beginning:
        return "empty", "export it again"
    for begin, what, remedy in _BEGINNINGS:
        if beginning.startswith(begin):
            return what, remedy
    if len(beginning) > 1 and beginning[0] == _PICKLE and beginning[1] in _PROTOCOLS:
        what = "a Python pickle, as torch writes snapshots of device memory"
        return what, "open a snapshot at https://pytorch.org/memory_viz, and load a trace that a profiler exported"
    if beginning[_TAR_PLACE:].startswith(_TAR):
        return "a tar archive", "unpack it, and load the traces in it"
    if beginning.startswith(_PACKET) and b"\0" in beginning:
        return "binary, perhaps a trace of Perfetto", "convert it with `traceconv json`, and load the result"
    return None


def other_json(members: Iterable[str]) -> tuple[str, str]:
    """The kind of a JSON file without events by its members, and the remedy."""
    names = list(members)
    if {"schema", "nodes"} <= set(names):
        return "an execution trace, which has no times", "load the Chrome trace of the same run"
    listed = ", ".join(repr(name[:40]) for name in names[:4]) + (", …" if len(names) > 4 else "")
    what = f"JSON, but has no list `traceEvents`{f', only {listed}' if names else ''}"
    return what, "load a trace that a profiler exported"
