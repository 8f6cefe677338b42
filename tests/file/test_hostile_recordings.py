"""Files that nobody saved: damaged, from a later version, or made to do harm. `LoadError` says what and where."""

from __future__ import annotations

import json
import random
import struct
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hostile_files import MANIFEST, Members, array_bytes, file_bytes, members, mutations, with_manifest, zipped
from synthetic import training_run
from test_saved_recordings import full_trace

import mtprof_nb as mtp
from mtprof_nb.errors import LoadError
from mtprof_nb.model.checks import problem_of
from mtprof_nb.recording import Recording

Change = Callable[[Members], Members]


@pytest.fixture(scope="module")
def whole() -> bytes:
    return file_bytes(full_trace())


def refusal(content: bytes, folder: Path) -> str:
    """Reason why a file is not loaded, without its name."""
    path = folder / "run.mtp"
    path.write_bytes(content)
    with pytest.raises(LoadError) as error:
        mtp.load(path)
    said = str(error.value)
    assert said.startswith(f"cannot load {str(path)!r}: ")
    return said.removeprefix(f"cannot load {str(path)!r}: ")


def said(change: Callable[[Any], Any]) -> Change:
    """A change of the manifest."""
    return lambda parts: with_manifest(parts, change)


def field(name: str, value: Any) -> Change:
    return said(lambda manifest: manifest["trace"]["fields"].update({name: value}))


def rows(value: Any) -> Change:
    return said(lambda manifest: manifest["trace"].update(rows=value))


def column(name: str, values: Any) -> Change:
    return lambda parts: {**parts, f"{name}.npy": array_bytes(np.array(values))}


def member(name: str, content: bytes) -> Change:
    return lambda parts: {**parts, name: content}


def without(name: str) -> Change:
    return lambda parts: {key: content for key, content in parts.items() if key != name}


def set_length(count: int) -> Change:
    return said(lambda manifest: manifest["trace"]["rows"].__setitem__(0, count))


DEEP = b"[" * 100_000 + b"]" * 100_000
REFUSED: dict[str, tuple[Change, str]] = {
    "a later version": (
        said(lambda manifest: manifest.update(version=2)),
        "its format has version 2, and 1 is the latest known here; it was saved by a later version of mtprof_nb",
    ),
    "no version": (said(lambda manifest: manifest.pop("version")), "its version is missing"),
    "a version in words": (said(lambda manifest: manifest.update(version="1")), "its version is missing"),
    "another zip file": (lambda _: {"a.txt": b"hello"}, "it is a zip file without a recording"),
    "another format": (said(lambda manifest: manifest.update(format="x")), "it is a zip file of another kind"),
    "a list": (member(MANIFEST, b"[]"), "it is a zip file of another kind"),
    "no JSON": (member(MANIFEST, b"{"), "recording.json is no JSON (Expecting property name"),
    "deep JSON": (member(MANIFEST, DEEP), "recording.json is no JSON (maximum recursion depth"),
    "no text": (member(MANIFEST, b"\xff\xfe"), "recording.json is no JSON ('utf-8' codec"),
    "a long number": (member(MANIFEST, b"1" * 5_000), "recording.json is no JSON (Exceeds the limit"),
    "no trace": (said(lambda manifest: manifest.pop("trace")), "trace: its description is missing"),
    "no rows": (rows(None), "trace: None in place of a list"),
    "rows of text": (rows([3, "name"]), "trace: at 1: 'name' in place of a list"),
    "rows without end": (rows([1 << 62, []]), "trace: column 'name' is missing"),
    "billions of rows": (set_length((1 << 31) - 1), "trace: its "),
    "more rows than numbers": (set_length(1 << 40), "trace: it claims to have 1099511627776 rows"),
    "fewer rows than none": (set_length(-1), "trace: it claims to have -1 rows"),
    "rows that are missing": (set_length(4), "trace: column 'name': it holds 3 numbers of 1 bytes"),
    "a new column": (
        member("later.npy", array_bytes([1, 2, 3])),
        "its member 'later.npy' is unknown here; it was saved",
    ),
    "a first value without end": (
        said(lambda manifest: manifest["trace"]["rows"][1][0].__setitem__(1, 1 << 63)),
        "trace: at 1: at 0: at 1: 9223372036854775808 is not between",
    ),
    "a column of a later version": (
        said(lambda manifest: manifest["trace"]["rows"][1].append(["later", None])),
        "trace: 'later' is unknown here; it was saved by a later version of mtprof_nb: upgrade this one",
    ),
    "a field of a later version": (field("later", 1), "trace: 'later' is unknown here; it was saved by a later"),
    "a path that leads away": (member("../../x.npy", b"x"), "its member '../../x.npy' is unknown here"),
    "an absolute path": (member("/etc/passwd", b"x"), "its member '/etc/passwd' is unknown here"),
    "a missing member": (without("kind.npy"), "trace: the member kind.npy is missing"),
    "a missing table": (
        said(lambda manifest: manifest["trace"]["fields"].pop("names")),
        "trace: 'names' is missing",
    ),
    "fractions": (column("kind", [0.0, 0.0, 4.0]), "trace: column 'kind': it is no column of integers"),
    "truths": (column("is_async", [True, False, False]), "trace: column 'is_async': it is no column of integers"),
    "texts": (column("name", ["a", "b", "c"]), "trace: column 'name': it is no column of integers"),
    "objects": (
        member("name.npy", array_bytes(np.array([0, 1, 2])).replace(b"'<i8'", b"'|O' ")),
        "trace: column 'name': it is no column of integers",
    ),
    "two dimensions": (column("kind", [[0], [0], [4]]), "trace: column 'kind': it is no column of integers"),
    "the order of Fortran": (
        member("kind.npy", array_bytes(np.array([0, 0, 4], np.int8)).replace(b"False", b"True ")),
        "trace: column 'kind': it is no column of integers",
    ),
    "the other end first": (column("kind", np.array([0, 0, 4], ">i2")), "trace: column 'kind': it is no column"),
    "a header without end": (
        member("kind.npy", b"\x93NUMPY\x01\x00v\x00{" + b" " * 200),
        "trace: column 'kind': it is",
    ),
    "too few numbers": (column("kind", [0, 0]), "trace: column 'kind': it holds 2 numbers"),
    "too many numbers": (
        column("kind", np.zeros(1_000_000, np.int8)),
        "trace: the member kind.npy has 1,000,128 bytes, not 280 or less",
    ),
    "a cut column": (
        lambda parts: {**parts, "kind.npy": parts["kind.npy"][:-1]},
        "trace: column 'kind': it holds 3 numbers of 1 bytes in 130 bytes, not 3",
    ),
    "a number too large": (
        column("device", [0, 0, 300]),
        "trace: column 'device': a number is out of the range of int8",
    ),
    "neither true nor false": (column("is_async", [0, 1, 2]), "trace: column 'is_async': a number is out of the range"),
    "a name out of range": (column("name", [0, 1, 3]), "column 'name', row 2: 3 is not between 0 and 2"),
    "a launch out of range": (column("launch", [0, 1, 3]), "column 'launch', row 2: 3 is not between -1 and 2"),
    "a stack out of range": (column("stack", [2, 0, 0]), "column 'stack', row 0: 2 is not between -1 and 1"),
    "a circle of stacks": (column("stacks/parent", [1, 0]), "stacks: column 'parent', row 0: 1 is not an earlier row"),
    "a frame out of range": (column("stacks/frame", [0, 2]), "stacks: column 'frame', row 1: 2 is not between 0 and 1"),
    "an allocation out of range": (column("allocations/event", [3]), "allocations: column 'event', row 0: 3 is not"),
    "a process out of range": (
        field("tracks", [[1, "a", "thread", 1], [2], [3]]),
        "tracks, entry 0: 1 is not a position in processes",
    ),
    "a device without an index": (
        field("tracks", [[1, "a", "stream", 0, "CUDA"], [2], [3]]),
        "trace: 'tracks' at 0: at 4: 'CUDA' (it has no index behind a colon)",
    ),
    "no processes": (field("processes", []), "tracks, entry 0: 0 is not a position in processes"),
    "events in disorder": (column("start_ns", [9, 7, 2]), "events are not ordered by start"),
    "a name that is a number": (field("names", ["a", "b", 3]), "trace: 'names' at 2: 3 in place of text"),
    "a text in place of names": (field("names", "abc"), "trace: 'names' 'abc' in place of a list"),
    "a label that is nothing": (field("label", None), "trace: 'label' None in place of text"),
    "a time that is a fraction": (field("began_ns", 1.5), "trace: 'began_ns' 1.5 in place of an integer"),
    "a time that is no number": (field("began_ns", float("nan")), "trace: 'began_ns' nan in place of an integer"),
    "a time that is true": (field("began_ns", True), "trace: 'began_ns' True in place of an integer"),
    "a time without end": (field("ended_ns", 1 << 62), "trace: 'ended_ns' 4611686018427387904 is not between"),
    "a window of one moment": (field("windows", [[1]]), "trace: 'windows' at 0: 1 values in place of 2"),
    "flags that are a list": (field("recorded", []), "trace: 'recorded' a list in place of"),
    "a flag of a later version": (field("recorded", {"later": True}), "trace: 'recorded' an object in place of"),
    "shapes of text": (field("shapes", [[["a"]]]), "trace: 'shapes' at 0: at 0: at 0: 'a' in place of a list"),
    "shapes too deep": (field("shapes", [[[[[1]]]]]), "trace: 'shapes' at 0: at 0: at 0: at 0: a list in place of"),
    "values that are no JSON": (field("value_texts", ["{"]), "trace: 'value_texts' at 0: '{' (Expecting"),
    "values of another kind": (
        field("value_texts", ['["ab",[]]']),
        "trace: 'value_texts' at 0: '[\"ab\",[]]' (it does",
    ),
    "values that are an object": (field("value_texts", ['{"a": 1}']), "trace: 'value_texts' at 0: "),
    "metadata that is no JSON": (field("extras", ["[1]"]), "trace: 'extras' at 0: '[1]' (it is no object of texts)"),
    "stacks that are a list": (field("stacks", []), "trace: stacks: its description is missing"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_file_that_nobody_saved_is_refused_with_the_place(case: str, whole: bytes, tmp_path: Path):
    change, expected = REFUSED[case]

    assert refusal(zipped(change(members(whole))), tmp_path).startswith(expected)


def test_a_file_that_is_put_together_again_loads(whole: bytes, tmp_path: Path):
    (tmp_path / "run.mtp").write_bytes(zipped(members(whole)))

    assert len(mtp.load(tmp_path / "run.mtp").trace) == 3


def test_a_member_that_is_there_twice_is_refused(whole: bytes, tmp_path: Path):
    path = tmp_path / "twice.zip"
    path.write_bytes(whole)
    with zipfile.ZipFile(path, "a") as archive, pytest.warns(UserWarning, match="Duplicate name"):
        archive.writestr("kind.npy", array_bytes(np.zeros(3, np.int8)))

    assert refusal(path.read_bytes(), tmp_path).startswith("the member 'kind.npy' is there twice")


def test_a_compression_that_needs_memory_of_its_own_is_refused(whole: bytes, tmp_path: Path):
    for method in (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        reason = refusal(zipped(members(whole), method), tmp_path)
        assert reason.startswith("the member recording.json is encrypted or compressed in an unknown way")


def _central(content: bytes, name: str) -> int:
    """Where the entry of a member begins in the list at the end of a zip file."""
    return content.rindex(name.encode()) - 46


def _changed(content: bytes, at: int, form: str, value: int) -> bytes:
    return content[:at] + struct.pack(form, value) + content[at + struct.calcsize(form) :]


def test_an_encrypted_member_is_refused(whole: bytes, tmp_path: Path):
    locked = _changed(whole, _central(whole, "kind.npy") + 8, "<H", 1)

    assert refusal(locked, tmp_path).startswith("trace: the member kind.npy is encrypted")


@pytest.mark.parametrize("size", [0, 100, 132, 200])
def test_a_member_of_another_size_than_it_declares_is_refused(size: int, whole: bytes, tmp_path: Path):
    lying = _changed(whole, _central(whole, "kind.npy") + 24, "<I", size)

    assert refusal(lying, tmp_path).startswith("trace: ")


BOMBS: dict[str, Callable[[bytes], bytes]] = {
    "rows that are nowhere": lambda whole: zipped(set_length(100_000_000)(members(whole))),
    "columns of nothing but zeros": lambda whole: zipped(
        {**set_length(100_000_000)(members(whole)), "name.npy": array_bytes(np.zeros(100_000_000, np.int8))}
    ),
    "JSON of nothing but spaces": lambda whole: zipped({**members(whole), MANIFEST: b" " * 100_000_000}),
    "a large member that says it is small": lambda whole: _understated(
        zipped({**members(whole), MANIFEST: b" " * 100_000_000}), MANIFEST
    ),
}


def _understated(content: bytes, name: str) -> bytes:
    return _changed(content, _central(content, name) + 24, "<I", 1_000)


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_small_file_fills_little_memory(bomb: str, whole: bytes, tmp_path: Path):
    content = BOMBS[bomb](whole)
    tracemalloc.start()
    try:
        refusal(content, tmp_path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert (len(content) < 1_000_000, peak < 20_000_000) == (True, True)


def test_loading_takes_little_more_memory_than_the_recording(tmp_path):
    trace = training_run(200_000)
    Recording(trace).save(tmp_path / "run.mtp")
    tracemalloc.start()
    try:
        loaded = mtp.load(tmp_path / "run.mtp")
        held, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert held < 1.1 * trace.nbytes + 1_000_000
    assert peak < 1.6 * loaded.trace.nbytes + 1_000_000


def test_a_file_that_is_cut_anywhere_is_refused(whole: bytes, tmp_path: Path):
    lengths = {0, 1, 2, 3, *range(4, len(whole), 211), len(whole) - 1}
    reasons = {refusal(whole[:length], tmp_path).partition("(")[0] for length in lengths if length >= 2}

    assert reasons == {"it is cut short, or no zip file "}


@pytest.mark.parametrize("seed", range(4))
def test_a_changed_file_is_refused_or_a_recording_that_works(seed: int, tmp_path: Path):
    lot = random.Random(seed)
    content = file_bytes(full_trace() if seed % 2 else training_run(150))
    path, counts = tmp_path / "run.mtp", {"refused": 0, "loaded": 0}
    for changed in mutations(content, lot, 600):
        path.write_bytes(changed)
        try:
            recording = mtp.load(path)
        except LoadError:
            counts["refused"] += 1
            continue
        counts["loaded"] += 1
        assert problem_of(recording.trace) == ""
        if counts["loaded"] % 4 == 0:
            use(recording, tmp_path)

    assert min(counts.values()) > 50


def use(recording: Recording, folder: Path) -> None:
    """Ask a recording for its results."""
    recording.summary()
    recording.key_averages(group_by_input_shape=True, group_by_stack_n=3).table()
    recording.lines().table()
    for one in recording.events()[:20]:
        json.dumps(dict(one))
    recording.export_chrome_trace(folder / "trace.json")
    recording.save(folder / "again.mtp")
