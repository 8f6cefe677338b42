"""The list of events changed as a list: what it then says is said of the events that it holds."""

import copy
import json
import pickle

import pytest
from traces import event, make_trace

from mtprof_nb.tables.averages import FunctionEventAvg
from mtprof_nb.tables.events import Events

STACK = (("f.py", 1, "f"), ("f.py", 9, "<module>"))


@pytest.fixture
def found():
    return Events(
        make_trace(
            [
                event("train", 0, 100_000, kind="scope"),
                event("mm", 10_000, 30_000, stack=STACK),
                event("add", 40_000, 50_000),
                event("mm", 60_000, 65_000, stack=STACK),
                event("tanh", 70_000, 70_000),
            ]
        )
    )


def names(events):
    return [one.name for one in events]


def rows(events, **options):
    return [(row.key, row.count, row.self_cpu_time_total) for row in events.key_averages(**options)]


def test_printed_it_is_its_table(found):
    assert str(found) == found.table()
    assert str(found).splitlines()[3].split()[0] == "train"
    assert repr(found) == "<Events: 5>"


def test_it_takes_the_operations_of_a_list(found):
    everything = found.copy()
    train, first, add, second, tanh = everything

    found.remove(add)
    assert names(found) == ["train", "mm", "mm", "tanh"]
    assert found.pop() == tanh
    found.append(add)
    found.extend([tanh])
    found += [train]
    found.insert(0, second)
    assert names(found) == ["mm", "train", "mm", "mm", "add", "tanh", "train"]
    assert (found.count(second), found.index(add), add in found) == (2, 4, True)
    del found[5:]
    found[0] = add
    assert found == [add, train, first, second, add]
    found.sort(key=lambda one: one.duration_ns, reverse=True)
    assert found == [train, first, add, add, second]
    found.reverse()
    found[:2] = []
    assert found == [add, first, train]
    assert [*reversed(found)] == [train, first, add]
    assert found + Events(second.trace, [second]) == [add, first, train, second]
    found.clear()
    assert not found
    assert len(found) == 0
    assert names(everything) == ["train", "mm", "add", "mm", "tanh"], "a copy is another list"


def test_averages_and_table_are_of_what_the_list_holds(found):
    assert rows(found) == [("train", 1, 65.0), ("mm", 2, 25.0), ("add", 1, 10.0), ("tanh", 1, 0.0)]
    inner = found[2:]
    assert isinstance(inner, Events)
    assert rows(inner) == [("add", 1, 10.0), ("mm", 1, 5.0), ("tanh", 1, 0.0)]
    assert inner.self_cpu_time_total == 15.0
    assert inner.total_average().count == 3

    found.remove(found[1])
    assert rows(found[:3]) == [("train", 1, 65.0), ("add", 1, 10.0), ("mm", 1, 5.0)], "self times stay the events' own"
    assert found.table().splitlines()[-1] == "Total: 80.000us  Count: 4"
    found.append(found[2])
    assert rows(found)[2] == ("mm", 2, 10.0), "an event that is there twice counts twice"
    found.sort(key=lambda one: one.name)
    assert [row[0] for row in rows(found)] == ["add", "mm", "tanh", "train"]
    found.clear()
    assert (rows(found), found.table(), found.self_cpu_time_total) == ([], "", 0)


def test_events_of_two_recordings_are_averaged_together(found):
    other = Events(make_trace([event("mm", 0, 7_000), event("relu", 8_000, 9_000)], allocations=[]))
    found.extend(other)

    assert rows(found) == [("train", 1, 65.0), ("mm", 3, 32.0), ("add", 1, 10.0), ("tanh", 1, 0.0), ("relu", 1, 1.0)]
    assert "CPU Mem" in found.table()


def test_nothing_but_events_can_be_put_in(found):
    for put in (
        found.append,
        lambda it: found.extend([it]),
        lambda it: found.__setitem__(0, it),
        lambda it: Events(found[0].trace, [it]),
    ):
        with pytest.raises(TypeError, match=r"only events of a profile, not .*: take them from events"):
            put(FunctionEventAvg())
    assert len(found) == 5


def test_a_changed_list_writes_the_events_that_it_holds(found, tmp_path):
    found.remove(found[3])
    found.export_chrome_trace(tmp_path / "trace.json")
    written = [one for one in json.loads((tmp_path / "trace.json").read_text())["traceEvents"] if one["ph"] == "X"]
    durations = sorted((one["name"], one["dur"]) for one in written if one["name"] in ("mm", "add", "train"))
    assert durations == [("add", 10.0), ("mm", 20.0), ("train", 100.0)]
    found.export_stacks(tmp_path / "stacks.txt")
    assert (tmp_path / "stacks.txt").read_text() == "f.py:9:<module>;f.py:1:f 20\n"
    with pytest.raises(ValueError, match="metric should be one of"):
        found.export_stacks(tmp_path / "stacks.txt", "flops")


def test_a_changed_list_can_be_copied_and_pickled(found):
    found.pop(0)

    assert names(copy.copy(found)) == names(pickle.loads(pickle.dumps(found))) == ["mm", "add", "mm", "tanh"]
    assert found.copy() == found
    assert found != found[1:]
    assert found != 3
    with pytest.raises(TypeError):
        hash(found)
