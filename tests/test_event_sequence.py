"""Events as a sequence: its length, its parts, its tables and its data frame."""

from collections.abc import Mapping, Sequence

import pytest
from traces import event, make_trace

from mtprof_nb.model.trace import empty_trace
from mtprof_nb.tables.event import Event
from mtprof_nb.tables.events import Events


def events(*rows):
    return Events(make_trace(list(rows)))


def test_events_are_a_sequence_made_when_asked_for():
    found = events(event("a", 0, 10), event("b", 1, 5), event("c", 20, 30))

    assert isinstance(found, Sequence)
    assert isinstance(found[0], Mapping)
    assert len(found) == 3
    assert [each.name for each in found] == ["a", "b", "c"]
    assert [each.name for each in reversed(found)] == ["c", "b", "a"]
    assert found[-1].name == "c"
    assert [each.name for each in found[1:]] == ["b", "c"]
    assert found[0] in found
    assert found.index(found[2]) == 2
    assert found[0] is not found[0]
    assert len({found[0], found[0], found[1]}) == 2
    with pytest.raises(IndexError):
        found[3]


def test_an_event_equals_a_dictionary_of_the_same_and_no_event_of_another_trace():
    found, other = events(event("a", 0, 10)), events(event("a", 0, 10))

    assert found[0] == dict(found[0])
    assert found[0] != {}
    assert found[0] != other[0]
    assert found[0] != 3


def test_a_repr_has_no_address():
    found = events(event("aten::mm", 0, 10))

    assert repr(found[0]) == "<Event 0 'aten::mm' op CPU 10 ns>"
    assert repr(found) == "<Events: 1>"


def test_events_answer_as_torchs_list_does():
    found = events(event("a", 0, 10_000), event("b", 1_000, 5_000), event("b", 6_000, 7_000))

    assert [(row.key, row.count) for row in found.key_averages()] == [("a", 1), ("b", 2)]
    assert found.self_cpu_time_total == 10.0
    assert found.total_average().count == 3
    lines = found.table(sort_by="cpu_time_total", row_limit=2).splitlines()
    assert [line.split()[0] for line in lines[3:5]] == ["a", "b"]
    assert lines[-1] == "Total: 10.000us  Count: 3"


def test_the_table_of_events_takes_its_options_in_torchs_order():
    found = events(event("a", 0, 10_000), event("b", 1_000, 5_000), event("b", 6_000, 7_000))

    lines = found.table("cpu_time_total", 1, 75, 55, 80, "the header", False, "ms").splitlines()
    assert lines[1] == "the header"
    assert [line.split()[0] for line in lines[5:6]] == ["a"]
    assert lines[-1] == "Total: 0.010ms  Count: 3"
    assert found.table(row_limit=None) == found.table(row_limit=-1)


def test_no_events_are_no_trouble():
    found = Events(empty_trace())

    assert list(found) == []
    assert found.table() == ""
    assert found.self_cpu_time_total == 0
    with pytest.raises(IndexError):
        found[0]


def test_events_are_taken_by_positions_from_either_end_or_by_a_mask():
    trace = make_trace([event("a", 0, 1), event("b", 2, 3, forward=0), event("c", 4, 5, forward=1)])

    def taken(choice):
        chosen = trace.take(choice)
        return [chosen.names[name] for name in chosen.name], chosen.forward.tolist()

    assert taken([2, 1]) == (["c", "b"], [1, -1])
    assert taken([-1, 1]) == (["c", "b"], [1, -1])
    assert taken([True, False, True]) == (["a", "c"], [-1, -1])
    assert taken([]) == ([], [])
    with pytest.raises(IndexError, match="boolean index did not match"):
        trace.take([True, False])


def test_event_objects_of_a_position_can_be_made_by_hand():
    trace = make_trace([event("a", 0, 1), event("b", 2, 3)])

    assert Event(trace, 1) == Events(trace)[1]


def test_a_data_frame_of_events_has_their_keys_and_values() -> None:
    pd = pytest.importorskip("pandas")
    stack = [("a.py", 3, "run"), ("a.py", 9, "<module>")]
    trace = make_trace(
        [
            event("step", 0, 900, kind="scope", stack=stack),
            event("aten::mm", 10, 60, stack=stack, shapes=((2, 3), ()), flops=12, module="Net", memory=(0, 64)),
            event("MmBackward0", 100, 300, stack=stack, stack_is_forward=True, phase="backward", sequence_nr=7),
        ]
    )
    for events in (Events(trace), Events(trace)[:]):
        frame = events.to_dataframe()

        assert len(frame) == 3
        for row, one in zip(frame.to_dict("records"), events, strict=True):
            known = {key: value for key, value in row.items() if isinstance(value, list) or not pd.isna(value)}
            assert known == dict(one)


def test_a_data_frame_has_only_the_columns_that_were_recorded() -> None:
    pytest.importorskip("pandas")
    frame = Events(make_trace([event("aten::mm", 0, 5)])).to_dataframe()

    assert list(frame) == [
        *("name", "kind", "device_type", "start_ns", "end_ns", "duration_ns", "step", "thread_id", "phase"),
        *("correlation_id", "runtime_name", "runtime_tid"),
    ]
    assert frame.start_ns.dtype == "int64"
