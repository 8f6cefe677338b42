"""Collapsed stacks as flamegraph.pl and speedscope read them."""

from pathlib import Path

import pytest
from traces import event, make_trace

from mtprof_nb.export import collapsed_stacks as stacks

MAIN, RUN = ("main.py", 1, "<module>"), ("my file.py", 5, "run;fast")


def test_stacks_are_written_root_first_with_whole_microseconds(tmp_path: Path) -> None:
    rows = [
        event("a", 0, 2_900, stack=(RUN, MAIN)),
        event("b", 5_000, 8_900, stack=(RUN, MAIN)),
        event("c", 10_000, 11_000, stack=(MAIN,)),
        event("d", 20_000, 20_900, stack=(("short.py", 1, "f"),)),
        event("e", 30_000, 90_000),
    ]
    stacks.write(make_trace(rows), tmp_path / "stacks.txt")

    assert (tmp_path / "stacks.txt").read_text() == "main.py:1:<module> 1\nmain.py:1:<module>;my_file.py:5:run_fast 6\n"


def test_an_unknown_metric_leaves_the_old_file(tmp_path: Path) -> None:
    (tmp_path / "stacks.txt").write_text("old")
    trace = make_trace([event("a", 0, 2_900, stack=(MAIN,))])
    with pytest.raises(ValueError, match="metric should be one of"):
        stacks.write(trace, tmp_path / "stacks.txt", "nonsense")

    assert (tmp_path / "stacks.txt").read_text() == "old"


def test_without_stacks_nothing_is_written_and_the_flag_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="with_stack=True"):
        stacks.write(make_trace([event("a", 0, 2_900)]), tmp_path / "stacks.txt")

    assert list(tmp_path.iterdir()) == []


def test_the_metric_of_a_device_without_kernels_is_an_empty_file(tmp_path: Path) -> None:
    trace = make_trace([event("a", 0, 2_900, stack=(MAIN,))])
    stacks.write(trace, tmp_path / "stacks.txt", "self_cuda_time_total")

    assert (tmp_path / "stacks.txt").read_text() == ""
