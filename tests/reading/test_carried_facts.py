"""Facts of a recording that an export carries are believed only where they can be true of its file."""

from pathlib import Path
from typing import Any

import pytest

import mtprof_nb as mtp
from mtprof_nb.model.process_facts import ProcessFacts
from mtprof_nb.model.trace import OutsideOps, Process, SourceLine
from mtprof_nb.reading import read
from tests.reading.chrome_files import named, span, written

#: Window and length of the files below, in nanoseconds.
BEGAN, ENDED = 1_000, 6_000
WALL = ENDED - BEGAN
LINE = ["cell.py", 3]
LEFT_OUT = "Facts of the recording that are not as this package writes them, left out: {}."


def _works(path: Path) -> None:
    prof = mtp.load(path)
    assert prof.summary().wall_ns == WALL
    assert prof.lines().table()
    assert isinstance(str(prof.advice()), str)
    prof.export_html(path.with_suffix(".html"))
    prof.save(path.with_suffix(".mtp"))
    assert mtp.load(path.with_suffix(".mtp")).summary() == prof.summary()


@pytest.mark.parametrize(
    "said",
    [
        {"own_ns": -1},
        {"own_ns": WALL + 1},
        {"own_ns": 2**63 - 1},
        {"overhead_ns": -2},
        {"overhead_ns": 2**62},
        {"overhead_ns": 2**63 - 1},
        {"between_ops_ns": -1},
        {"between_ops_ns": 2**62},
        {"windows": []},
        {"windows": [[0, 10]]},
        {"windows": [[BEGAN - 1, ENDED]]},
        {"windows": [[BEGAN, ENDED + 1]]},
        {"windows": [[ENDED, BEGAN]]},
        {"windows": [[3_000, ENDED], [BEGAN, 2_000]]},
        {"windows": [[BEGAN, ENDED], [BEGAN, ENDED]]},
        {"windows": [[-(2**62), 2**62]]},
        {"outside": [[LINE, [-1, 4]]]},
        {"outside": [[LINE, [4, 3]]]},
        {"outside": [[LINE, [4, WALL + 1]]]},
        {"processes": []},
        {"processes": [[7, []]]},
        {"processes": [[100, [100, -2]]]},
        {"processes": [[100, [100, 2**31]]]},
        {"processes": [[100, []], [100, []]]},
        {"process_facts": []},
        {"process_facts": [[]]},
    ],
)
def test_a_fact_that_cannot_be_true_is_left_out_and_told(tmp_path: Path, said: dict[str, Any]) -> None:
    path = written(tmp_path, [span("aten::mm", 1, 5)], mtprof_nb=said)

    loaded = read(path)

    assert loaded.windows == ((BEGAN, ENDED),)
    assert (loaded.own_ns, loaded.overhead_ns, loaded.between_ops_ns, loaded.outside) == (0, -1, 0, None)
    assert loaded.processes == (Process(100),)
    assert loaded.process_facts == ()
    assert loaded.notes == (LEFT_OUT.format(1),)
    _works(path)


def test_facts_up_to_their_bounds_are_taken(tmp_path: Path) -> None:
    said = {
        "own_ns": WALL,
        "overhead_ns": 2**62 - 1,
        "between_ops_ns": 2**62 - 1,
        "windows": [[BEGAN, 2_000], [2_000, ENDED]],
        "outside": [[LINE, [0, WALL]]],
    }
    path = written(tmp_path, [span("aten::mm", 1, 5)], mtprof_nb=said)

    loaded = read(path)

    assert loaded.notes == ()
    assert loaded.windows == ((BEGAN, 2_000), (2_000, ENDED))
    assert (loaded.own_ns, loaded.overhead_ns, loaded.between_ops_ns) == (WALL, 2**62 - 1, 2**62 - 1)
    assert loaded.outside == {SourceLine("cell.py", 3): OutsideOps(0, WALL)}
    _works(path)


def _of_two(folder: Path, facts: Any, **said: Any) -> Path:
    """A file with two processes, and these facts of the second one."""
    events = [span("aten::mm", 1, 5), span("aten::mm", 2, 3, pid=200), named("process_name", "python", 200)]
    known = {"began_ns": 2_000, "ended_ns": 5_000, "windows": [[2_000, 5_000]]}
    second = list(ProcessFacts(**known | facts)._replace(recorded={}))
    first = list(ProcessFacts(began_ns=BEGAN, ended_ns=ENDED)._replace(recorded={}))
    processes = [[200, [8, 1]], [100, [7, 0]]]
    return written(folder, events, mtprof_nb={"processes": processes, "process_facts": [second, first], **said})


@pytest.mark.parametrize(
    "facts",
    [
        {"began_ns": BEGAN - 1},
        {"ended_ns": ENDED + 1},
        {"began_ns": 5_000, "ended_ns": 2_000},
        {"windows": [[BEGAN, ENDED]]},
        {"own_ns": 3_001},
        {"own_ns": -1},
        {"overhead_ns": -2},
        {"between_ops_ns": -1},
        {"dropped": -1},
        {"outside": [[LINE, [0, 3_001]]]},
        {"outside": [[LINE, [0, -1]], [LINE, [0, 1]]]},
    ],
)
def test_facts_of_a_process_have_to_be_possible_in_its_window(tmp_path: Path, facts: dict[str, Any]) -> None:
    path = _of_two(tmp_path, facts)

    loaded = read(path)

    assert loaded.processes == (Process(7, 0), Process(8, 1))
    assert loaded.process_facts == ()
    assert loaded.notes == (LEFT_OUT.format(1),)
    _works(path)


def test_times_of_several_processes_are_sums(tmp_path: Path) -> None:
    path = _of_two(tmp_path, {"own_ns": 3_000}, own_ns=2 * WALL, outside=[[LINE, [1, 2 * WALL]]])

    loaded = read(path)

    assert loaded.notes == ()
    assert loaded.own_ns == 2 * WALL
    assert [facts.own_ns for facts in loaded.process_facts] == [0, 3_000]
    assert loaded.outside == {SourceLine("cell.py", 3): OutsideOps(1, 2 * WALL)}
    _works(path)


def test_facts_of_processes_without_numbers_of_the_file_are_left_out(tmp_path: Path) -> None:
    path = _of_two(tmp_path, {}, processes=[[200, [8, 1]], [300, [7, 0]]])

    loaded = read(path)

    assert loaded.processes == (Process(100), Process(200))
    assert loaded.process_facts == ()
    assert loaded.notes == (LEFT_OUT.format(2),)
    _works(path)
