"""Expectations of Jupyter users of a magic, and the tests that check them: each of these drives a real kernel."""

from __future__ import annotations

import importlib
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from conftest import Kernel

UNCHANGED = "test_unchanged.test_a_cell_does_what_it_does_without_the_magic"
EXPECTATIONS = {
    "1 loading is silent, idempotent, and undone by unloading": [
        "test_extension.test_loading_is_silent_and_idempotent_and_unloading_undoes_it_all"
    ],
    "2 a cell magic and a line magic": [
        "test_magic.test_the_ops_of_the_cell_are_recorded_and_those_of_other_cells_are_not",
        "test_magic.test_a_statement_is_recorded_and_its_value_is_the_value_of_the_line",
    ],
    "3 a bad flag is a UsageError before the cell runs; help names every flag": [
        "test_flags_at_work.test_a_bad_flag_is_one_line_without_a_traceback_before_anything_runs",
        "test_flags_at_work.test_help_names_every_flag_and_runs_nothing",
        "test_flags_at_work.test_a_question_mark_shows_the_same_help",
    ],
    "4 no expansion of $x": ["test_magic.test_nothing_is_expanded_in_the_code_or_the_flags"],
    "5 the profile in a variable, as a value, and always as the last one": [
        "test_flags_at_work.test_a_variable_holds_the_profile",
        "test_flags_at_work.test_the_profile_is_the_value_of_the_cell_where_that_is_asked_for",
        "test_flags_at_work.test_the_last_profile_is_always_at_hand",
    ],
    "6 quiet, dump, text, sort, limit": [
        "test_flags_at_work.test_quiet_shows_nothing",
        "test_flags_at_work.test_the_trace_is_dumped",
        "test_flags_at_work.test_the_table_is_written_as_text_sorted_and_limited",
        "test_flags_at_work.test_rows_are_sorted_and_limited_and_the_rest_is_counted",
    ],
    "7 a label, else the cell's number": [
        "test_flags_at_work.test_a_label_is_the_title_and_the_cell_s_number_otherwise"
    ],
    "8 switches without a value, named after the API": [
        "test_flags_at_work.test_every_recording_flag_reaches_the_profile"
    ],
    "9 the last expression is Out, a semicolon silences it, no name leaks": [
        UNCHANGED,
        "test_magic.test_the_last_value_and_out_are_the_cell_s",
        "test_magic.test_no_name_is_left_in_the_namespace",
    ],
    "10 an exception: native traceback, status error, then the partial profile": [
        "test_failures.test_the_partial_profile_follows_the_native_traceback_and_says_so"
    ],
    "11 an interrupt: the same, and the next run works": [
        "test_failures.test_an_interrupt_has_its_traceback_and_then_the_profile",
        "test_failures.test_an_interrupted_await_is_cancelled_as_ever_and_shown",
    ],
    "12 await on the kernel's own loop and thread": [UNCHANGED],
    "13 inner magics and shell commands": [UNCHANGED, "test_magic.test_another_magic_may_stand_on_top"],
    "14 no re-indenting, the cell's own line numbers": [
        UNCHANGED,
        "test_magic.test_stacks_name_the_lines_of_the_cell_and_no_frame_of_ours",
    ],
    "15 one page with its text, one widget, a deterministic repr": [
        "test_magic.test_the_page_and_its_text_are_one_output_then_come_the_widget_and_the_saved_panel",
        "test_magic.test_the_text_names_no_address_and_no_id",
    ],
    "16 an aligned table in a terminal": ["test_elsewhere.test_a_plain_terminal_gets_an_aligned_table"],
    "17 no server, port, CDN, file in the working directory": [
        "test_magic.test_no_file_appears_in_the_working_directory_and_no_port_is_opened",
        "test_magic.test_the_panel_asks_no_network",
    ],
    "18 tab completion of flags": ["test_flags_at_work.test_tab_completes_flags_and_their_values"],
    "19 light and dark": ["test_expectations.test_the_page_without_scripts_takes_its_colours_from_the_notebook"],
    "20 bounded output; a second run replaces the first": [
        "test_flags_at_work.test_rows_are_sorted_and_limited_and_the_rest_is_counted",
        "test_magic.test_running_a_cell_again_closes_the_widgets_of_its_first_run",
    ],
    "21 defaults for the notebook": ["test_flags_at_work.test_the_notebook_sets_flags_for_all_its_cells"],
    "22 frames of the profiler and of IPython only where asked for": [
        "test_flags_at_work.test_frames_of_ipython_are_shown_where_all_is_asked_for",
        "test_magic.test_stacks_name_the_lines_of_the_cell_and_no_frame_of_ours",
    ],
    "23 long cells say that they are recorded, and then no more": [
        "test_progress.test_a_cell_of_more_than_a_second_says_that_it_is_recorded_and_then_no_more"
    ],
}


def test_every_expectation_is_held_by_tests_that_are_there() -> None:
    names = {name.partition(".")[::2] for tests in EXPECTATIONS.values() for name in tests}

    assert [name for name in names if not callable(getattr(importlib.import_module(name[0]), name[1], None))] == []


def test_the_page_without_scripts_takes_its_colours_from_the_notebook(kernel: Kernel) -> None:
    """To see a theme being switched takes a browser; a kernel can show that the text has no colour of its own."""
    (panel,) = kernel.run("%%mtprofile --all\ny = torch.ones(2, 2).mm(torch.ones(2, 2))").panels

    text = re.sub(r"<span style=\"[^\"]*\">[■█▏▎▍▌▋▊▉]*</span>", "", panel["text/html"])
    assert set(re.findall(r"(?<![\w-])color:[^;\"]*", text)) <= {"color:inherit"}
