"""A comparison as text, Markdown and HTML."""

import re

from traces import event, make_trace

from mtprof_nb.analysis import units
from mtprof_nb.comparison.alternation import Alternated, TimedBlock
from mtprof_nb.comparison.compared import Compared, of_functions, of_recordings
from mtprof_nb.comparison.sides import Side, Sides
from mtprof_nb.model.trace import Recorded, Trace
from mtprof_nb.views.comparison.comparison_html import html, markdown, text
from mtprof_nb.views.comparison.comparison_tables import percent_text


def _run(*ops: tuple[str, int], **scalars: object) -> Trace:
    rows, now = [], 0
    for name, length in ops:
        rows.append(event(name, now, now + length))
        now += length
    return make_trace(rows, **scalars)


def _compared(a: Trace, b: Trace) -> Compared:
    return of_recordings(Sides(Side("before", (a,)), Side("after", (b,))))


BEFORE = _run(("aten::mm", 9_000_000), ("aten::add", 1_000_000), ("aten::add", 1_000_000))
AFTER = _run(("aten::mm", 6_000_000), ("aten::add", 1_000_000))


def test_the_text_has_the_verdict_first_then_the_certain_changes_then_the_times() -> None:
    assert text(_compared(BEFORE, AFTER)).splitlines() == [
        "after against before: cannot tell, 0.64 × the time",
        "One run each: below a factor of 10, noise between two recordings can be the reason.",
        "",
        "Changed, whatever the noise  before  after  Change",
        "-" * 61,
        "ops                               3      2  −33 %",
        "op aten::add                      2      1  called less often",
        "",
        "Time            before    after         Δ  Ratio  Interval  Verdict",
        "-" * 71,
        "wall time      11.0 ms  7.00 ms  −4.00 ms   0.64         –  cannot tell",
        "phase forward  11.0 ms  7.00 ms  −4.00 ms   0.64         –  cannot tell",
        "op aten::mm    9.00 ms  6.00 ms  −3.00 ms   0.67         –  cannot tell",
        "op aten::add   2.00 ms  1.00 ms  −1.00 ms   0.50         –  cannot tell",
    ]


def test_rows_beyond_a_limit_are_counted() -> None:
    lines = text(_compared(BEFORE, AFTER), limit=1).splitlines()

    assert "and 1 more change" in lines
    assert lines[-1] == "and 1 row with smaller differences"


def test_rows_with_too_little_time_are_folded() -> None:
    before = _run(("aten::mm", 9_000_000), ("aten::add", 100))

    assert text(_compared(before, before)).splitlines()[-1] == "and 1 row with smaller differences"


def test_differences_between_the_recordings_are_said() -> None:
    other = _run(("aten::mm", 6_000_000), recorded=Recorded(with_stack=True))

    assert text(_compared(BEFORE, other)).splitlines()[1:3] == [
        "The two sides were recorded with different flags.",
        "Flags differ (a: none; b: with_stack): only what both have is compared, and times are not judged.",
    ]


def _in_turns(count: int) -> Compared:
    a, b = tuple(2e6 + 1e3 * at for at in range(count)), tuple(1e6 + 1e3 * at for at in range(count))
    times = Alternated(a, b, TimedBlock(10, 1), TimedBlock(20, 1), planned=count, seconds=4.2)
    return of_functions(Sides(Side("f", ()), Side("g", ())), times)


def test_functions_say_how_they_were_measured() -> None:
    lines = text(_in_turns(20)).splitlines()

    assert lines[:4] == [
        "g against f: faster, 0.50 × the time (0.50 to 0.50)",
        "20 pairs of blocks in turns: 99 % interval 0.50 to 0.50.",
        "Measured unprofiled in 20 pairs of blocks, in random order, in 4.2 s "
        "(f: 10 calls a block, g: 20 calls a block). Wilcoxon signed-rank test: p < 0.0001.",
        "Times are medians of the blocks. A ratio is the median of the ratios of pairs of blocks, "
        "not the quotient of the times.",
    ]
    assert lines[-1].split("  ")[-1] == "faster"
    assert " ".join(lines[-1].split()) == "median call 2.01 ms 1.01 ms −1.00 ms 0.50 0.50 to 0.50 faster"


def test_an_interrupted_measurement_says_so() -> None:
    times = Alternated(
        (2e6,) * 7, (1e6,) * 7, TimedBlock(10, 1), TimedBlock(20, 1), planned=90, seconds=1.0, is_interrupted=True
    )

    found = of_functions(Sides(Side("f", ()), Side("g", ())), times)

    assert "Interrupted after 7 of 90 pairs: the verdict is on these." in text(found)


def test_markdown_has_a_table_of_each() -> None:
    lines = markdown(_compared(BEFORE, AFTER)).splitlines()

    assert lines[0] == "**after against before: cannot tell, 0.64 × the time**"
    assert "| op aten::add | 2 | 1 | called less often |" in lines
    assert "| op aten::mm | 9.00 ms | 6.00 ms | −3.00 ms | 0.67 | – | cannot tell |" in lines


HOSTILE = "a|b`<script>alert(1)</script>\n*x*"


def test_names_cannot_break_out_of_a_table() -> None:
    found = _compared(_run((HOSTILE, 5_000_000)), _run((HOSTILE, 5_000_000), (HOSTILE, 5_000_000)))

    row = next(line for line in markdown(found).splitlines() if "script" in line)
    assert row.startswith("| op a\\|b\\`\\<script\\>alert(1)\\</script\\>\ufffd\\*x\\* | 1 | 2 |")
    assert "<script>" not in html(found)
    assert "&lt;script&gt;" in html(found)


def test_html_has_the_tables_and_no_scripts() -> None:
    page = html(_compared(BEFORE, AFTER))

    assert page.count("<table") == 2
    assert "<b>after against before: cannot tell, 0.64 × the time</b>" in page


def test_numbers_are_short() -> None:
    assert [units.ratio(ratio) for ratio in (0.5, 1.234, 12.34, 1234.0)] == ["0.50", "1.23", "12.3", "1,230"]
    assert [units.ratio(ratio) for ratio in (0.0, 0.0002, 0.0128)] == ["0.00", "<0.001", "0.013"]
    assert [percent_text(share) for share in (-0.334, 0.052, 1.5)] == ["−33 %", "+5.2 %", "+150 %"]
    assert [percent_text(share) for share in (-0.9996, -0.992, -1.0)] == ["−99.9 %", "−99.2 %", "−100 %"]


def test_one_run_of_each_has_the_quotient_of_its_times_and_no_word_about_pairs() -> None:
    assert "pairs" not in text(_compared(BEFORE, AFTER))


def test_changed_lines_are_a_table_that_keeps_their_indentation() -> None:
    sources = {"a.py": "def f(x):\n    return x + 1"}, {"a.py": "def f(x):\n    return x * 2"}
    a, b = (make_trace([event("aten::add", 0, 3_000, line=("a.py", 2))], sources=text) for text in sources)
    table = html(_compared(a, b)).rpartition("<table")[2]
    rows = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in table.split("<tr")[1:]]

    assert rows[0] == ["Line", "Time", "a.py", "Line", "Time", "a.py", "Change"]
    assert rows[-1] == [
        *("2", "3.00 µs", "<code>\u00a0\u00a0\u00a0\u00a0return x + 1</code>"),
        *("2", "3.00 µs", "<code>\u00a0\u00a0\u00a0\u00a0return x * 2</code>"),
        "edited",
    ]
