"""A line of flags means exactly what it says, or is refused with the next step."""

from __future__ import annotations

from pathlib import Path

import pytest
from IPython.core.error import UsageError
from recording import NATIVE

from mtprof_nb.capture.schedule import ProfilerAction
from mtprof_nb.cell.default_flags import marks_functions
from mtprof_nb.cell.flags import CONFIG_PARSER, PARSER, Defaults, Flags
from mtprof_nb.cell.options import RECORD_FLAGS

PROMISED = [
    "--with-stack",
    "--record-shapes",
    "--profile-memory",
    "--with-flops",
    "--with-modules",
    "--all",
    "--activities",
    "--hook",
    "--schedule",
    "--max-events",
    "--name",
    "-o",
    "--out",
    "-r",
    "--return",
    "-q",
    "--quiet",
    "-s",
    "--sort",
    "-l",
    "--limit",
    "-D",
    "--dump",
    "-T",
    "--text",
    "--show-all",
    "-H",
    "--html",
    "--against",
    "--python",
    "-h",
    "--help",
]


def read(line: str) -> Flags:
    flags, rest = Defaults().read(line)
    assert rest == ""
    return flags


@pytest.mark.usefixtures("kineto_alone")
def test_no_flags_are_the_defaults_of_the_profile() -> None:
    assert read("") == Flags()
    assert read("").profile_options == {
        **dict.fromkeys(RECORD_FLAGS, False),
        "activities": None,
        "hook": "auto",
        "max_events": 5_000_000,
        "name": None,
        "with_python": False,
        "schedule": None,
        "acc_events": False,
    }


def test_every_flag_is_read() -> None:
    line = (
        "--with-stack --record-shapes --profile-memory --with-flops --with-modules --activities cpu,cuda "
        "--hook kineto --schedule wait=1,warmup=2,active=3,repeat=4 --max-events 10 --name 'a b' -o prof -r -q "
        "-s cpu_time_total -l 7 -D t.json.gz -T t.txt --show-all -H p.html --against before -h"
    )

    assert read(line) == Flags(
        with_stack=True,
        record_shapes=True,
        profile_memory=True,
        with_flops=True,
        with_modules=True,
        activities=("CPU", "CUDA"),
        hook="kineto",
        schedule={"wait": 1, "warmup": 2, "active": 3, "repeat": 4},
        max_events=10,
        name="a b",
        out="prof",
        returns=True,
        quiet=True,
        sort="cpu_time_total",
        limit=7,
        dump=Path("t.json.gz").absolute(),
        text=Path("t.txt").absolute(),
        html=Path("p.html").absolute(),
        against="before",
        show_all=True,
        help=True,
    )


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("--out p --return --quiet --sort count --limit 3", "-o p -r -q -s count -l 3"),
        ("--name=a --limit=3", "--name a -l 3"),
        ("-qrl3", "-q -r -l 3"),
        ("-ql 3", "-q -l 3"),
        ('--name "a b"', "--name 'a b'"),
        ("--name=a' 'b", "--name 'a b'"),
        ("--all", "--with-stack --record-shapes --profile-memory --with-flops --with-modules"),
        ("--all --no-with-stack", "--no-with-stack --record-shapes --profile-memory --with-flops --with-modules"),
        ("--no-with-stack --all", "--no-with-stack --record-shapes --profile-memory --with-flops --with-modules"),
    ],
)
def test_two_ways_to_write_the_same(line: str, expected: str) -> None:
    assert read(line) == read(expected)


@pytest.mark.parametrize("title", ["self", "total", "average", "calls", "count", "memory", "name"])
def test_rows_are_sorted_by_what_a_column_is_called_in_the_panel_too(title: str) -> None:
    assert read(f"--sort {title}").sort == title


def test_a_backslash_is_part_of_a_file_name() -> None:
    assert read(r"--name C:\temp").name == r"C:\temp"


@pytest.mark.parametrize(
    ("line", "problem", "remedy"),
    [
        ("--with-stak", "--with-stak", "did you mean --with-stack?"),
        ("--nonsense", "--nonsense", "-h lists every flag"),
        ("--with", "--with", "-h lists every flag"),
        ("--with-stack=yes", "--with-stack", "-h lists every flag"),
        ("-l", "expected one argument", "-h lists every flag"),
        ("-l many", "'many' is not a count", "from 1 up"),
        ("-l 0", "'0' is not a count", "from 1 up"),
        ("-l -1", "'-1' is not a count", "from 1 up"),
        ("--max-events 1.5", "'1.5' is not a count", "from 1 up"),
        ("-s speed", "no column 'speed'", "self_cpu_time_total"),
        ("--hook kinetto", "unknown hook 'kinetto'", "kineto, mindtorch_v2, candle"),
        ("--activities cpu,tpu", "unknown activity 'tpu'", "supported here are CPU"),
        ("--schedule often", "'often' is not a schedule", "wait=1,warmup=1,active=3"),
        ("--schedule wait=x,active=1", "is not a schedule", "wait=1,warmup=1,active=3"),
        ("--schedule wait=1", "active must be at least 1", "no step would be recorded"),
        ("-o 1st", "'1st' cannot name a variable", "plain Python name"),
        ("-o a.b", "'a.b' cannot name a variable", "plain Python name"),
        ("-D trace.txt", "'trace.txt' has no known suffix", ".mtp, .json, .json.gz"),
        ("-D nowhere/t.json", "'nowhere' is not a directory", "create it first"),
        ("-T .", "'.' is a directory", "name a file in it"),
        ("-H page.txt", "'page.txt' is no page", "end it in .html"),
        ("--name 'open", "no closing quotation", "-h lists every flag"),
        ("--targets 0:2", "--targets names engines for --ranks", "add --ranks"),
    ],
)
def test_a_bad_flag_is_a_usage_error_with_its_remedy(line: str, problem: str, remedy: str) -> None:
    with pytest.raises(UsageError) as error:
        read(line)

    assert problem in str(error.value)
    assert remedy in str(error.value)


@pytest.mark.parametrize(
    ("line", "statement"),
    [
        ("f(x)", "f(x)"),
        ("-q -l 3 f(x,  'a  b')", "f(x,  'a  b')"),
        ("-q -- -x", "-x"),
        ("-o p y = {'a': $x}; y", "y = {'a': $x}; y"),
        ("--name 'a b' print(\"it's\")", 'print("it\'s")'),
        ("'unclosed", "'unclosed"),
    ],
)
def test_a_statement_after_the_flags_stays_as_it_was_typed(line: str, statement: str) -> None:
    assert Defaults().read(line)[1] == statement


def test_a_schedule_becomes_a_schedule_and_keeps_all_its_windows() -> None:
    options = read("--schedule wait=1,active=1").profile_options

    assert [options["schedule"](step) for step in range(2)] == [ProfilerAction.NONE, ProfilerAction.RECORD_AND_SAVE]
    assert options["acc_events"] is True


@pytest.mark.parametrize("hook", [NATIVE])
def test_with_a_cheap_hook_everything_is_on_but_what_is_switched_off(hook: str) -> None:
    recorded = {flag: read(f"--hook {hook}").profile_options[flag] for flag in RECORD_FLAGS}
    assert recorded == dict.fromkeys(RECORD_FLAGS, True)
    chosen = read(f"--hook {hook} --no-with-stack").profile_options
    assert {flag: chosen[flag] for flag in RECORD_FLAGS} == recorded | {"with_stack": False}
    assert not any(read("--hook kineto").profile_options[flag] for flag in RECORD_FLAGS)


@pytest.mark.parametrize("hook", [NATIVE])
def test_samples_are_taken_where_the_native_recorder_takes_them_unless_they_are_switched_off(hook: str) -> None:
    taken = [read(line).profile_options["with_python"] for line in (f"--hook {hook}", "--hook kineto", "--no-python")]

    assert taken == [True, True, False]


@pytest.mark.usefixtures("kineto_alone")
def test_without_the_native_recorder_samples_are_taken_where_they_are_asked_for() -> None:
    assert [read(line).profile_options["with_python"] for line in ("", "--python")] == [False, True]


@pytest.mark.parametrize("hook", [NATIVE])
def test_functions_have_marks_only_where_stacks_and_samples_do_not_tell_their_lines(hook: str) -> None:
    lines = (f"--hook {hook}", "--no-python", "--no-with-stack", "--hook kineto --with-stack --python")

    assert [marks_functions(read(line).profile_options) for line in lines] == [False, True, True, True]


def test_the_help_names_every_flag() -> None:
    words = PARSER.format_help().replace(",", " ").split()

    assert [flag for flag in PROMISED if flag not in words] == []
    assert set(PROMISED) <= set(PARSER.spellings)


def test_the_notebook_sets_flags_that_a_cell_starts_from() -> None:
    defaults = Defaults()

    assert defaults.configure("--with-stack -l 5") == ""
    assert defaults.read("-q")[0] == Flags(with_stack=True, limit=5, quiet=True)
    assert defaults.read("--no-with-stack -l 2")[0] == Flags(with_stack=False, limit=2)
    assert defaults.read("")[0] == Flags(with_stack=True, limit=5)


def test_configuring_adds_to_what_was_set_and_reset_forgets_it() -> None:
    defaults = Defaults()
    defaults.configure("--with-stack")
    defaults.configure("-l 5 --activities cpu --schedule wait=1,active=2")

    assert defaults.configure("") == "--with-stack --activities CPU --schedule wait=1,active=2 --limit 5"
    assert defaults.configure("--no-with-stack") == ""
    assert defaults.configure("").startswith("--no-with-stack ")
    assert defaults.configure("--reset -q") == ""
    assert defaults.configure("") == "--quiet"
    assert defaults.configure("--reset") == ""
    assert defaults.configure("") == "no flags are set"


def test_what_is_shown_of_the_configuration_can_be_typed_again() -> None:
    first, second = Defaults(), Defaults()
    first.configure("--all --no-with-flops --hook kineto --schedule active=2 --max-events 9 -s count --show-all")
    second.configure(first.configure(""))

    assert second.read("") == first.read("")


@pytest.mark.parametrize(
    "line", ["-o p", "-r", "--name x", "-D t.json", "-T t.txt", "-H p.html", "x", "--with-stack x = 1"]
)
def test_what_belongs_to_one_cell_cannot_be_configured(line: str) -> None:
    defaults = Defaults()

    with pytest.raises(UsageError, match="%mtprofile_config -h lists every flag"):
        defaults.configure(line)
    assert defaults.configure("") == "no flags are set"


def test_the_help_of_the_configuration_sets_nothing() -> None:
    defaults = Defaults()

    assert defaults.configure("-h --with-stack") == CONFIG_PARSER.format_help()
    assert defaults.read("")[0] == Flags()
