"""Damaged files say at which byte, and give what can be read; mutated ones are an error or an answer, never a crash."""

import gzip
import json
import pickle
import random
import re
import sys
import zlib
from pathlib import Path
from typing import Any

import pytest
from chrome_files import HOST, facts, flow, named, span, written

from mtprof_nb.errors import LoadError
from mtprof_nb.reading import read
from mtprof_nb.reading.text import text_source
from mtprof_nb.reading.text.plain_json import PlainDecoder
from mtprof_nb.tables.averages import key_averages

THREE = [span(f"aten::op{number}", 10 * number, 5) for number in range(3)]


def _damaged(folder: Path, text: str | bytes) -> Path:
    path = folder / "damaged.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def _text() -> str:
    return json.dumps({"schemaVersion": 1, "traceEvents": THREE, "traceName": "x"})


def _names(path: Path, **options: Any) -> list[str]:
    return [name for (name,) in facts(read(path, **options))]


@pytest.mark.parametrize("spoiled", ['aten::"op"1', "aten::op1\\q", 'aten::op1", 5'])
def test_an_event_that_is_no_json_is_named_by_its_byte_and_can_be_skipped(tmp_path: Path, spoiled: str) -> None:
    text = _text().replace("aten::op1", spoiled)
    path = _damaged(tmp_path, text)

    with pytest.raises(LoadError, match=r"damaged at byte (\d+)") as caught:
        read(path)

    match = re.search(r"at byte ([\d,]+) .* (\d+) events? before it", str(caught.value))
    assert match is not None
    byte = int(match[1].replace(",", ""))
    assert text.index(spoiled) <= byte <= text.index(spoiled) + len(spoiled) + 2
    assert match[2] == "1"
    assert _names(path, partial=True) == ["aten::op0", "aten::op2"]
    assert read(path, partial=True).notes[0].startswith(f"The file is damaged in 1 place, first at byte {byte:,} ")


def test_the_byte_is_counted_in_bytes_not_in_characters(tmp_path: Path) -> None:
    text = _text().replace("aten::op0", "größe").replace('"aten::op1"', "oops")
    text = text.encode("unicode_escape").decode().encode().decode("unicode_escape")

    with pytest.raises(LoadError, match=rf"at byte {len(text[: text.index('oops')].encode()):,} "):
        read(_damaged(tmp_path, text))


def test_log_text_between_events_is_skipped(tmp_path: Path) -> None:
    second = '{"ph": "X", "cat": "cpu_op", "name": "aten::op1"'
    path = _damaged(tmp_path, _text().replace(second, f"\nW0101 warning: x {{1}}\n{second}"))

    with pytest.raises(LoadError, match="damaged at byte"):
        read(path)
    assert _names(path, partial=True) == ["aten::op0", "aten::op1", "aten::op2"]


@pytest.mark.parametrize("spoiled", ["aten::\top1", "aten::\x01op1", "a\nb"])
def test_control_characters_in_a_name_are_read_as_they_are(tmp_path: Path, spoiled: str) -> None:
    trace = read(_damaged(tmp_path, _text().replace("aten::op1", spoiled)))

    assert [name for (name,) in facts(trace)] == ["aten::op0", spoiled, "aten::op2"]
    assert trace.notes == ("Events that are not quite JSON, read as they are meant: 1.",)


def test_numbers_that_json_does_not_know_are_read(tmp_path: Path) -> None:
    text = (
        _text()
        .replace('"args": {}', '"args": {"memory bandwidth (GB/s)": inf}', 1)
        .replace('"args": {}', '"args": {"x": -nan}', 1)
    )

    trace = read(_damaged(tmp_path, text))

    assert len(trace) == 3
    assert trace.notes == ("Events that are not quite JSON, read as they are meant: 2.",)


def test_bytes_that_are_no_text_are_replaced(tmp_path: Path) -> None:
    path = _damaged(tmp_path, _text().encode().replace(b"aten::op1", b"aten::\xff"))

    assert _names(path) == ["aten::op0", "aten::\ufffd", "aten::op2"]


@pytest.mark.parametrize("length", range(20, len(_text()) - 2, 7))
def test_a_file_cut_anywhere_is_an_error_and_gives_whole_events(tmp_path: Path, length: int) -> None:
    path = _damaged(tmp_path, _text()[:length])

    with pytest.raises(LoadError):
        read(path)
    if length > _text().index("traceEvents") + 20:
        assert _names(path, partial=True) == [f"aten::op{number}" for number in range(_text()[:length].count("}}"))]


def test_a_bare_list_may_lack_its_end(tmp_path: Path) -> None:
    text = json.dumps(THREE)
    path = _damaged(tmp_path, text[:-1])

    assert _names(path) == ["aten::op0", "aten::op1", "aten::op2"]
    assert read(path).notes == ("The list of events has no end: the file may be cut.",)


@pytest.fixture(params=["isal", "zlib"])
def decompressor(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Decompress by isal, or by the standard library, as where isal is not installed."""
    if request.param == "isal":
        pytest.importorskip("isal")
    else:
        monkeypatch.setitem(sys.modules, "isal", None)
    return str(request.param)


@pytest.mark.usefixtures("decompressor")
def test_a_compressed_file_that_is_cut_gives_what_is_before(tmp_path: Path) -> None:
    events = [span(f"aten::op{number}", number, 1) for number in range(20_000)]
    whole = gzip.compress(json.dumps({"traceEvents": events}).encode())
    path = _damaged(tmp_path, whole[: len(whole) // 2])

    with pytest.raises(LoadError, match=r"compressed data end early, at byte"):
        read(path)
    assert 5_000 < len(read(path, partial=True)) < 15_000


@pytest.mark.usefixtures("decompressor")
def test_damaged_compressed_data_are_an_error(tmp_path: Path) -> None:
    whole = bytearray(gzip.compress(_text().encode()))
    whole[len(whole) // 2] ^= 0xFF

    with pytest.raises(LoadError):
        read(_damaged(tmp_path, bytes(whole)))


@pytest.mark.usefixtures("decompressor")
@pytest.mark.parametrize("length", [5, 12])
def test_compressed_data_that_end_before_any_text_are_not_called_empty(tmp_path: Path, length: int) -> None:
    with pytest.raises(LoadError, match=r"the file is no trace \(the compressed data end early, at byte"):
        read(_damaged(tmp_path, gzip.compress(_text().encode())[:length]))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "it is empty. Export it again"),
        ("   \n", "damaged at byte"),
        ("hello", "the file is no trace"),
        ("{}", "no list `traceEvents`: load"),
        ('{"a": [1, 2]}', "no list `traceEvents`, only 'a': load"),
        ('{"schema": "1.1.0", "pid": 7, "nodes": []}', "an execution trace, which has no times: load the Chrome trace"),
        ("version https://git-lfs.github.com/spec/v1\noid sha256:7", "Git LFS, not the file itself. Fetch"),
        ("<!DOCTYPE html>\n<html>", "a web page. Download the file itself"),
        ("BZh91AY&SY", "compressed with bzip2. Decompress it"),
        ("SQLite format 3\0\x10", "a database, as Nsight Systems"),
        ("\n\x80\x01\x08\0\x12", "perhaps a trace of Perfetto. Convert it"),
        ("trace.json" + "\0" * 247 + "ustar", "a tar archive. Unpack it"),
        ('{"traceEvents": 5}', "no list `traceEvents`"),
        ("5", "neither an object nor a list"),
        ("\x89PNG\r\n", "the file is no trace"),
        ("[1, 2]", "a list, but not of events"),
        ('[{"file": "a.json"}]', "a list, but not of events"),
    ],
)
def test_a_file_that_is_no_trace_is_an_error(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(LoadError, match=re.escape(says)):
        read(_damaged(tmp_path, text))


def test_a_snapshot_of_memory_is_named(tmp_path: Path) -> None:
    with pytest.raises(
        LoadError, match=re.escape("a Python pickle, as torch writes snapshots of device memory. Open a")
    ):
        read(_damaged(tmp_path, pickle.dumps({"segments": []})))


@pytest.mark.parametrize("is_compressed", [False, True])
@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be"])
def test_a_file_may_be_in_another_encoding_of_unicode(tmp_path: Path, encoding: str, is_compressed: bool) -> None:
    text = json.dumps({"traceEvents": [span("größer 𝔹", 1, 2), span("b", 5, 9)]}, ensure_ascii=False)
    content = text.encode(encoding)

    trace = read(_damaged(tmp_path, gzip.compress(content) if is_compressed else content))
    assert (facts(trace, "duration_ns"), trace.notes) == ([("größer 𝔹", 2_000), ("b", 9_000)], ())

    says = f"byte {len(text.encode()) - 4:,} of its text in UTF-8, which is {encoding.upper()} in the file"
    with pytest.raises(LoadError, match=says):
        read(_damaged(tmp_path, text[:-4].encode(encoding)))


def test_sizes_that_are_none_and_times_beyond_all_numbers_are_left_out(tmp_path: Path) -> None:
    events = [span("a", 1, 2, Input_Dims=[1, [2, [3]], [4]]), span("b", "1e999999999", 2), span("c", "-1e-9999999", 2)]

    trace = read(_damaged(tmp_path, json.dumps({"traceEvents": events})))

    assert facts(trace, "start_ns") == [("c", 0), ("a", 1_000)]
    assert trace.shapes[trace.shape[1]] == ((), ((), (3,)), (4,))
    assert [row.input_shapes for row in key_averages(trace, group_by_input_shape=True)]


def test_what_stands_around_the_events_may_be_anywhere(tmp_path: Path) -> None:
    inner = json.dumps(THREE)
    before = '{"note": "\\"traceEvents\\": [ {", "deep": {"traceEvents": [1]}, "traceEvents": '
    after = ', "deviceProperties": [{"id": 0}, {"id": 1}], "baseTimeNanoseconds": 1000}'

    trace = read(_damaged(tmp_path, "\ufeff  " + before + inner + after))

    assert trace.start_ns.tolist() == [1_000, 11_000, 21_000]
    assert json.loads(trace.metadata["deviceProperties"]) == [{"id": 0}, {"id": 1}]


def test_events_whose_args_look_like_events_are_not_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_source, "BLOCK", 300)
    tricky = {"name": "x", "list": [{"name": 1}, {"ph": "X"}], "text": '}, {"ph": "X", '}
    events = [span(f"aten::op{number}", number, 1) | {"args": tricky} for number in range(50)]

    trace = read(written(tmp_path, events))

    assert [name for (name,) in facts(trace)] == [f"aten::op{number}" for number in range(50)]


@pytest.mark.usefixtures("decompressor")
def test_a_file_that_expands_beyond_all_measure_is_refused(tmp_path: Path) -> None:
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    parts = [packer.compress(b'{"traceEvents":[')] + [packer.compress(b" " * 1_000_000) for _ in range(80)]
    path = _damaged(tmp_path, b"".join(parts) + packer.flush())

    with pytest.raises(LoadError, match="compressed bytes expand to more than"):
        read(path)


@pytest.mark.parametrize("nested", ["[", '{"a":'])
def test_a_file_nested_too_deeply_is_an_error(tmp_path: Path, nested: str) -> None:
    path = _damaged(tmp_path, '{"traceEvents": [{"ph": "X", "args": ' + nested * 200_000)

    with pytest.raises(LoadError, match="damaged at byte"):
        read(path)
    assert len(read(path, partial=True)) == 0


def _varied() -> bytes:
    engine = "autograd::engine::evaluate_function: MmBackward0"
    memory = {"Bytes": 64, "Addr": 1234, "Device Type": 0, "Device Id": -1, "Total Allocated": 64, "Total Reserved": 0}
    told = {"Collective name": "allreduce", "dtype": "Float", "In msg nelems": 5}
    inputs = {"Input Dims": [[2, 3], [3, 4]], "Input type": ["float", "float"], "Concrete Inputs": ["", "[1, 2]"]}
    events = [
        named("process_name", "python"),
        named("thread_name", "thread 1 (x)", tid=1),
        span("aten::mm", 10, 50, External_id=5, Sequence_number=7, Fwd_thread_id=0, **inputs),
        span("cudaLaunchKernel", 20, 5, "cuda_runtime", External_id=5, cbid=211, correlation=8),
        span("gemm", 40, 100, "kernel", tid=7, pid=0, correlation=8, External_id=5, grid=[64, 1], device=0, stream=7),
        span(engine, 150, 20, tid=2, Sequence_number=7, Fwd_thread_id=1),
        span("MmBackward0", 152, 16, tid=2, Sequence_number=7, Fwd_thread_id=1),
        flow("s", 1, 10, "fwdbwd"),
        flow("f", 1, 152, "fwdbwd", tid=2),
        span("main.py(3): f", 5, 300, "python_function", Python_id=1, Python_parent_id=None),
        span("nn.Module: Net_0", 6, 290, "python_function", Python_id=2, Python_parent_id=1, Python_module_id=0),
        {"ph": "i", "cat": "x", "name": "[memory]", "pid": HOST, "tid": 1, "ts": 30, "args": memory},
        {"ph": "B", "name": "outer", "pid": HOST, "tid": 3, "ts": 1},
        {"ph": "E", "pid": HOST, "tid": 3, "ts": 9},
        {"ph": "b", "name": "as", "cat": "user_annotation", "id": 4, "pid": HOST, "tid": 3, "ts": 1},
        {"ph": "e", "name": "as", "cat": "user_annotation", "id": 4, "pid": HOST, "tid": 3, "ts": 90},
        span("ProfilerStep#3", 8, 250, "user_annotation"),
        span("nccl", 500, 5, "kernel", tid=8, pid=0, correlation=9, device=0, stream=8, **told),
        {"ph": "C", "name": "c", "pid": 1, "ts": 3, "args": {"x": 1}},
    ]
    return json.dumps({"baseTimeNanoseconds": 10**18, "distributedInfo": {"rank": 1}, "traceEvents": events}).encode()


_OTHER_VALUES = (
    *(b"null", b"1e999", b"NaN", b"-5", b'"x"', b"[]", b"{}", b"9" * 23, b"true", b"0.1", b"[[[[]]]]", b'"\\ud800"'),
    *(b"inf", b"", b"9223372036854775807", b"-9223372036854775808", b'"7"', b"1.5e15", b'{"a": [1]}'),
)


def _mutated(text: bytes, values: list[tuple[int, int]], chance: random.Random) -> bytes:
    """One of: some bytes flipped, a cut tail, a piece removed or added, some values of other types."""
    found = bytearray(text)
    place = chance.randrange(len(found))
    way = chance.randrange(6)
    if way == 0:
        for _ in range(chance.randint(1, 4)):
            found[chance.randrange(len(found))] = chance.randrange(256)
    elif way == 1:
        del found[place:]
    elif way == 2:
        del found[place : place + chance.randint(1, 200)]
    elif way == 3:
        found[place:place] = chance.choice([b"\nWARNING: log text\n", bytes(chance.randbytes(chance.randint(1, 30)))])
    else:
        for first, last in sorted(chance.sample(values, chance.randint(1, 5)), reverse=True):
            found[first:last] = chance.choice(_OTHER_VALUES)
    return bytes(found)


@pytest.mark.parametrize("part", range(4))
def test_a_mutated_file_is_an_error_or_an_answer(tmp_path: Path, part: int) -> None:
    chance = random.Random(part)
    text = _varied()
    values = [match.span() for match in re.finditer(rb'(?<=: )("[^"]*"|-?\d+(\.\d+)?|null|\[[^\[\]{}]*\])', text)]
    answers = 0
    for number in range(500):
        path = _damaged(tmp_path, _mutated(text, values, chance))
        decoder = PlainDecoder() if number % 10 == 0 else None
        try:
            trace = read(path, partial=number % 3 > 0, decoder=decoder)
        except LoadError:
            continue
        answers += 1
        if number % 20 == 0:
            key_averages(trace).table()
    assert answers > 200
