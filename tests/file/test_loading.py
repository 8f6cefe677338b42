"""`load` of one file or many: which files, and what is said of those that cannot be loaded."""

from __future__ import annotations

import gzip
import os
import sys
from pathlib import Path

import pytest
from files_to_load import TRACE, chrome, names, ranks, save, write
from traces import differences

import mtprof_nb as mtp
from mtprof_nb.errors import LoadError
from mtprof_nb.loading.chosen_files import chosen_files


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
    (tmp_path / "a" / "d.json").write_bytes(TRACE.encode("utf-16"))

    assert relative(chosen_files(tmp_path), tmp_path) == ["a/c.json", "a/d.json", "b.json.gz"]


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
    with pytest.raises(LoadError, match="cannot load an empty name: name at least one file"):
        mtp.load("")  # not the current folder
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


def test_a_damaged_file_is_named_before_any_is_loaded(tmp_path):
    save(tmp_path / "a.mtp", pid=1)
    (tmp_path / "b.mtp").write_bytes(b"PK" + bytes(40))

    with pytest.raises(LoadError, match=r"cannot load '.*b\.mtp': it is cut short, or no zip file"):
        mtp.load(tmp_path)
