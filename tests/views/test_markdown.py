"""A profile as Markdown: a headline, lines and ops, and other people's text inert in it."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from traces import event, make_trace

from mtprof_nb.model.trace import Trace, empty_trace
from mtprof_nb.recording import Recording


@pytest.fixture
def trace() -> Trace:
    return make_trace(
        [
            event("aten::mm", 0, 30_000, line=("train.py", 2)),
            event("aten::add", 40_000, 50_000, line=("train.py", 3), phase="backward"),
        ],
        sources={"train.py": "import torch\ny = x | w\n    z = y + 1"},
        label="Cell [3]",
    )


def test_a_headline_the_slowest_lines_and_the_top_ops_are_told(trace: Trace) -> None:
    assert Recording(trace).to_markdown() == "\n".join(
        [
            r"**Cell \[3\]**: 60 % of this recording is the forward pass; train.py:2 causes 60 % of the whole.",
            "",
            "wall 50.0 µs, in ops 40.0 µs, ops 2, threads 1",
            "",
            "Of the program's 50.0 µs: forward 60.0 %, backward 20.0 %, outside ops 20.0 %",
            "",
            "| Line | Source | Self | Share |",
            "| --- | --- | ---: | ---: |",
            r"| `train.py:2` | `y = x \| w` | 30.0 µs | 60.0 % |",
            "| `train.py:3` | `z = y + 1` | 10.0 µs | 20.0 % |",
            "",
            "| Name | Calls | Self | Share | Total |",
            "| --- | ---: | ---: | ---: | ---: |",
            "| `aten::mm` | 1 | 30.0 µs | 60.0 % | 30.0 µs |",
            "| `aten::add` | 1 | 10.0 µs | 20.0 % | 10.0 µs |",
            "",
        ]
    )


def test_the_ops_are_named_sorted_and_cut_as_asked(trace: Trace) -> None:
    text = Recording(trace).to_markdown(name="mine", sort="label", limit=1)

    assert text.startswith("**mine**: ")
    assert "| `aten::mm` |" in text
    assert "| `aten::add` |" not in text
    assert text.endswith("\n\nshowing 1 of 2 rows\n")


def test_an_empty_profile_says_so() -> None:
    assert Recording(empty_trace(label="mine")).to_markdown() == (
        "**mine**\n\n> Nothing was recorded: no op ran, or no tensor runtime was imported.\n"
    )


@given(st.text(alphabet=st.characters(exclude_categories=()), min_size=1, max_size=60))
def test_no_name_becomes_markup_or_leaves_its_cell(name: str) -> None:
    trace = make_trace([event(name, 0, 100, line=(name, 1))], sources={name: name}, label=name)
    text = Recording(trace).to_markdown()

    text.encode()
    for line in text.splitlines():
        if line.startswith("| "):
            outside_code = re.sub(r"`[^`]*`", "", line)
            assert re.fullmatch(r"[\w\s|.,:%µ<≈–()-]*", outside_code), line
            assert len(re.findall(r"(?<!\\)\|", re.sub(r"`[^`]*`", "", line))) in (5, 6)
    headline = text.splitlines()[0]
    assert not re.search(r"(?<!\\)[<\[`]", headline.replace(r"\\", ""))
