"""No text of a recording makes a terminal or a browser obey it: every writer, on recordings whose texts all try."""

import ast
import html
import json
import re
import zlib
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from rank_traces import job
from synthetic import training_run
from traces import event, make_trace

import mtprof_nb as mtp
from mtprof_nb.advice.finding import Finding
from mtprof_nb.analysis.ranks.stragglers import straggler
from mtprof_nb.capture.hook import SoFar
from mtprof_nb.cell.cell_recording import print_note
from mtprof_nb.cell.progress import RecordingLine
from mtprof_nb.cli.program import main
from mtprof_nb.comparison.checked_fix import CheckedFix
from mtprof_nb.errors import LoadError, collected_warnings, warn
from mtprof_nb.model.records import Samples
from mtprof_nb.model.trace import Collective, Frame, SourceLine, StackInterner, Trace
from mtprof_nb.recording import Recording
from mtprof_nb.tables.row_table import RowTable
from mtprof_nb.tables.writers.as_markdown import as_markdown
from mtprof_nb.views.page import html_page
from mtprof_nb.views.panel import show_panel
from mtprof_nb.views.progress_bar import _Bar

PACKAGE = Path(mtp.__file__).parent
#: ESC and a title of the window, NUL, C1, turned writing, ends of lines, a lone half of a pair, an invisible tag.
HARM = "\x1b[31m\x1b]0;owned\x07\x00\x9b1m\u202e\u2066\u061c\u200f\r\nBROKEN\v\x85\u2028\u2029\ud800\U000e0041"
#: A message may have several lines.
ONE_LINE = HARM.replace("\n", "")
#: Fields whose texts a reader or a rule compares, and which a file cannot choose freely.
_KEPT = {"kind", "devices", "hooks", "trace_id", "recorded"}


def hostile(value: Any, harm: str = HARM) -> Any:
    """`value` with harm behind each of its texts, in tuples, mappings and records too."""
    if isinstance(value, str):
        return value + harm
    if isinstance(value, Mapping):
        return {hostile(key, harm): hostile(one, harm) for key, one in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        found = {part.name: getattr(value, part.name) for part in fields(value) if part.init}
        changed = {name: hostile(one, harm) for name, one in found.items() if name not in _KEPT}
        if changed.get("sources"):  # they have lines
            changed["sources"] = {file: text.replace("\nBROKEN", "") for file, text in changed["sources"].items()}
        return replace(value, **changed)
    if isinstance(value, tuple):
        made = [hostile(one, harm) for one in value]
        return type(value)(*made) if hasattr(value, "_fields") else tuple(made)
    return hostile(dict(value), harm) if isinstance(value, MappingProxyType) else value


def trained() -> Trace:
    return replace(training_run(600), notes=("2 events were not understood",), lines_note="some lines are missing")


def on_devices() -> Trace:
    """Kernels, copies and collectives, with samples of Python stacks."""
    interner = StackInterner()
    stack = interner.stack([Frame("run.py", 2, "train"), Frame("run.py", 1, "<module>")])
    rows: list[Any] = [event("train", 0, 9_000, kind="scope"), event("aten::mm", 10, 900, module="net")]
    for at in range(2_000, 8_000, 100):
        rows.append(event("gemm", at, at + 40, kind="kernel", device="CUDA", launcher=1, thread=7))
    rows.append(event("Memcpy HtoD (Pageable -> Device)", 8_100, 8_200, kind="copy", device="CUDA", moved_bytes=8))
    reduced = Collective("all_reduce", "0", 2, "float", 3, 3)
    rows.append(event("nccl:all_reduce", 8_300, 8_900, kind="collective", device="CUDA", collective=reduced))
    trace = make_trace(rows, began_ns=0, ended_ns=10_000)
    moments = np.arange(0, 9_000, 50)
    columns = (moments, moments, np.zeros(len(moments), np.int64), np.full(len(moments), stack), moments < 0)
    sources = {"run.py": "def train():\n    step()\n"}
    return replace(trace, samples=Samples(*columns), stacks=interner.tree(), sources=sources)


TRACES = {"one process": trained, "devices": on_devices, "ranks": lambda: job(4, 2)}


def panel_texts(trace: Trace) -> list[str]:
    panel = show_panel.panel(trace)
    firsts = [json.dumps(json.loads(zlib.decompress(first)), ensure_ascii=False) for first in panel.first.values()]
    strip = json.dumps([panel.strip, panel.ranks, panel.tabs], ensure_ascii=False)
    carried = [json.dumps(tab.carried(), ensure_ascii=False) for tab in panel._tabs.values()]
    return [*panel._static.values(), repr(panel), *map(_inner, (*firsts, strip, *carried))]


def _inner(document: str) -> str:
    """The texts of a JSON document, one a line."""
    found: list[str] = []

    def visit(value: Any) -> None:
        if isinstance(value, str):
            found.append(value)
        for one in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            visit(one)

    visit(json.loads(document))
    return "\n".join(text.replace("\n", " ") for text in found)


def compared(trace: Trace) -> list[str]:
    other = Recording(replace(trace, label=f"other{HARM}"))
    found = mtp.compare(other, Recording(trace), names=(f"a{HARM}", f"b{HARM}"))
    bundle = found._repr_mimebundle_()
    return [repr(found), str(found.verdict), found.to_markdown(), *bundle.values()]


def findings(trace: Trace) -> list[str]:
    finding = Finding(f"title{HARM}", f"evidence{HARM}", f"fix{HARM}", SourceLine(f"a{HARM}", 3), 5, where=f"a{HARM}:3")
    checked = CheckedFix(finding, mtp.compare(Recording(trace), Recording(trace)), None, 1, 2)
    advice = Recording(trace).advice()
    advice._rows.append(finding)
    told = (repr(advice), advice._repr_html_(), *advice.markdown())
    return [str(finding), str(checked), *told]


def tables(trace: Trace) -> list[RowTable[Any]]:
    """Every table that a recording answers with."""
    recording = Recording(trace)
    devices, ranks = recording.devices(), recording.ranks()
    of_devices = (devices, devices.kernels(), devices.copies(), devices.collectives())
    of_lines = (recording.lines(), recording.functions(), recording.steps(), recording.advice())
    return [*of_lines, *of_devices, ranks, ranks.collectives()]


#: A way to each text that the package writes for people, by the class or module that writes it.
WRITERS: dict[str, Callable[[Trace], list[str]]] = {
    "tables/text_table.py": lambda trace: [
        *(Recording(trace).key_averages(group_by_stack_n=5, group_by_input_shape=shapes).table() for shapes in (0, 1)),
        str(Recording(trace).events()),
    ],
    "tables/averages.py": lambda trace: [*map(repr, Recording(trace).key_averages())],
    "tables/event.py": lambda trace: [*map(repr, Recording(trace).events()[:20])],
    "tables/events.py": lambda trace: [repr(Recording(trace).events())],
    "tables/row_table.py": lambda trace: [
        *map(repr, tables(trace)),
        *(table.table() for table in tables(trace)),
        *(table._repr_html_() for table in tables(trace)),
        *(as_markdown(table.content()) for table in tables(trace)),
    ],
    "tables/step_table.py": lambda trace: [repr(Recording(trace).steps())],
    "tables/advice_list.py": findings,
    "advice/finding.py": findings,
    "comparison/checked_fix.py": findings,
    "recording.py": lambda trace: [
        repr(Recording(trace)),
        Recording(trace).to_markdown(),
        *Recording(trace)._repr_mimebundle_().values(),
        repr(Recording(trace).summary()),
    ],
    "profiler.py": lambda _: [repr(mtp.profile(name=f"a{HARM}"))],
    "model/trace.py": lambda trace: [repr(trace)],
    "analysis/ranks/stragglers.py": lambda trace: [str(straggler(trace))],
    "comparing.py": compared,
    "comparison/verdicts.py": compared,
    "views/panel/widget.py": panel_texts,
    "errors.py": lambda _: [*noted(lambda: warn(f"message{ONE_LINE}")), str(LoadError(f"no {ONE_LINE}"))],
}
#: Texts that are data: stacks, numbers of devices, and parts of messages that `errors.py` writes.
DATA = {"model/stack_tree.py", "analysis/devices/recorded_devices.py", "loading/one_job.py"}


def noted(act: Callable[[], None]) -> list[str]:
    messages: list[str] = []
    with collected_warnings(messages):
        act()
    return messages


def is_harmless(text: str) -> bool:
    """Whether there is no character of harm, and no line that a name has begun."""
    plain = html.unescape(text)
    obeyed = {one for one in HARM if not one.isascii() or not one.isprintable()} - {"\n"}
    return not obeyed & set(plain) and not any(line.startswith("BROKEN") for line in plain.split("\n"))


@pytest.mark.parametrize("kind", TRACES)
@pytest.mark.parametrize("writer", WRITERS)
def test_a_writer_shows_no_character_that_is_an_instruction(writer: str, kind: str) -> None:
    trace = hostile(TRACES[kind]())
    for text in WRITERS[writer](trace):
        assert is_harmless(text), repr(text)


def test_every_class_with_a_text_of_its_own_is_among_the_writers() -> None:
    texts = {"__repr__", "__str__", "table", "to_markdown", "_repr_mimebundle_", "_repr_html_", "_repr_pretty_"}
    found = set()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ClassDef) and texts & {getattr(part, "name", "") for part in node.body}:
                found.add(path.relative_to(PACKAGE).as_posix())

    assert found == WRITERS.keys() | DATA


def test_a_line_of_progress_obeys_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    published: list[str] = []

    class Publisher:
        def publish(self, bundle: dict[str, str], *_: Any, **__: Any) -> None:
            published.extend(bundle.values())

    class Shell:
        display_pub = Publisher()

    so_far = SoFar(lines=[(SourceLine(f"a{HARM}", 3), 5)], ops=[(f"op{HARM}", 7)], resident_bytes=8)
    line = RecordingLine(Shell(), f"Cell{HARM}", lambda: 3, lambda: so_far)  # type: ignore[arg-type]
    line._show()
    _Bar(f"file{HARM}", lambda title, _: published.append(title)).remove()
    bar = _Bar(f"file{HARM}", lambda title, _: published.append(title))
    bar._next = 0
    bar.update(0.5)
    print_note(f"no file{ONE_LINE}")

    assert len(published) == 3
    assert [text for text in (*published, capsys.readouterr().err) if not is_harmless(text)] == []


def test_the_terminal_program_obeys_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("before", "after"):
        Recording(hostile(trained())).save(tmp_path / f"{name}.mtp")
    damaged = tmp_path / "damaged.json"
    damaged.write_text(json.dumps({"traceEvents": [{"ph": HARM, "ts": HARM}, HARM]})[:-20], "utf-8")
    main(["show", str(tmp_path / "after.mtp")])
    main(["compare", str(tmp_path / "before.mtp"), str(tmp_path / "after.mtp")])
    assert main(["show", str(damaged)]) == 1
    assert main(["show", str(tmp_path / "missing\x1b[31m.json")]) == 1

    printed = capsys.readouterr()
    assert (is_harmless(printed.out), is_harmless(printed.err)) == (True, True)


def test_a_page_obeys_nothing() -> None:
    for make in TRACES.values():
        page = html_page.page(show_panel.scene_of(hostile(make())))
        assert is_harmless(page if isinstance(page, str) else "".join(page))


def test_very_long_texts_are_cut_where_people_read_them() -> None:
    for make in TRACES.values():
        trace = hostile(make(), "n" * 200_000)
        # The summary is data; its texts are those of the panel.
        for writer in WRITERS.keys() - {"recording.py"}:
            assert max(map(len, WRITERS[writer](trace)), default=0) < 200_000, writer


@pytest.mark.parametrize("kind", TRACES)
def test_markup_of_a_recording_stays_text(kind: str) -> None:
    markup = "<script>alert(1)</script>|`*x*`"
    for table in tables(hostile(TRACES[kind](), markup)):
        assert "<script" not in table._repr_html_()
        for row in as_markdown(table.content()).splitlines():
            assert "<script" not in re.sub(r"(?<!\\)`[^`]*`", "", row.replace("\\<", "")), row


def test_data_stay_exact() -> None:
    trace = hostile(trained())

    assert {event.name for event in Recording(trace).events()} <= set(trace.names)
    assert all(name.endswith(HARM) for name in trace.names)
    assert any(key.endswith(HARM) for key in Recording(trace).key_averages().to_dataframe()["key"])
