"""environment.yml and pyproject.toml name the same packages with the same lower bounds; the sdist lacks nothing."""

import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT = SETTINGS["project"]
CONDA = yaml.safe_load((ROOT / "environment.yml").read_text())
#: Packages that conda-forge has under another name than PyPI.
PYPI_NAME = {"pytorch-cpu": "torch", "playwright-python": "playwright", "python-isal": "isal"}
#: What a conda environment holds of itself.
CONDA_ALONE = {"pip"}


def _lower_bounds(requirements: list[str]) -> dict[str, str]:
    bounds = {}
    for requirement in map(Requirement, requirements):
        (bound,) = requirement.specifier or [None]
        assert bound is None or bound.operator == ">=", f"{requirement}: expected a lower bound"
        name = PYPI_NAME.get(requirement.name, requirement.name)
        bounds[canonicalize_name(name)] = bound.version if bound else ""
    return bounds


def _conda_requirements() -> tuple[list[str], list[str]]:
    (pip,) = [entry["pip"] for entry in CONDA["dependencies"] if isinstance(entry, dict)]
    conda = [entry for entry in CONDA["dependencies"] if isinstance(entry, str) and entry not in CONDA_ALONE]
    return conda, pip


def _project_requirements() -> list[str]:
    """Everything declared; of the development pin of torch, the range that users are offered instead."""
    extras = PROJECT["optional-dependencies"]
    pinned = [requirement for requirement in extras["dev"] if Requirement(requirement).name == "torch"]
    assert len(pinned) == 1
    others = [requirement for requirement in extras["dev"] if requirement not in pinned]
    return [f"python{PROJECT['requires-python']}", *PROJECT["dependencies"], *extras["torch"], *others]


def test_conda_environment_has_the_packages_and_lower_bounds_of_the_project() -> None:
    conda, pip = _conda_requirements()

    assert _lower_bounds(conda + [entry for entry in pip if entry != "-e ."]) == _lower_bounds(_project_requirements())


def test_conda_environment_installs_this_package_from_its_source() -> None:
    _, pip = _conda_requirements()

    assert "-e ." in pip
    assert CONDA["name"] == PROJECT["name"]


def test_the_pinned_torch_lies_in_the_range_that_users_are_offered() -> None:
    extras = PROJECT["optional-dependencies"]
    (pinned,) = [Requirement(entry) for entry in extras["dev"] if Requirement(entry).name == "torch"]
    (offered,) = [Requirement(entry) for entry in extras["torch"]]
    (pin,) = pinned.specifier

    assert pin.operator == "=="
    assert offered.specifier.contains(pin.version)


def test_the_torch_version_is_pinned_in_one_file() -> None:
    (pin,) = [entry for entry in PROJECT["optional-dependencies"]["dev"] if entry.startswith("torch==")]
    version = pin.removeprefix("torch==")

    repeated = [name for name in ("Makefile", ".ci/run", "environment.yml") if version in (ROOT / name).read_text()]

    assert repeated == []


def test_the_source_distribution_has_everything_that_its_tests_and_its_makefile_read() -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("not a checkout")
    tracked = {path.partition("/")[0] for path in listed.stdout.splitlines()} - {".gitignore", "pyproject.toml"}

    assert set(SETTINGS["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]) == tracked


def test_the_documentation_says_which_pythons_and_torch_were_run() -> None:
    prefix = "Programming Language :: Python :: "
    pythons = [name.removeprefix(prefix) for name in PROJECT["classifiers"] if name.startswith(prefix)]
    readme, install, limits = ((ROOT / page).read_text() for page in ("README.md", "docs/install.md", "docs/limits.md"))

    assert all(python in limits for python in pythons)
    assert f"Python {pythons[0]} to {pythons[-1]}" in readme
    assert f"Python {pythons[0]} to {pythons[-1]}" in install
    (pinned,) = [one for one in PROJECT["optional-dependencies"]["dev"] if one.startswith("torch==")]
    assert f"PyTorch {pinned.removeprefix('torch==').removesuffix('.0')};" in limits
