"""The panel without scripts: text in a fixed form, HTML and SVG that hold nothing live."""

import re
import xml.etree.ElementTree as ElementTree
from base64 import b64decode
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from synthetic import training_run
from traces import event, make_trace

from mtprof_nb.model.trace import OutsideOps, SourceLine, Trace, empty_trace
from mtprof_nb.views.scene import Scene
from mtprof_nb.views.static import static_page as static
from mtprof_nb.views.static.svg import round_ticks, stacks_svg, timeline_svg

HARMLESS = {"section", "div", "span", "b", "table", "thead", "tbody", "tr", "th", "td", "img", "pre", "code"}
HARMLESS_IN_PICTURES = {f"{{http://www.w3.org/2000/svg}}{tag}" for tag in ("svg", "g", "path", "text")}
IMAGE = re.compile(r'<img [^>]*src="data:image/svg\+xml;base64,([^"]*)">')


class Markup(HTMLParser):
    """Collects every tag and attribute."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes.update(name for name, _ in attrs)


def pictures(page: str) -> list[ElementTree.Element]:
    """The images of a page, read."""
    return [ElementTree.fromstring(b64decode(encoded)) for encoded in IMAGE.findall(page)]


@pytest.fixture
def trace() -> Trace:
    return make_trace(
        [
            event("aten::linear", 0, 60_000),
            event("aten::mm", 10_000, 50_000),
            event("MmBackward0", 70_000, 100_000, phase="backward"),
        ],
        began_ns=0,
        ended_ns=120_000,
        label="Cell [3]",
    )


def test_the_text_is_an_aligned_table_with_its_figures(trace: Trace) -> None:
    assert static.text(Scene(trace)) == "\n".join(
        [
            "Cell [3]",
            "wall 120 µs, in ops 90.0 µs, ops 3, threads 1",
            "Of the program's 120 µs: forward 50.0 %, backward 25.0 %, outside ops 25.0 %",
            "50 % of this recording is the forward pass.",
            "",
            "Name          Calls     Self   Share    Total  Average",
            "------------------------------------------------------",
            "aten::mm          1  40.0 µs  33.3 %  40.0 µs  40.0 µs",
            "MmBackward0       1  30.0 µs  25.0 %  30.0 µs  30.0 µs",
            "aten::linear      1  20.0 µs  16.7 %  60.0 µs  60.0 µs",
        ]
    )


def test_the_text_is_sorted_and_cut_as_asked(trace: Trace) -> None:
    text = static.text(Scene(trace, "mine", "The cell raised ValueError.", "total_ns", 1))

    assert text.splitlines()[:2] == ["mine", "The cell raised ValueError."]
    assert [line.split()[0] for line in text.splitlines() if line.startswith(("aten", "Mm"))] == ["aten::linear"]
    assert text.endswith("showing 1 of 3 rows")


def test_the_column_that_is_sorted_by_is_the_one_that_is_shown() -> None:
    trace = make_trace(
        [event("aten::linear", 0, 50), event("aten::mm", 10, 40), event("aten::ones", 60, 70)],
        allocations=[{"time_ns": 20, "nbytes": 512, "event": 1}, {"time_ns": 65, "nbytes": 256, "event": 2}],
    )
    usual, asked = (static.text(Scene(trace, sort=sort)).splitlines() for sort in ("self_bytes", "cpu_bytes"))

    assert [(line.split()[0], line[-6:].strip()) for line in usual if line.startswith(("Name", "aten"))] == [
        ("Name", "Memory"),
        ("aten::mm", "512 B"),
        ("aten::ones", "256 B"),
        ("aten::linear", "0 B"),
    ]
    assert [(line.split()[0], line[-7:].strip()) for line in asked if line.startswith(("Name", "aten"))] == [
        ("Name", "CPU mem"),
        ("aten::linear", "512 B"),
        ("aten::mm", "512 B"),
        ("aten::ones", "256 B"),
    ]


def test_the_slowest_lines_stand_before_the_ops() -> None:
    trace = make_trace(
        [
            event("aten::mm", 0, 30_000, line=("train.py", 2)),
            event("aten::add", 40_000, 50_000, line=("train.py", 3), phase="backward"),
            event("aten::fill_", 60_000, 61_000),
        ],
        sources={"train.py": "import torch\ny = x.mm(x)\n    z = y + 1"},
    )
    lines = static.text(Scene(trace)).splitlines()
    first = lines.index("Line               Self   Share  Forward  Backward    Total  Ops  Source")

    assert lines[first + 2 : first + 6] == [
        "train.py:2      30.0 µs  49.2 %  30.0 µs      0 µs  30.0 µs    1  y = x.mm(x)",
        "train.py:3      10.0 µs  16.4 %     0 µs   10.0 µs  10.0 µs    1  z = y + 1",
        "(unattributed)  1.00 µs   1.6 %  1.00 µs      0 µs  1.00 µs    1",
        "",
    ]
    assert first < next(number for number, line in enumerate(lines) if line.startswith("Name "))
    assert "showing 1 of 3 lines" in static.text(Scene(trace, limit=1))
    page = static.html(Scene(trace))
    assert page.index("y = x.mm(x)") < page.index("aten::mm")


def test_lines_that_took_long_outside_ops_stand_among_the_slowest() -> None:
    trace = make_trace(
        [event("aten::mm", 0, 30_000, line=("train.py", 2))],
        sources={"train.py": "import torch\ny = x.mm(x)\nread(y)"},
        outside={SourceLine("train.py", 2): OutsideOps(0, 0), SourceLine("train.py", 3): OutsideOps(90_000, 90_000)},
    )
    lines = static.text(Scene(trace)).splitlines()
    first = lines.index("Line           Time   Share  Outside ops    Total  Ops  Source")

    assert lines[first + 2 : first + 5] == [
        "train.py:3  90.0 µs  75.0 %      90.0 µs  90.0 µs    0  read(y)",
        "train.py:2  30.0 µs  25.0 %         0 µs  30.0 µs    1  y = x.mm(x)",
        "",
    ]


def test_the_axis_has_round_numbers() -> None:
    assert round_ticks(706_000_000) == [0, 200_000_000, 400_000_000, 600_000_000]
    assert round_ticks(1_000) == [0, 200, 400, 600, 800, 1_000]
    assert round_ticks(1) == [0, 1]


def test_an_empty_profile_is_a_title_and_a_line() -> None:
    assert static.text(Scene(empty_trace(label="Cell [1]"))).splitlines() == [
        "Cell [1]",
        "Nothing was recorded: no op ran, or no tensor runtime was imported.",
    ]
    assert "Nothing was recorded" in static.html(Scene(empty_trace()))
    assert "<img" not in static.html(Scene(empty_trace()))


def test_the_html_needs_no_script_and_holds_table_timeline_and_stacks(trace: Trace) -> None:
    page = static.html(Scene(trace))
    markup = Markup(page)

    assert markup.tags <= HARMLESS
    assert not any(name.startswith("on") or name == "href" for name in markup.attributes)
    assert len(pictures(page)) == page.count("src=") == 2
    assert page.count("<tr ") == 4
    assert "showing" not in page
    assert "showing 2 of 3 rows" in static.html(Scene(trace, limit=2))


def test_the_table_alone_has_no_charts(trace: Trace) -> None:
    assert "<img" not in static.html(Scene(trace), charts=False)


def test_the_timeline_is_to_scale() -> None:
    trace = make_trace([event("aten::mm", 0, 500), event("aten::add", 500, 1_000)], began_ns=0, ended_ns=1_000)

    assert re.findall(r"M([\d.]+),[\d.]+h([\d.]+)", timeline_svg(trace)) == [("96", "382"), ("478", "382")]


def test_the_stacks_are_to_scale_the_largest_callee_first() -> None:
    trace = make_trace([event("aten::add", 0, 250), event("aten::mm", 250, 1_000)])
    picture = stacks_svg(trace)

    assert sorted(re.findall(r"M([\d.]+),[\d.]+h([\d.]+)", picture)) == [("0", "645"), ("0", "860"), ("645", "215")]
    labels = re.findall(r'<text x="([\d.]+)" y="[\d.]+">([^<]*)', picture)
    assert sorted(labels) == [("322.5", "mm"), ("430", "all"), ("752.5", "add")]


def test_stacks_of_libraries_are_folded_in_the_picture() -> None:
    library = [("/usr/lib/site-packages/lightning/b.py", 2, "run"), ("/usr/lib/site-packages/lightning/a.py", 1, "fit")]
    trace = make_trace([event("aten::mm", 0, 500, stack=library), event("aten::add", 600, 900, stack=[])])

    assert ">lightning (2 frames)<" in stacks_svg(trace)
    assert ">fit  a.py:1<" in stacks_svg(trace, show_all=True)


def test_a_large_trace_is_still_a_small_page() -> None:
    assert len(static.html(Scene(training_run(100_000)))) < 30_000


def test_pictures_are_well_formed(trace: Trace) -> None:
    for picture in (timeline_svg(trace), stacks_svg(trace)):
        ElementTree.fromstring(picture)


hostile = st.one_of(
    st.sampled_from(
        ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "</svg><script>", "&lt;b&gt;", "a\x00b"]
    ),
    st.text(alphabet=st.characters(exclude_categories=()), max_size=60),
)


@settings(max_examples=60)
@given(hostile, hostile, hostile)
def test_no_name_becomes_markup(op: str, file: str, label: str) -> None:
    trace = make_trace(
        [
            event(op or "op", 0, 100, line=(file, 1), stack=[(file, 1, op)]),
            event(label, 200, 300, kind="scope", stack=[(file, 2, label)]),
        ],
        label=label,
    )
    page = static.html(Scene(trace, label or None, file or None))

    assert Markup(page).tags <= HARMLESS
    assert not any(name.startswith("on") for name in Markup(page).attributes)
    for picture in pictures(page):
        assert {element.tag for element in picture.iter()} <= HARMLESS_IN_PICTURES
    page.encode()
    static.text(Scene(trace, label or None)).encode()
