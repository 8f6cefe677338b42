"""The panel as a widget: its mime bundle, its bytes, what it answers, and that it is shown once and replaced."""

import gc
import json
import re
import sys
import weakref
import zlib
from base64 import b64decode
from types import SimpleNamespace
from typing import Any

import pytest
from synthetic import training_run
from traces import event, make_trace

from mtprof_nb.model.trace import Trace, empty_trace
from mtprof_nb.views.panel import bundle as modules
from mtprof_nb.views.panel import show_panel as panels
from mtprof_nb.views.panel.tabs import TABS
from mtprof_nb.views.panel.widget import Panel

WIDGET = "application/vnd.jupyter.widget-view+json"


@pytest.fixture
def trace() -> Trace:
    return make_trace([event("aten::mm", 0, 40_000), event("aten::add", 50_000, 60_000)], label="Cell [3]")


def unpacked(message: bytes) -> Any:
    return json.loads(zlib.decompress(message))


def asked(panel: Panel, **question: Any) -> tuple[dict[str, Any], list[bytes]]:
    """The panel's answer to a question of the page."""
    sent: list[tuple[dict[str, Any], list[bytes]]] = []
    panel.send = lambda content, buffers: sent.append((content, buffers))
    panel._on_message(panel, {"number": "7", **question}, [])
    return sent[0]


def answered(panel: Panel, **question: Any) -> Any:
    content, buffers = asked(panel, **question)
    assert content == {"number": "7"}
    return unpacked(buffers[0])


def test_one_bundle_has_the_widget_html_markdown_and_text(trace: Trace) -> None:
    bundle, _ = panels.panel(trace)._repr_mimebundle_()

    assert set(bundle) == {WIDGET, "text/html", "text/markdown", "text/plain"}
    assert bundle["text/plain"].startswith("Cell [3]\nwall 60.0 µs")
    assert bundle["text/html"].startswith("<div")


def test_the_text_is_the_same_for_the_same_trace(trace: Trace) -> None:
    assert repr(panels.panel(trace)) == repr(panels.panel(trace))
    assert "0x" not in repr(panels.panel(trace))


def test_the_panel_carries_what_each_tab_draws_first(trace: Trace) -> None:
    panel = panels.panel(trace, name="mine", status="interrupted")

    names = [kind.name for kind in TABS if kind.name != "steps"]  # no step was marked
    assert [tab["name"] for tab in panel.tabs] == names
    assert set(panel.first) == set(names)
    assert panel.strip["title"] == "mine"
    assert panel.strip["notes"] == ["interrupted"]
    assert unpacked(panel.first["operators"])["rows"]["label"] == ["aten::mm", "aten::add"]
    assert "--profile-memory" in unpacked(panel.first["memory"])["empty"]


def test_a_panel_is_small() -> None:
    panel = panels.panel(training_run(30_000))
    state = panel.get_state()
    nbytes = sum(len(value) for value in panel.first.values())

    assert len(state["_esm"]) + len(state["_css"]) < 75_000
    assert nbytes < 60_000


def test_a_tab_of_a_long_trace_is_worked_out_when_it_is_opened(trace: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    late = [kind._replace(eager_events=1) if kind.name == "timeline" else kind for kind in TABS]
    monkeypatch.setattr("mtprof_nb.views.panel.widget.ALL_TABS", tuple(late))
    panel = panels.panel(trace)
    assert "timeline" not in panel.first

    asked(panel, tab="timeline", ask="first")
    assert unpacked(panel.first["timeline"])["blocks"]["count"] == [1, 1]


def test_a_tab_that_fails_says_why_and_the_others_stand(trace: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(tab: object) -> None:
        raise ZeroDivisionError("no time")

    monkeypatch.setattr("mtprof_nb.views.tabs.stacks.stacks_tab.StacksTab.first", fails)
    panel = panels.panel(trace)

    assert unpacked(panel.first["stacks"]) == {"empty": "This could not be computed (ZeroDivisionError: no time)."}
    assert unpacked(panel.first["timeline"])["blocks"]["count"] == [1, 1]


def test_a_tab_that_cannot_be_written_says_why_and_the_others_stand(
    trace: Trace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mtprof_nb.views.tabs.stacks.stacks_tab.StacksTab.first", lambda _tab: {"value": float("nan")})
    panel = panels.panel(trace)

    assert unpacked(panel.first["stacks"])["empty"].startswith("This could not be computed (ValueError: ")
    assert unpacked(panel.first["timeline"])["blocks"]["count"] == [1, 1]


def test_rows_are_answered_by_grouping_the_longest_first() -> None:
    trace = make_trace([event("aten::add", 0, 10, thread=1), event("aten::mm", 50, 90, thread=2)])
    panel = panels.panel(trace)

    ops = answered(panel, tab="operators", ask="rows", grouping="op")
    threads = answered(panel, tab="operators", ask="rows", grouping="thread")

    assert (ops["sort"], ops["total"], ops["rows"]["label"]) == ("self_ns", 2, ["aten::mm", "aten::add"])
    assert threads["rows"]["label"] == ["thread 2", "thread 1"]


def test_the_table_shows_the_column_that_it_is_sorted_by() -> None:
    trace = make_trace([event("aten::mm", 0, 9)], allocations=[{"time_ns": 3, "nbytes": 64, "event": 0}])
    panel = panels.panel(trace, sort="cpu_memory_usage")
    first = unpacked(panel.first["operators"])
    threads = answered(panel, tab="operators", ask="rows", grouping="thread")

    assert (first["sort"], first["columns"][-1]["key"], first["rows"]["value"]["cpu_bytes"]) == (
        "cpu_bytes",
        "cpu_bytes",
        [64],
    )
    assert threads["columns"][-1]["key"] == "allocated_bytes"


def test_very_many_names_are_sent_in_part_and_counted_whole() -> None:
    trace = make_trace([event(f"op{number}", number * 10, number * 10 + number % 9) for number in range(12_000)])
    panel = panels.panel(trace)
    first = unpacked(panel.first["operators"])
    more = answered(panel, tab="operators", ask="rows", grouping="op")

    assert (len(first["rows"]["id"]), first["total"]) == (400, 12_000)
    assert (len(more["rows"]["label"]), more["total"]) == (10_000, 12_000)
    assert set(first["rows"]["value"]["self_ns"]) == {8}


def test_a_long_recording_is_not_sent_whole_and_its_windows_and_events_are_answered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    changes = [{"time_ns": at, "nbytes": 8, "event": 0} for at in (1, 2, 3)]
    trace = make_trace([event("aten::mm", 0, 40), event("aten::add", 50, 60)], allocations=changes)
    panel = panels.panel(trace)
    wholes = [("timeline", {"ask": "whole"}), ("memory", {"ask": "whole"})]
    wholes.append(("operators", {"ask": "events", "grouping": "op"}))
    assert None not in [answered(panel, tab=tab, **asked) for tab, asked in wholes]
    for tab in ("timeline", "operators"):
        monkeypatch.setattr(f"mtprof_nb.views.tabs.{tab}.{tab}_tab.MOST_SENT", 1)
    monkeypatch.setattr("mtprof_nb.views.tabs.memory.memory_tab._WHOLE_POINTS", 2)

    assert [answered(panel, tab=tab, **asked) for tab, asked in wholes] == [None] * 3
    assert answered(panel, tab="operators", ask="row_of", grouping="op", event=1) == {"row": 1}
    window = answered(panel, tab="memory", ask="window", begin_ns=0, end_ns=60)
    assert window["curves"][0]["nbytes"] == [8, 16, 24]
    assert answered(panel, tab="timeline", ask="launches", event=1)["total"] == 0


def test_columns_of_answers_are_sent_as_differences() -> None:
    trace = make_trace([event("aten::mm", 0, 9)] * 200)
    rows = answered(panels.panel(trace), tab="operators", ask="events", grouping="op")

    assert rows == {"event": {"deltas": [0] + [1] * 199}, "row": [0] * 200}


def lit_blocks(panel: Panel, selected: dict[str, Any] | None) -> list[bool] | None:
    """Which events of the whole timeline are lit."""
    whole = {"begin_ns": 0, "end_ns": 60_000, "pixels": 800}
    answer = answered(panel, tab="timeline", ask="window", **whole, selected=selected)
    lit: list[bool] | None = answer["blocks"]["lit"]
    return lit


def test_selecting_a_row_lights_its_events_and_a_click_finds_the_row(trace: Trace) -> None:
    panel = panels.panel(trace)
    rows = answered(panel, tab="operators", ask="events", grouping="op")
    row = answered(panel, tab="operators", ask="row_of", grouping="op", event=1)

    assert rows == {"event": [0, 1], "row": [0, 1]}
    assert lit_blocks(panel, {"grouping": "op", **row}) == [False, True]
    assert lit_blocks(panel, None) is None


def test_two_views_of_a_panel_with_their_own_selections_get_their_own_answers() -> None:
    cell = "<ipython-input-1-0>"
    trace = make_trace(
        [event("aten::mm", 0, 40_000, line=(cell, 1)), event("aten::add", 50_000, 60_000, line=(cell, 2))],
        sources={cell: "x @ y\nx + y"},
    )
    panel = panels.panel(trace)
    table, listing = {"grouping": "op", "row": 0}, {"grouping": "source", "row": 1}

    assert [lit_blocks(panel, view) for view in (table, listing, table, None)] == [
        *([True, False], [False, True], [True, False], None)
    ]
    assert answered(panel, tab="operators", ask="lit", grouping="op") == {"row": [0, 1], "of": [0, 1]}
    assert answered(panel, tab="lines", ask="lit", grouping="source") == {"row": [0, 1], "of": [0, 1]}


def test_a_tab_that_is_opened_late_is_drawn_for_every_view_without_a_selection(
    trace: Trace, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = [kind._replace(eager_events=1) if kind.name == "timeline" else kind for kind in TABS]
    monkeypatch.setattr("mtprof_nb.views.panel.widget.ALL_TABS", tuple(late))
    panel = panels.panel(trace)

    lit_blocks(panel, {"grouping": "op", "row": 1})
    asked(panel, tab="timeline", ask="first")

    assert unpacked(panel.first["timeline"])["blocks"]["lit"] is None


def test_a_question_that_cannot_be_answered_gets_an_answer_that_says_so(trace: Trace) -> None:
    content, buffers = asked(panels.panel(trace), tab="stacks", ask="chart", metric="speed")

    assert content["error"].startswith("ValueError: no stacks by 'speed'")
    assert buffers == []


def test_lone_surrogates_and_control_characters_reach_the_page() -> None:
    panel = panels.panel(make_trace([event("a\ud800\x00", 0, 10)]))

    assert unpacked(panel.first["operators"])["rows"]["label"] == ["a\ufffd\ufffd"]


def test_an_empty_profile_has_a_panel_that_says_so_and_no_empty_tabs() -> None:
    panel = panels.panel(empty_trace())

    assert panel.strip["notes"] == ["Nothing was recorded: no op ran, or no tensor runtime was imported."]
    assert (panel.tabs, panel.first) == ([], {})


def test_the_table_alone_has_one_tab_and_no_strip(trace: Trace) -> None:
    table = panels.panel(trace, tabs=("operators",))

    assert [tab["name"] for tab in table.tabs] == ["operators"]
    assert table.strip == {}


def test_an_unknown_sort_key_is_refused_before_anything_is_shown(trace: Trace) -> None:
    with pytest.raises(AttributeError, match="sort by one of"):
        panels.panel(trace, sort="speed")


def test_in_a_script_the_text_is_printed(trace: Trace, capsys: pytest.CaptureFixture[str]) -> None:
    panels.show(trace, limit=1)

    assert capsys.readouterr().out.endswith("showing 1 of 2 rows\n")


def test_a_cell_that_runs_again_closes_the_panel_it_showed_before(
    trace: Trace, monkeypatch: pytest.MonkeyPatch
) -> None:
    displayed: list[Panel] = []
    parent = {"header": {"msg_id": "run 1"}, "metadata": {"cellId": "cell"}}
    shell = SimpleNamespace(kernel=SimpleNamespace(get_parent=lambda: parent))
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(display=displayed.append))
    monkeypatch.setattr(panels, "_of_cell", {})

    panels.show(trace)
    panels.show(trace)
    parent["header"]["msg_id"] = "run 2"
    panels.show(trace)

    assert [panel.comm is None for panel in displayed] == [True, True, False]


def test_a_closed_panel_frees_its_trace_and_itself_without_the_collector() -> None:
    trace = training_run(1_000)
    panel = panels.panel(trace)
    answered(panel, tab="timeline", ask="window", begin_ns=0, end_ns=1_000_000, pixels=800)
    del panel.send
    gone = [weakref.ref(trace), weakref.ref(panel)]
    gc.collect()
    gc.disable()
    try:
        del trace
        panel.close()
        assert gone[0]() is None
        del panel
        assert gone[1]() is None
    finally:
        gc.enable()


def test_modules_come_after_what_they_import() -> None:
    ordered = modules.by_imports(
        {"a.js": 'import { b } from "./b.js";\n', "b.js": 'import {\n  c,\n} from "./c.js";\n', "c.js": ""}
    )

    assert list(ordered) == ["c.js", "b.js", "a.js"]
    with pytest.raises(ValueError, match=r"a\.js -> b\.js -> a\.js"):
        modules.by_imports({"a.js": 'import { b } from "./b.js";\n', "b.js": 'import { a } from "./a.js";\n'})


def test_linked_modules_keep_their_names_apart_and_hand_over_what_they_export() -> None:
    script = modules.linked(
        {
            "b.js": 'import { one, Two } from "../a.js";\n/** Adds. */\nexport const three = () => one + Two.size;\n',
            "a.js": "// The first.\nconst hidden = 1;\nexport const one = hidden;\nexport class Two {}\n",
        }
    )

    assert script == (
        "const modules = {};\n"
        'modules["a.js"] = (() => {\nconst hidden = 1;\nconst one = hidden;\nclass Two {}\n'
        "return { one, Two };\n})();\n"
        'modules["b.js"] = (() => {\nconst { one, Two } = modules["a.js"];\nconst three = () => one + Two.size;\n'
        "return { three };\n})();\n"
    )


def test_every_tab_has_its_es_module() -> None:
    script = modules.panel_script(tuple(kind.name for kind in TABS))

    assert all(f'modules["{kind.name}.js"] = ' in script for kind in TABS)


def test_the_widget_has_the_script_in_a_packed_form() -> None:
    tabs = tuple(kind.name for kind in TABS)
    packed = re.search(r'packed = "([^"]*)"', modules.script(tabs))

    assert packed is not None
    assert unpacked(b64decode(packed[1])) == f"{modules.panel_script(tabs)}export {{ render }};\n"
