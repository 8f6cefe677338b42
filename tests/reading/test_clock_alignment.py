"""Clocks of several processes, aligned on the ends of collectives that both have."""

from real_traces import trace_path
from traces import event, make_trace

from mtprof_nb.model.trace import COLLECTIVE, Collective, Trace
from mtprof_nb.reading import align, read

#: Ends of collectives of the first process, in nanoseconds, and how long each one waits.
ENDS = (1_000_000, 1_900_000, 3_100_000, 4_050_000)


def _process(offset_ns: int, ends: tuple[int, ...] = ENDS, pid: int = 1, name: str = "allreduce") -> Trace:
    """A process whose clock is late by `offset_ns`, with a collective of another length for each end."""
    on_device = {"collective": Collective(name, "3"), "kind": "collective", "device": "CUDA", "thread": 7}
    began, ended = offset_ns, 5_000_000 + offset_ns
    rows = [event("aten::mm", 500_000 + offset_ns, 600_000 + offset_ns)]
    for number, end in enumerate(ends, pid):
        rows.append(event("ncclDevKernel", end - 1_000 * number + offset_ns, end + offset_ns, **on_device))
    memory = [{"time_ns": 550_000 + offset_ns, "nbytes": 64}]
    return make_trace(rows, memory, pid=pid, rank=pid, began_ns=began, ended_ns=ended, windows=((began, ended),))


def test_a_late_clock_is_moved_back_with_everything_that_it_timed() -> None:
    jitter = tuple(end + late for end, late in zip(ENDS, (0, 2_000, -1_000, 1_000), strict=True))

    first, second = align([_process(0), _process(7_000_000, jitter, pid=2)])

    assert first.start_ns.tolist() == _process(0).start_ns.tolist()
    # The middle of the differences is -500 ns: half of the collectives end earlier, half later.
    assert second.start_ns.tolist() == (_process(0, jitter, pid=2).start_ns - 500).tolist()
    assert (second.began_ns, second.ended_ns, second.windows) == (-500, 4_999_500, ((-500, 4_999_500),))
    assert second.allocations is not None
    assert second.allocations.time_ns.tolist() == [549_500]
    note = (
        "1 of 2 clocks moved: the ends of 4 collectives in common then differ by 1.0 µs at the median, 1.5 µs at most."
    )
    assert first.notes == second.notes == (note,)


def test_clocks_that_agree_within_the_differences_of_single_collectives_stay() -> None:
    jitter = tuple(end + late for end, late in zip(ENDS, (5_000, -4_000, 1_000, 0), strict=True))

    first, second = align([_process(0), _process(0, jitter, pid=2)])

    assert second.start_ns.tolist() == _process(0, jitter, pid=2).start_ns.tolist()
    assert first.notes[0].startswith("Clocks left as they are: the ends of 4 collectives in common then differ by ")


def test_a_recording_that_begins_later_is_matched_where_its_collectives_fit() -> None:
    ends = (1_000_000, 4_900_000, 7_100_000, 16_050_000, 21_000_000, 30_300_000)

    _, second = align([_process(0, ends), _process(900_000_000, ends[2:], pid=2)])

    assert second.end_ns[second.kind == COLLECTIVE].tolist() == list(ends[2:])


def test_a_process_without_a_common_collective_is_reached_through_another_one() -> None:
    def pair(offset_ns: int, names: tuple[str, str], pid: int) -> Trace:
        rows = []
        for name in names:
            on_device = {"kind": "collective", "device": "CUDA", "collective": Collective(name, "3")}
            rows += [event(name, end - 5_000 + offset_ns, end + offset_ns, **on_device) for end in ENDS]
        return make_trace(rows, pid=pid)

    traces = [pair(0, ("a", "a"), 1), pair(40_000_000, ("a", "b"), 2), pair(90_000_000, ("b", "b"), 3)]

    aligned = align(traces)

    assert [int(trace.end_ns.max()) for trace in aligned] == [ENDS[-1]] * 3


def test_recordings_without_collectives_in_common_are_left_as_they_are() -> None:
    traces = [_process(0, name="allreduce"), _process(7_000_000, pid=2, name="broadcast")]

    aligned = align(traces)

    assert [trace.start_ns.tolist() for trace in aligned] == [trace.start_ns.tolist() for trace in traces]
    assert aligned[0].notes == (
        "Clocks were not aligned: the recordings have no collectives in common whose ends agree.",
    )


def test_gloo_is_aligned_on_the_scopes_of_its_threads() -> None:
    def process(offset_ns: int, pid: int) -> Trace:
        moments = [(end - 50_000 + offset_ns, end + offset_ns) for end in ENDS]
        rows = [event("gloo:all_reduce", begin, end, kind="scope", thread=9) for begin, end in moments]
        return make_trace(rows, pid=pid)

    _, second = align([process(0, 1), process(60_000_000, 2)])

    assert second.end_ns.tolist() == list(ENDS)


def test_one_recording_needs_no_clock() -> None:
    trace = _process(0)

    assert align([trace]) == [trace]


def test_clocks_of_a_real_pair_agree_within_microseconds() -> None:
    traces: list[Trace] = [read(trace_path(f"ascend_rank{rank}")) for rank in (0, 1)]

    aligned = align(traces)

    ends = [trace.end_ns[trace.kind == COLLECTIVE] for trace in aligned]
    assert abs(ends[0] - ends[1]).max() < 3_000
