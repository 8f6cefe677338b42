"""`load` of one file or many: which files, which processes, and what is said meanwhile."""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from traces import differences, event, make_trace

import mtprof_nb as mtp
from mtprof_nb.errors import LoadError
from mtprof_nb.loading.chosen_files import chosen_files
from mtprof_nb.loading.processes_of_files import joined
from mtprof_nb.model.trace import Trace
from mtprof_nb.reading import rank_in_name
from mtprof_nb.results.loaded_recording import Recording
from mtprof_nb.views import progress_bar as progress_bars
from mtprof_nb.views.progress_bar import progress_bar

TRACE = json.dumps({"schemaVersion": 1, "traceEvents": []})


def save(path: Path, *, at: int = 0, **scalars: Any) -> Trace:
    trace = make_trace([event(f"op {path.stem}", at + 1, at + 9)], began_ns=at, ended_ns=at + 10, **scalars)
    path.parent.mkdir(parents=True, exist_ok=True)
    Recording(trace).save(path)
    return trace


def write(path: Path, text: str = TRACE) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())


def names(trace: Trace) -> list[str]:
    return [trace.names[name] for name in trace.name]


def relative(files: list[Path], folder: Path) -> list[str]:
    return [file.relative_to(folder).as_posix() for file in files]


def test_a_path_as_text_or_as_path_is_one_file(tmp_path, monkeypatch):
    trace = save(tmp_path / "run.mtp")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))

    for path in ("run.mtp", tmp_path / "run.mtp", os.fspath(tmp_path / "run.mtp"), "~/run.mtp", ["run.mtp"]):
        assert differences(mtp.load(path).trace, trace) == []


def test_a_name_with_brackets_is_a_file_if_there_is_one(tmp_path):
    save(tmp_path / "run[1].mtp")

    assert len(mtp.load(tmp_path / "run[1].mtp").trace) == 1


def test_a_pattern_is_all_files_that_match_in_the_order_of_their_numbers(tmp_path):
    for number in (10, 9, 1):
        write(tmp_path / f"rank{number}.json")
    write(tmp_path / "deep" / "rank2.json")

    assert relative(chosen_files(tmp_path / "*.json"), tmp_path) == ["rank1.json", "rank9.json", "rank10.json"]
    assert len(chosen_files(tmp_path / "**/*.json")) == 4


def test_a_folder_is_its_recordings_and_those_of_folders_inside(tmp_path):
    write(tmp_path / "b.json.gz")
    write(tmp_path / "a" / "c.json", "[" + '{"ph": "X"}' + "]")
    write(tmp_path / "config.json", '{"lr": 0.1}')
    write(tmp_path / "notes.txt")
    write(tmp_path / ".ipynb_checkpoints" / "b.json")

    assert relative(chosen_files(tmp_path), tmp_path) == ["a/c.json", "b.json.gz"]


def test_a_folder_of_ascend_is_its_views_alone(tmp_path):
    for rank in (0, 1):
        write(tmp_path / f"rank{rank}" / "ASCEND_PROFILER_OUTPUT" / "trace_view.json")
        write(tmp_path / f"rank{rank}" / "PROF_1" / "msprof_1.json")

    assert [file.parts[-3] for file in chosen_files(tmp_path)] == ["rank0", "rank1"]


def test_a_damaged_file_of_a_folder_is_not_passed_over(tmp_path):
    (tmp_path / "a.json.gz").write_bytes(gzip.compress(TRACE.encode())[:-20])

    assert relative(chosen_files(tmp_path), tmp_path) == ["a.json.gz"]


def test_a_file_that_is_named_twice_is_loaded_once(tmp_path):
    save(tmp_path / "run.mtp")
    (tmp_path / "link.mtp").symlink_to(tmp_path / "run.mtp")

    assert len(mtp.load([tmp_path / "run.mtp", tmp_path / "*.mtp", tmp_path]).trace) == 1


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("missing.mtp", "there is no file '.*missing.mtp': check its name; the current folder is"),
        ("*.mtp", r"no file matches '.*\*.mtp': check the pattern; the current folder is"),
        ("", "the folder '.*' has no recording: name a folder with files in .mtp, .json or .json.gz"),
        ("a\0b", "cannot load|there is no file"),
    ],
)
def test_a_path_without_files_is_told_with_what_to_do(path: str, problem: str, tmp_path: Path):
    with pytest.raises(LoadError, match=problem):
        mtp.load(f"{tmp_path}/{path}")


def test_an_empty_list_is_told_with_what_to_do():
    with pytest.raises(LoadError, match="cannot load an empty list: name at least one file"):
        mtp.load([])


def test_a_file_that_may_not_be_read_is_told(tmp_path):
    (tmp_path / "run.mtp").symlink_to(tmp_path / "gone.mtp")

    with pytest.raises(LoadError, match=r"cannot load '.*run\.mtp': No such file"):
        mtp.load(tmp_path / "run.mtp")


@pytest.mark.skipif(sys.platform == "win32", reason="no such files")
@pytest.mark.parametrize("pattern", ["pipe.json", "*.json"])
def test_a_pipe_is_not_waited_for(pattern: str, tmp_path: Path):
    os.mkfifo(tmp_path / "pipe.json")

    with pytest.raises(
        LoadError, match=r"cannot load '.*pipe\.json': it is no regular file: copy its content into one"
    ):
        mtp.load(tmp_path / pattern)


def test_a_recording_without_a_name_has_that_of_its_file(tmp_path):
    chrome(tmp_path / "one.json", "a")
    assert repr(mtp.load(tmp_path)) == "<Recording 'one.json': 1 events>"
    chrome(tmp_path / "two.json", "b")
    assert repr(mtp.load(tmp_path)) == "<Recording '2 files': 2 events, 2 processes>"


def test_files_of_two_kinds_are_refused(tmp_path):
    save(tmp_path / "a.mtp")
    write(tmp_path / "b.json")

    with pytest.raises(
        LoadError, match=r"'.*a\.mtp' is a file of save\(\), '.*b\.json' is not: load files of one kind"
    ):
        mtp.load(tmp_path)


def chrome(path: Path, name: str, at: int = 0) -> None:
    op = {"ph": "X", "cat": "cpu_op", "name": name, "pid": 5, "tid": 5, "ts": at + 1, "dur": 8, "args": {}}
    write(path, json.dumps({"schemaVersion": 1, "traceEvents": [op]}))


@pytest.mark.parametrize("name", ["trace.json", "trace.json.gz", "trace.mtp"])
def test_the_content_of_a_file_says_what_it_is(name: str, tmp_path: Path):
    for form in ("plain.json", "compressed.json.gz"):
        chrome(tmp_path / form, "aten::mm")
        (tmp_path / form).replace(tmp_path / name)

        assert names(mtp.load(tmp_path / name).trace) == ["aten::mm"]


def test_chrome_traces_of_one_moment_are_ranks_in_the_order_of_their_names(tmp_path):
    for name in ("b", "a", "c"):
        chrome(tmp_path / f"{name}.json.gz", name)
    trace = mtp.load(tmp_path).trace

    assert ranks(trace) == [(5, 0), (5, 1), (5, 2)]
    assert [trace.tracks[track].process for track in trace.track] == [0, 1, 2]
    assert names(trace) == ["a", "b", "c"]


def test_chrome_traces_of_two_windows_are_one_process(tmp_path):
    chrome(tmp_path / "step1.json", "a")
    chrome(tmp_path / "step2.json", "b", at=1_000)

    assert ranks(mtp.load(tmp_path).trace) == [(5, -1)]


def test_a_damaged_chrome_trace_is_loaded_in_part_where_that_is_asked_for(tmp_path):
    chrome(tmp_path / "whole.json", "aten::mm")
    (tmp_path / "cut.json").write_text((tmp_path / "whole.json").read_text()[:-2] + ', {"ph": "X", "na')

    with pytest.raises(LoadError, match="damaged at byte"):
        mtp.load(tmp_path / "cut.json")
    trace = mtp.load(tmp_path / "cut.json", partial=True).trace
    assert names(trace) == ["aten::mm"]
    assert "damaged" in trace.notes[0]


def test_the_bar_follows_a_chrome_trace(tmp_path, monkeypatch):
    chrome(tmp_path / "trace.json", "aten::mm")
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setattr(progress_bars, "DELAY_S", 0)
    mtp.load(tmp_path / "trace.json")

    assert "\rloading trace.json: " in sys.stderr.getvalue()


@pytest.mark.parametrize(
    ("file", "rank"),
    [
        ("runs/trace_rank3.json", 3),
        ("runs/rank-12.json.gz", 12),
        ("runs/Rank_0/trace.json", 0),
        ("rank1/rank2/trace.json", 2),
        ("rank1/rank4_of_rank9.json", 9),
        ("runs/trace.json", None),
        ("frank3.json", None),
    ],
)
def test_the_rank_in_a_name(file: str, rank: int | None):
    assert rank_in_name(Path(file)) == rank


def trace_of(name: str, at: int = 0, **scalars: Any) -> Trace:
    return make_trace([event(name, at + 1, at + 9)], began_ns=at, ended_ns=at + 10, **scalars)


def ranks(trace: Trace) -> list[tuple[int, int]]:
    return [(process.pid, process.rank) for process in trace.processes]


def joined_traces(*traces: Trace, files: str = "abcdef", by_order: bool = True) -> Trace:
    return joined([Path(file) for file in files[: len(traces)]], traces, lambda parts: parts, by_order=by_order)


def test_two_hosts_that_gave_the_same_number_to_their_processes_are_two_ranks():
    both = joined_traces(trace_of("a", pid=5), trace_of("b", pid=5))

    assert ranks(both) == [(5, 0), (5, 1)]
    assert sorted(both.tracks[track].process for track in both.track) == [0, 1]


def test_windows_of_one_process_stay_one():
    both = joined_traces(trace_of("a", pid=5), trace_of("b", 100, pid=5))

    assert ranks(both) == [(5, -1)]
    assert [names(both), set(both.track.tolist())] == [["a", "b"], {0}]


def test_windows_of_two_ranks_are_two_processes():
    parts = [trace_of(f"{rank} {at}", at, pid=5) for at in (0, 100) for rank in (0, 1)]
    whole = joined([Path(f"rank{number % 2}_{number}.json") for number in range(4)], parts, list, by_order=True)

    assert ranks(whole) == [(5, 0), (5, 1)]
    of_process = {0: [], 1: []}
    for name, track in zip(names(whole), whole.track, strict=True):
        of_process[whole.tracks[track].process].append(name)
    assert of_process == {0: ["0 0", "0 100"], 1: ["1 0", "1 100"]}


def test_ranks_of_the_files_themselves_come_before_names_and_order():
    whole = joined(
        [Path("rank7.json"), Path("rank8.json"), Path("x.json"), Path("y.json")],
        [trace_of("a", pid=1, rank=1), trace_of("b", pid=2), trace_of("c", pid=3), trace_of("d", pid=4)],
        list,
        by_order=True,
    )

    assert ranks(whole) == [(1, 1), (2, 8), (3, 0), (4, 2)]


def test_own_recordings_outside_of_a_job_get_no_rank():
    both = joined_traces(trace_of("a", pid=1), trace_of("b", pid=2), by_order=False)

    assert ranks(both) == [(1, -1), (2, -1)]


def test_one_process_twice_at_the_same_time_is_refused():
    with pytest.raises(LoadError, match=r"'a' and 'b' hold the same process \(rank 1\) at the same time: load one"):
        joined_traces(trace_of("a", pid=1, rank=1), trace_of("a", pid=1, rank=1))
    with pytest.raises(LoadError, match="'a' and 'b' hold the same process"):
        joined_traces(trace_of("a", pid=1), trace_of("a", pid=1), by_order=False)


MINUTE = 60_000_000_000


def test_profiles_of_a_month_are_not_one_recording(tmp_path):
    for day in range(3):
        save(tmp_path / f"day{day}.mtp", at=day * 1440 * MINUTE, pid=100 + day)

    with pytest.raises(
        LoadError,
        match=r"not the processes of one job: '.*day1\.mtp' begins 24 hours after '.*day0\.mtp'. Load each file",
    ):
        mtp.load(tmp_path)


@pytest.mark.parametrize(
    ("processes", "is_one_job"),
    [
        (({"pid": 1}, {"pid": 2, "at": 50_000_000_000}), True),
        (({"pid": 1}, {"pid": 2, "at": 2 * MINUTE}), False),
        (({"pid": 1}, {"pid": 1, "at": 2 * MINUTE}), True),
        (({"pid": 1, "rank": 0}, {"pid": 2, "rank": 1, "at": 2 * MINUTE}), True),
        (({"pid": 1, "rank": 0}, {"pid": 2, "rank": 0, "at": 2 * MINUTE}), False),
        (({"pid": 1}, {"pid": 2, "at": 3 * MINUTE}, {"pid": 1, "at": 5 * MINUTE}), True),
    ],
)
def test_processes_of_one_job_ran_at_the_same_time_or_have_ranks(processes, is_one_job, tmp_path):
    for number, process in enumerate(processes):
        save(tmp_path / f"{number}.mtp", **process)

    if is_one_job:
        assert len(mtp.load(tmp_path).trace) == len(processes)
    else:
        with pytest.raises(LoadError, match="not the processes of one job"):
            mtp.load(tmp_path)


def test_ranks_in_the_names_of_files_make_them_one_job(tmp_path):
    save(tmp_path / "rank0.mtp", pid=1)
    save(tmp_path / "rank1.mtp", pid=2, at=5 * MINUTE)

    assert ranks(mtp.load(tmp_path).trace) == [(1, 0), (2, 1)]


def test_a_damaged_file_is_named_before_any_is_loaded(tmp_path):
    save(tmp_path / "a.mtp", pid=1)
    (tmp_path / "b.mtp").write_bytes(b"PK" + bytes(40))

    with pytest.raises(LoadError, match=r"cannot load '.*b\.mtp': it is cut short, or no zip file"):
        mtp.load(tmp_path)


def test_chrome_traces_far_apart_are_told():
    with_pids = trace_of("a", pid=5), trace_of("b", 300 * MINUTE, pid=6)
    both = joined([Path("a.json"), Path("b.json")], with_pids, list, by_order=True)

    assert ranks(both) == [(5, 0), (6, 1)]
    assert both.notes == (
        "'b.json' begins 5 hours after 'a.json': they may be of different jobs, or their clocks differ. "
        "Ranks are the order of the files.",
    )


def test_windows_that_touch_are_one_process():
    both = joined_traces(trace_of("a", pid=5), trace_of("b", 8, pid=5), by_order=False)

    assert (ranks(both), names(both)) == ([(5, -1)], ["a", "b"])


def test_clocks_are_aligned_between_processes_once_their_windows_are_together():
    seen: list[list[int]] = []

    def align(parts: Sequence[Trace]) -> list[Trace]:
        seen.append([len(part) for part in parts])
        return [replace(part, notes=("aligned",)) for part in parts]

    whole = joined(
        [Path("a"), Path("b"), Path("c")],
        [trace_of("a", pid=1), trace_of("b", 100, pid=1), trace_of("c", pid=2)],
        align,
        by_order=False,
    )

    assert (seen, whole.notes) == ([[2, 1]], ("aligned",))


def test_processes_of_one_host_have_one_clock():
    def align(parts: Sequence[Trace]) -> list[Trace]:
        raise AssertionError(parts)

    both = joined(
        [Path("a"), Path("b")], [trace_of("a", pid=1, host="x"), trace_of("b", pid=2, host="x")], align, by_order=False
    )

    assert names(both) == ["a", "b"]


def test_two_hosts_are_aligned_on_their_collectives(tmp_path):
    for rank, late in ((0, 0), (1, 7_000_000)):
        ends = [late + 100_000 * number for number in (1, 2, 3)]
        rows = [event("gloo:all_reduce", end - 10_000 * (rank + 1), end, kind="scope") for end in ends]
        Recording(make_trace(rows, pid=1, rank=rank, host=f"node{rank}")).save(tmp_path / f"{rank}.mtp")
    trace = mtp.load(tmp_path).trace

    assert sorted(trace.end_ns.tolist()) == [100_000, 100_000, 200_000, 200_000, 300_000, 300_000]
    assert "1 of 2 clocks moved: the ends of 3 collectives" in trace.notes[0]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[SimpleNamespace]:
    """A clock that stands still unless the test moves it."""
    hands = SimpleNamespace(now=0.0)
    monkeypatch.setattr(progress_bars.time, "monotonic", lambda: hands.now)
    return hands


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_has_one_line_after_a_second_and_nothing_at_the_end(clock, monkeypatch):
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    with progress_bar("loading run.json") as progress:
        for clock.now, share in ((0.9, 0.1), (1.0, 0.25), (1.1, 0.3), (1.3, 0.5)):
            progress(share)

    assert stream.getvalue() == "\rloading run.json: 25%\x1b[K\rloading run.json: 50%\x1b[K\r\x1b[K"


def test_a_quick_load_says_nothing(clock, monkeypatch):
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    with progress_bar("loading run.json") as progress:
        progress(1.0)

    assert stream.getvalue() == ""


@pytest.mark.parametrize("stream", [io.StringIO(), None])
def test_nobody_is_told_where_nobody_watches(stream, monkeypatch):
    monkeypatch.setattr(sys, "stderr", stream)

    with progress_bar("loading") as progress:
        assert progress is None


class Shell:
    """A kernel's shell."""

    def __init__(self, allow_stdin: bool) -> None:
        self._allow_stdin = allow_stdin
        self.published: list[tuple[dict[str, str], bool]] = []
        self.display_pub = self

    def get_parent(self) -> dict[str, Any]:
        return {"content": {"allow_stdin": self._allow_stdin}}

    def publish(self, bundle: dict[str, str], _metadata: Any, *, transient: dict[str, str], update: bool) -> None:
        assert transient["display_id"]
        self.published.append((bundle, update))


def test_a_notebook_has_a_bar_that_disappears(clock, monkeypatch):
    shell = Shell(allow_stdin=True)
    monkeypatch.setattr(progress_bars, "running_shell", lambda: shell)
    with progress_bar("loading <b>") as progress:
        clock.now = 2.0
        progress(0.5)

    (shown, was_update), removed = shell.published
    assert (shown["text/plain"], was_update) == ("loading <b>: 50%", False)
    assert re.search(r"loading &lt;b&gt; <progress value='0.500' max='1'>", shown["text/html"])
    assert removed == ({}, True)


def test_a_notebook_that_a_program_executes_has_no_bar(monkeypatch):
    monkeypatch.setattr(progress_bars, "running_shell", lambda: Shell(allow_stdin=False))

    with progress_bar("loading") as progress:
        assert progress is None


def test_many_files_share_one_bar_by_their_sizes(tmp_path, monkeypatch):
    for pid in (1, 2):
        save(tmp_path / f"{pid}.mtp", pid=pid, rank=pid, label="x" * 5_000)
    told: list[float] = []

    class Bar:
        def __init__(self, title: str, _surface: Any) -> None:
            assert title == "loading 2 files"

        update = staticmethod(told.append)

        def remove(self) -> None:
            told.append(-1)

    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setattr(progress_bars, "_Bar", Bar)
    mtp.load(tmp_path)

    assert told == [pytest.approx(0.5, abs=0.01), 1.0, -1]
