"""Lines of two programs: by file and by text, wherever they moved."""

from mtprof_nb.comparison.line_pairs import paired_files, paired_lines, paired_numbers
from mtprof_nb.model.trace import SourceLine

BEFORE = ["x = load()", "for batch in x:", "    y = slow(batch)", "    total += y.item()", "print(total)"]


def _lines(file: str, *numbers: int) -> set[SourceLine]:
    return {SourceLine(file, number) for number in numbers}


def test_lines_of_equal_texts_keep_their_numbers() -> None:
    assert paired_numbers(BEFORE, BEFORE) == {1: 1, 2: 2, 3: 3, 4: 4, 5: 5}


def test_lines_move_with_what_is_inserted_above_them() -> None:
    after = ["import torch", "", *BEFORE]

    assert paired_numbers(BEFORE, after) == {1: 3, 2: 4, 3: 5, 4: 6, 5: 7}


def test_indentation_does_not_matter() -> None:
    after = ["with torch.no_grad():", *("    " + line for line in BEFORE)]

    assert paired_numbers(BEFORE, after) == {1: 2, 2: 3, 3: 4, 4: 5, 5: 6}


def test_an_edited_line_is_the_one_that_is_much_alike() -> None:
    after = [*BEFORE[:2], "    batch = batch.to(device)", "    y = quick(batch)", *BEFORE[3:]]

    assert paired_numbers(BEFORE, after) == {1: 1, 2: 2, 3: 4, 4: 5, 5: 6}


def test_a_line_that_is_not_alike_is_another_one() -> None:
    assert paired_numbers(["y = slow(x)"], ["print('done')"]) == {}


def test_files_of_one_name_are_versions_of_one_file() -> None:
    assert paired_files({"train.py": ["a"]}, {"train.py": ["b"], "other.py": ["a"]}) == {"train.py": "train.py"}


def test_a_file_in_another_folder_is_a_version_if_its_lines_are_alike() -> None:
    before = {"/old/train.py": BEFORE, "/old/model.py": ["q"]}
    after = {"/new/train.py": [*BEFORE, "more()"], "/new/model.py": ["z"], "/new/copy.py": BEFORE}

    assert paired_files(before, after) == {"/old/train.py": "/new/train.py"}


def test_edited_cells_are_paired_by_what_they_share() -> None:
    before = {"cell 1 0": BEFORE, "cell 2 0": ["a = 1", "b = 2"]}
    after = {"cell 3 0": ["a = 1", "b = 3"], "cell 4 0": [*BEFORE[:-1], "print(total / 2)"]}

    assert paired_files(before, after) == {"cell 1 0": "cell 4 0", "cell 2 0": "cell 3 0"}


def test_the_last_cell_that_is_left_is_the_one_that_was_rewritten() -> None:
    before, after = {"cell 1 0": BEFORE, "cell 2 0": ["same"]}, {"cell 3 0": ["run(model)"], "cell 2 0": ["same"]}

    assert paired_files(before, after) == {"cell 1 0": "cell 3 0", "cell 2 0": "cell 2 0"}


def test_a_cell_is_no_version_of_a_file() -> None:
    assert paired_files({"cell 1 0": BEFORE}, {"train.py": BEFORE}) == {}


def test_lines_without_text_are_paired_by_number() -> None:
    assert paired_lines({}, {}, _lines("gone.py", 3, 4), _lines("gone.py", 4, 5)) == {
        SourceLine("gone.py", 4): SourceLine("gone.py", 4)
    }


def test_lines_that_ran_on_one_side_only_are_paired_by_text() -> None:
    # Two versions of a function in one file, one after the other.
    text = ["def f(x):", "    y = x @ w", "    return y * 2", "def g(x):", "    y = x @ w", "    return y"]

    pairs = paired_lines({"m.py": text}, {"m.py": text}, _lines("m.py", 2, 3), _lines("m.py", 5, 6))

    assert pairs[SourceLine("m.py", 2)] == SourceLine("m.py", 5)
    assert pairs[SourceLine("m.py", 3)] == SourceLine("m.py", 6)
