"""Which line of one program is which line of another: by file and text, as numbers move when a program is edited."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from pathlib import Path

from mtprof_nb.model.source_files import is_cell
from mtprof_nb.model.trace import SourceLine
from mtprof_nb.tables.line_table import text_of_line

#: Texts by file.
Files = Mapping[str, Sequence[str]]
#: Two files are versions of one if this share of their lines agrees.
_SIMILAR_FILES = 0.3
#: Two lines are versions of one if this share of their words and signs agrees.
_SIMILAR_LINES = 0.5
_WORDS = re.compile(r"\w+|[^\w\s]")
#: How the names of cells begin that `analysis.groups.stable_names` makes.
_CELL = "cell "


def paired_lines(
    a_files: Files, b_files: Files, a_lines: set[SourceLine], b_lines: set[SourceLine]
) -> dict[SourceLine, SourceLine]:
    """For lines of a, the line of b that is the same or a version of it. `a_lines` and `b_lines` are those that ran."""
    pairs: dict[SourceLine, SourceLine] = {}
    for a_file, b_file in paired_files(a_files, b_files).items():
        numbers = paired_numbers(a_files[a_file], b_files[b_file])
        pairs |= {SourceLine(a_file, a): SourceLine(b_file, b) for a, b in numbers.items()}
    unknown = {line for line in a_lines & b_lines if line.file not in a_files and line.file not in b_files}
    pairs |= {line: line for line in unknown}
    return _with_moved(pairs, a_files, b_files, a_lines, b_lines)


def paired_files(a_files: Files, b_files: Files) -> dict[str, str]:
    """For files of a, those of b that are the same or versions of them.

    Files of one name are. Others are if they are both cells, or have one name in two folders, and share lines. The last
    cell that is left on either side is the one that was edited, whatever it shares.
    """
    pairs = {file: file for file in a_files if file in b_files}
    a_left = [file for file in a_files if file not in pairs]
    b_left = [file for file in b_files if file not in pairs]
    for _, a_file, b_file in sorted(_similar_files(a_files, b_files, a_left, b_left), reverse=True):
        if a_file not in pairs and b_file not in pairs.values():
            pairs[a_file] = b_file
    a_cells = [file for file in a_left if file not in pairs and _names_cell(file)]
    b_cells = [file for file in b_left if file not in pairs.values() and _names_cell(file)]
    if len(a_cells) == len(b_cells) == 1:
        pairs[a_cells[0]] = b_cells[0]
    return pairs


def _similar_files(
    a_files: Files, b_files: Files, a_left: Sequence[str], b_left: Sequence[str]
) -> Iterator[tuple[float, str, str]]:
    for b_file in b_left:
        for a_file in a_left:
            if _may_be_versions(a_file, b_file) and (ratio := similarity(a_files[a_file], b_files[b_file])):
                yield ratio, a_file, b_file


def similarity(a_text: Sequence[str], b_text: Sequence[str]) -> float:
    """The share of the lines of two texts that agrees; 0 if it is too small for versions of one text."""
    matcher = SequenceMatcher(None, _texts(a_text), _texts(b_text), autojunk=False)
    return ratio if matcher.quick_ratio() >= _SIMILAR_FILES and (ratio := matcher.ratio()) >= _SIMILAR_FILES else 0.0


def _may_be_versions(a_file: str, b_file: str) -> bool:
    if _names_cell(a_file) or _names_cell(b_file):
        return _names_cell(a_file) and _names_cell(b_file)
    return Path(a_file).name == Path(b_file).name


def _names_cell(file: str) -> bool:
    return file.startswith(_CELL) or is_cell(file)


def paired_numbers(a_text: Sequence[str], b_text: Sequence[str]) -> dict[int, int]:
    """For numbers of lines of one text, those of another. Lines that only moved agree; edited ones are similar."""
    a, b = _stripped(a_text), _stripped(b_text)
    if a == b:
        return {number: number for number in range(1, len(a) + 1)}
    pairs: dict[int, int] = {}
    for kind, a_from, a_to, b_from, b_to in SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        a_range, b_range = range(a_from, a_to), range(b_from, b_to)
        same = zip(a_range, b_range, strict=True) if kind == "equal" else _edited(a, b, a_range, b_range)
        pairs |= {a_at + 1: b_at + 1 for a_at, b_at in same}
    return pairs


def _edited(a: Sequence[str], b: Sequence[str], a_range: range, b_range: range) -> Iterator[tuple[int, int]]:
    """Pairs of similar lines, in order."""
    following = b_range.start
    for a_at in a_range:
        for b_at in range(following, b_range.stop):
            if a[a_at] and b[b_at] and _are_similar(a[a_at], b[b_at]):
                yield a_at, b_at
                following = b_at + 1
                break


def _are_similar(one: str, other: str) -> bool:
    matcher = SequenceMatcher(None, _WORDS.findall(one), _WORDS.findall(other), autojunk=False)
    return matcher.quick_ratio() >= _SIMILAR_LINES and matcher.ratio() >= _SIMILAR_LINES


def _with_moved(
    pairs: dict[SourceLine, SourceLine],
    a_files: Files,
    b_files: Files,
    a_lines: set[SourceLine],
    b_lines: set[SourceLine],
) -> dict[SourceLine, SourceLine]:
    """`pairs`, with lines that ran on one side only paired anew by their text: code that moved, or is there twice."""
    reached = {pairs[line] for line in a_lines if line in pairs}
    a_left = sorted(line for line in a_lines if pairs.get(line) not in b_lines)
    b_left = sorted(line for line in b_lines if line not in reached)
    a_texts = [text_of_line(a_files.get(line.file, ()), line.line) for line in a_left]
    b_texts = [text_of_line(b_files.get(line.file, ()), line.line) for line in b_left]
    for a, b in paired_numbers(a_texts, b_texts).items():
        if a_texts[a - 1]:
            pairs[a_left[a - 1]] = b_left[b - 1]
    return pairs


def _texts(lines: Sequence[str]) -> list[str]:
    return [line for line in _stripped(lines) if line]


def _stripped(lines: Sequence[str]) -> list[str]:
    return [line.strip() for line in lines]
