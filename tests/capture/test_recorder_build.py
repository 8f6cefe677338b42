"""Building the native recorder: what is written, what a failure leaves, and who may write to its folder."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
from recorder_workshop import DAY_S, Workshop, entries

import mtprof_nb as mtp
from mtprof_nb.capture.native import compiler, recorder_build, recorder_cache, recorder_key
from mtprof_nb.capture.native import recorder_loading as loading

COMMAND = [sys.executable, "-m", "mtprof_nb", "build"]


def test_the_compiled_recorder_is_private_has_its_log_beside_it_and_can_be_loaded(compiled: Path) -> None:
    assert compiled.parent.parts[-2:] == ("mtprof_nb", "recorder")
    assert [stat.S_IMODE(path.stat().st_mode) for path in (compiled, compiled.parent)] == [0o700, 0o700]
    assert sorted(path.suffix for path in compiled.parent.iterdir()) == [".lock", ".log", ".sha256", ".so"]
    assert "-DNDEBUG" in compiled.with_suffix(".log").read_text()
    assert torch.__version__ in compiled.name
    assert loading.import_binary(compiled).__name__ == "_mtprof_recorder"


def test_an_existing_recorder_is_kept_unless_it_is_forced(workshop: Workshop, compiled: Path) -> None:
    workshop.copying(compiled)
    first = mtp.build_recorder().stat().st_ino
    assert mtp.build_recorder().stat().st_ino == first
    assert workshop.calls == 1

    assert mtp.build_recorder(force=True).stat().st_ino != first
    assert workshop.calls == 2


def test_a_failing_compiler_is_one_line_with_its_error_and_the_log(workshop: Workshop) -> None:
    workshop.compiler('echo "made.cpp:3:1: error: it does not compile"; echo more; exit 1')

    with pytest.raises(mtp.BuildError) as failed:
        mtp.build_recorder()

    message = str(failed.value)
    assert "made.cpp:3:1: error: it does not compile" in message
    assert repr(str(workshop.files.log)) in message
    assert "\n" not in message
    assert entries(workshop) == [".failed", ".lock", ".log"]
    assert recorder_build.earlier_failure() == message
    assert "more\n-> 1" in workshop.files.log.read_text()


def test_a_failure_leaves_the_recorder_that_was_there_and_a_success_forgets_it(
    workshop: Workshop, compiled: Path
) -> None:
    workshop.copying(compiled)
    before = mtp.build_recorder().stat().st_ino
    workshop.compiler("exit 1")
    with pytest.raises(mtp.BuildError):
        mtp.build_recorder(force=True)
    assert workshop.files.binary.stat().st_ino == before

    workshop.copying(compiled)
    mtp.build_recorder(force=True)
    assert recorder_build.earlier_failure() is None


def test_a_recorder_that_cannot_be_loaded_is_not_put_into_place(workshop: Workshop) -> None:
    workshop.compiler('echo "not a library" > "$target"')

    with pytest.raises(mtp.BuildError, match=r"cannot be loaded \(ImportError: .*recorder\.so: file too short"):
        mtp.build_recorder()
    assert entries(workshop) == [".failed", ".lock", ".log"]


def test_a_compiler_that_is_killed_is_a_failure(workshop: Workshop) -> None:
    workshop.compiler('echo half > "$target"; kill -9 $$')

    with pytest.raises(mtp.BuildError, match="could not be compiled"):
        mtp.build_recorder()
    assert entries(workshop) == [".failed", ".lock", ".log"]


def test_without_a_compiler_the_error_says_which_to_install(workshop: Workshop) -> None:
    workshop.patch.delenv("CXX", raising=False)
    workshop.patch.setenv("PATH", str(workshop.root))

    with pytest.raises(mtp.BuildError, match=r"no C\+\+ compiler: install g\+\+"):
        mtp.build_recorder()
    assert not workshop.folder.exists()


def test_a_compiler_that_does_not_exist_is_named(workshop: Workshop) -> None:
    workshop.patch.setenv("CXX", "ccache-of-mine g++")

    with pytest.raises(mtp.BuildError, match="CXX names 'ccache-of-mine'"):
        mtp.build_recorder()


@pytest.mark.parametrize(
    ("missing", "remedy"), [("torch", "install a build of PyTorch"), ("python", "apt-get install python3-dev")]
)
def test_missing_headers_are_named_with_their_remedy(workshop: Workshop, missing: str, remedy: str) -> None:
    key = recorder_key.key_of_installed_torch()
    assert key is not None
    if missing == "torch":
        key = recorder_key.RecorderKey(workshop.root, key.torch_version)
    else:
        workshop.patch.setattr(compiler.sysconfig, "get_path", lambda name: str(workshop.root))

    with pytest.raises(mtp.BuildError, match=remedy):
        compiler.include_folders(key)


def test_without_torch_the_error_says_so(workshop: Workshop) -> None:
    workshop.patch.setattr(recorder_key, "find_spec", lambda name: None)

    with pytest.raises(mtp.BuildError, match="needs PyTorch, which is not installed"):
        mtp.build_recorder()


def test_the_name_depends_on_sources_flags_and_torch(workshop: Workshop) -> None:
    names = {workshop.files.name}
    sources = workshop.root / "source"
    shutil.copytree(recorder_key.SOURCE, sources)
    for changed in ("recorder.cpp", "devices/devices.h"):
        with (sources / changed).open("a") as file:
            file.write("// changed\n")
        with workshop.patch.context() as patch:
            patch.setattr(recorder_key, "SOURCE", sources)
            names.add(workshop.files.name)
    with workshop.patch.context() as patch:
        patch.setattr(recorder_key, "FLAGS", ("-O3",))
        names.add(workshop.files.name)
    other = workshop.root / "torch"
    other.mkdir()
    (other / "version.py").write_text("__version__ = '2.99.0+cpu'")
    names.add(recorder_key.RecorderKey(other, "2.99.0+cpu").name)

    assert len(names) == 5


def test_two_builds_at_once_compile_once(workshop: Workshop, compiled: Path) -> None:
    workshop.compiler(f'sleep 0.5; cp "{compiled}" "$target"')
    with ThreadPoolExecutor(2) as threads:
        built = [future.result() for future in [threads.submit(mtp.build_recorder) for _ in range(2)]]

    assert built == [workshop.files.binary] * 2
    assert workshop.calls == 1


def test_a_cache_that_cannot_be_made_names_the_variable_that_moves_it(workshop: Workshop) -> None:
    (workshop.root / "cache").write_text("a file")

    with pytest.raises(mtp.BuildError, match="set XDG_CACHE_HOME to a folder of your own"):
        mtp.build_recorder()


def test_a_relative_cache_folder_is_not_used(workshop: Workshop) -> None:
    workshop.patch.setenv("XDG_CACHE_HOME", "relative")
    workshop.patch.setenv("HOME", str(workshop.root))

    assert workshop.root in recorder_cache.cache_folder().parents


def test_a_build_cleans_what_was_not_used_for_long(workshop: Workshop, compiled: Path) -> None:
    key = recorder_key.key_of_installed_torch()
    assert key is not None
    workshop.folder.mkdir(parents=True)
    ages = {
        f"{key.family}1111.so": 3,
        f"{key.family}1111.log": 3,
        f"{key.family}2222.so": 1,
        "torch1.0-cpython-311-3333.so": 61,
        "torch1.0-cpython-311-4444.so": 59,
        f"{key.name}-killed": 3,
        f"{key.name}-running": 0,
    }
    for name, days in ages.items():
        path = workshop.folder / name
        path.mkdir() if "." not in name.removeprefix(key.name) else path.touch()
        used = time.time() - days * DAY_S
        os.utime(path, (used, used))
    workshop.copying(compiled)
    mtp.build_recorder()

    kept = {f"{key.family}2222.so", "torch1.0-cpython-311-4444.so", f"{key.name}-running"}
    assert {path.name for path in workshop.folder.iterdir()} - kept == {
        f"{key.name}{suffix}" for suffix in (".so", ".sha256", ".log", ".lock")
    }
    assert kept <= {path.name for path in workshop.folder.iterdir()}


def test_the_command_fails_with_one_line_and_succeeds_if_it_may(tmp_path: Path) -> None:
    environment = os.environ | {"XDG_CACHE_HOME": str(tmp_path), "MTPROF_RECORDER": "off"}
    runs = [
        subprocess.run([*COMMAND, *flags], env=environment, capture_output=True, text=True, check=False)
        for flags in ([], ["--if-possible"])
    ]

    assert [ran.returncode for ran in runs] == [1, 0]
    assert [ran.stdout for ran in runs] == ["", ""]
    assert runs[0].stderr.startswith("python -m mtprof_nb build: the environment variable MTPROF_RECORDER is 'off'")
    assert [ran.stderr.count("\n") for ran in runs] == [1, 1]
