"""The tab of ranks, the spread in other tabs, one rank alone, and ranks without scripts."""

import json
import zlib
from pathlib import Path
from typing import Any

import pytest
from rank_traces import FILE, MS, gloo, job, of_rank, op

from mtprof_nb.model.merge import merge
from mtprof_nb.model.trace import Trace
from mtprof_nb.recording import Recording
from mtprof_nb.tables.operators.operator_rows import rows
from mtprof_nb.views.panel import show_panel as panels
from mtprof_nb.views.panel.tabs import RANKS, tabs_of
from mtprof_nb.views.scene import Scene
from mtprof_nb.views.static.static_page import bundle
from mtprof_nb.views.tabs.lines.lines_tab import LinesTab
from mtprof_nb.views.tabs.ranks.ranks_tab import RanksTab
from mtprof_nb.views.tabs.stacks.stacks_tab import StacksTab
from mtprof_nb.views.tabs.summary.summary_tab import SummaryTab


@pytest.fixture(scope="module")
def trace() -> Trace:
    return job()


def test_only_several_processes_have_the_tab(trace: Trace) -> None:
    assert RANKS in tabs_of(Scene(trace))
    assert RANKS not in tabs_of(Scene(of_rank(0, [op(0, 1)])))


def test_the_tab_has_the_straggler_a_row_a_rank_the_steps_and_the_collectives(trace: Trace) -> None:
    first = RanksTab(Scene(trace)).first()
    assert first["sentence"].startswith("Rank 2 came last in 10 of 10 all-reduces; the others waited 30.0 ms for it;")
    found = first["rows"]
    assert (found["label"], found["value"]["came_last"]) == (["rank 0", "rank 1", "rank 2", "rank 3"], [0, 0, 10, 0])
    assert found["text"]["hottest"][2] == f"{FILE}:3"
    assert first["parts"][2] == [70 * MS, 10 * MS, 0, 20 * MS]
    assert first["steps"]["numbers"] == list(range(10))
    assert [row[0] for row in first["steps"]["duration_ns"]] == [10 * MS] * 4
    assert first["collectives"]["value"]["wait_ns"] == [90 * MS]
    assert first["collectives"]["text"]["last"] == ["rank 2, 10 of 10"]


def test_collectives_have_columns_of_sizes_only_if_sizes_are_known(trace: Trace) -> None:
    def titles(shown: Trace) -> list[str]:
        return [column["title"] for column in RanksTab(Scene(shown)).first()["collective_columns"]]

    known = [of_rank(rank, [gloo(0, 1, shapes=((100,),), dtypes=("float",))]) for rank in (0, 1)]
    assert titles(trace) == ["Calls", "Ranks", "Exchange", "Wait", "Waited most", "Most often last"]
    assert titles(merge(known))[2:5] == ["Size", "Bandwidth", "Exchange"]


def test_many_steps_are_joined_and_the_longest_of_a_group_is_shown() -> None:
    rows = [[op(at, at + 1, step=at) for at in range(1_000)] for _ in (0, 1)]
    rows[1][500] = op(500, 500.5, step=500)
    parts = [of_rank(rank, own, ended_ns=1_000 * MS) for rank, own in enumerate(rows)]
    steps = RanksTab(Scene(merge(parts))).first()["steps"]
    assert (steps["group"], len(steps["numbers"]), steps["numbers"][:2]) == (5, 200, [0, 5])
    assert set(steps["duration_ns"][0]) == {MS}


def test_operators_have_their_spread_over_ranks(trace: Trace) -> None:
    grouped = rows(trace, "op")
    at = grouped.label.index("aten::sort")
    assert [column.title for column in grouped.columns[-4:]] == ["Least rank", "Median rank", "Most", "On"]
    assert [int(grouped.value[column.key][at]) for column in grouped.columns[-4:]] == [0, 0, 30 * MS, 2]


def test_lines_and_stacks_have_their_spread_over_ranks(trace: Trace) -> None:
    lines = LinesTab(Scene(trace)).first()
    assert lines["has_ranks"]
    cost = next(line for line in lines["files"][0]["lines"] if line and line["line"] == 4)
    assert (cost["median_ns"], cost["most_ns"], cost["most_on"]) == (0, 30 * MS, "rank 2")
    slices = StacksTab(Scene(trace)).first()["slices"]
    told = dict(zip(slices["full"], slices["ranks"], strict=True))
    assert told["aten::sort"] == "0 µs to 30.0 ms on one rank, median 0 µs, most on rank 2"


def test_the_overview_of_several_ranks_says_where_findings_are(trace: Trace) -> None:
    first = SummaryTab(Scene(trace)).first()
    assert first["sentence"].startswith("Rank 2 came last in 10 of 10 all-reduces")
    assert [finding["rule"] for finding in first["findings"]] == ["slowest_rank"]
    assert first["nothing"].startswith("Findings are about one rank: ")


def test_one_process_has_no_spread() -> None:
    alone = of_rank(0, [op(0, 1, line=(FILE, 3))])
    assert "most_ns" not in str(LinesTab(Scene(alone)).first())
    assert StacksTab(Scene(alone)).first()["slices"]["ranks"] is None


def asked(panel: Any, **question: Any) -> Any:
    sent: list[Any] = []
    panel.send = lambda content, buffers: sent.append((content, buffers))
    panel._on_message(panel, {"number": "1", **question}, [])
    ((content, buffers),) = sent
    assert content == {"number": "1"}
    return json.loads(zlib.decompress(buffers[0]))


def test_the_panel_shows_one_rank_alone_as_its_own_panel_would(trace: Trace) -> None:
    panel = panels.panel(trace)
    assert panel.ranks == [{"process": number, "title": f"rank {number}"} for number in range(4)]
    alone = panels.panel(Recording(trace).of_rank(2).trace)
    for tab in ("operators", "lines", "timeline", "stacks"):
        assert asked(panel, tab=tab, ask="first", process=2) == json.loads(zlib.decompress(alone.first[tab])), tab
    question = {"tab": "operators", "ask": "rows", "grouping": "op", "sort": "self_ns"}
    assert asked(panel, **question, process=0)["total"] == 1
    assert asked(panel, **question)["total"] == 2
    assert alone.ranks == []


def test_ranks_stand_in_the_page_without_scripts_in_markdown_and_in_text(trace: Trace) -> None:
    made = bundle(Scene(trace))
    for text in made.values():
        assert "10 of 10" in text
        assert "70.0 ms (70.0 %)" in text.replace("\\", "")
    assert "<b>Ranks</b>" in made["text/html"]


def test_of_very_many_ranks_those_that_others_waited_for_are_shown_first() -> None:
    text = bundle(Scene(job(ranks=40, slow=33)))["text/plain"]
    assert "showing the 16 ranks that others waited for longest; 24 more" in text
    assert "rank 33" in text


def test_the_exported_page_carries_the_tab(trace: Trace, tmp_path: Path) -> None:
    Recording(trace).export_html(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert 'data-mtprof="first-ranks"' in page
    assert 'modules["ranks.js"]' in page
