"""Where a warning of the package is said to come from."""

from pathlib import Path

import pytest

import mtprof_nb
from mtprof_nb.errors import MtprofWarning, warn

PACKAGE = Path(mtprof_nb.__file__).parent
PLUGIN = PACKAGE.with_name(f"{PACKAGE.name}_plugin") / "own.py"


@pytest.mark.parametrize(
    ("file", "named"),
    [
        (PACKAGE / "capture" / "somewhere.py", Path(__file__)),
        (PLUGIN, PLUGIN),
    ],
    ids=["of this package", "of a package whose name begins alike"],
)
def test_a_warning_names_the_innermost_line_that_is_not_the_packages_own(file: Path, named: Path) -> None:
    names = {"warn": warn}
    exec(compile("def work(): warn('said')", str(file), "exec"), names)
    with pytest.warns(MtprofWarning, match="said") as found:
        names["work"]()
    assert found[0].filename == str(named)
