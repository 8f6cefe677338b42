"""Other people's text, made safe to show."""

from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st
from traces import event, make_trace

from mtprof_nb.errors import LONGEST
from mtprof_nb.tables.writers.as_html import escaped
from mtprof_nb.views.escaped_text import fitted, hover, short_name, shown


def test_unprintable_characters_are_shown_as_such() -> None:
    assert shown("a\x00b\nc\u202ed\ud800e") == "a\ufffdb\ufffdc\ufffdd\ufffde"


def test_a_very_long_name_is_cut_in_the_middle() -> None:
    text = shown("a" * 5_000 + "z" * 5_000)

    assert len(text) == LONGEST
    assert text.startswith("aaa")
    assert text.endswith("zzz")
    assert "…" in text


def test_markup_is_escaped() -> None:
    assert escaped("<script>'\"&") == "&lt;script&gt;&#x27;&quot;&amp;"
    assert hover("<b>bold</b>&lt;") == "&lt;b&gt;bold&lt;/b&gt;&amp;lt;"


def test_a_long_name_is_wrapped_in_a_hover_without_cutting_an_escape() -> None:
    lines = hover("<" * 200).split("<br>")

    assert [line.count("&lt;") for line in lines] == [56, 56, 56, 32]


@pytest.mark.parametrize(("characters", "text"), [(9, "aten::mm"), (8, "aten::mm"), (5, "aten…"), (3, "")])
def test_a_name_is_cut_to_its_room_or_left_out(characters: int, text: str) -> None:
    assert fitted("aten::mm", characters) == text


def test_a_short_name_has_no_namespace() -> None:
    assert short_name("aten::mm") == "mm"
    assert short_name("scope::") == "scope::"
    assert short_name("Memcpy HtoD (Pageable -> Device)") == "Memcpy HtoD (Pageable -> Device)"
    assert short_name("void at::native::(anonymous namespace)::index<float, -2>(at::Info<float>)") == "index"
    assert short_name("autograd::engine::evaluate_function: AddmmBackward0") == "AddmmBackward0"


@given(st.text(alphabet=st.characters(exclude_categories=()), max_size=300))
def test_no_text_becomes_markup(name: str) -> None:
    tags = []

    class Reader(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            tags.append((tag, attrs))

    reader = Reader()
    reader.feed(f'<p title="{escaped(name)}">{escaped(name)}</p>{hover(name)}')
    reader.close()

    assert [tag for tag, _ in tags if tag != "br"] == ["p"]
    assert tags[0][1] == [("title", shown(name))]
    escaped(name).encode()


def test_only_a_bounded_part_of_a_name_is_searched() -> None:
    seen: list[int] = []
    trace = make_trace([event("n" * 1_000_000, 0, 5), event("aten::mm", 6, 9)])

    assert trace.where_name(lambda name: bool(seen.append(len(name)) or name == "aten::mm")).tolist() == [False, True]
    assert seen == [20_000, 8]
    assert short_name("a::" + "n" * 1_000_000) == "n" * 76 + "…" + "n" * 40
