"""Loading the native recorder: who may have written its file, damage to it, and why there is none."""

from __future__ import annotations

import grp
import os
import pwd
import subprocess
import sys
import time
from pathlib import Path

import pytest
from recorder_workshop import DAY_S, Workshop, entries

import mtprof_nb as mtp
from mtprof_nb.capture.native import recorder_build, recorder_cache
from mtprof_nb.capture.native import recorder_loading as loading
from mtprof_nb.cell import installation

pytest.importorskip("torch")


def test_a_folder_that_others_may_write_to_is_refused(workshop: Workshop, compiled: Path) -> None:
    workshop.put(compiled)
    for path in (workshop.folder, workshop.folder.parent):
        for mode in (0o720, 0o702, 0o1777):
            path.chmod(mode)
            with pytest.raises(mtp.BuildError, match="another user could write"):
                mtp.build_recorder()
            assert loading.recorder() is None
            assert f"another user could write to {str(path)!r}" in (loading.why_not() or "")
        path.chmod(0o755)
    assert loading.recorder() is not None


def test_a_folder_above_may_be_shared_if_nobody_else_can_rename_what_is_in_it(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    workshop.folder.mkdir(parents=True)
    shared = workshop.folder.parent.parent
    monkeypatch.setattr(recorder_cache, "_is_own_group", lambda number: False)
    for mode in (0o1777, 0o1775):
        shared.chmod(mode)
        recorder_cache.check_private(workshop.folder)

    for mode in (0o777, 0o775, 0o757):
        shared.chmod(mode)
        with pytest.raises(mtp.BuildError, match=f"another user could write to {str(shared)!r}.*chmod go-w"):
            recorder_cache.check_private(workshop.folder)


def test_a_folder_above_may_be_shared_with_the_group_that_is_the_users_alone(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    workshop.folder.mkdir(parents=True)
    above = workshop.folder.parent.parent
    user = pwd.getpwuid(os.geteuid()).pw_name
    groups = {
        (user, ()): True,
        (user, (user,)): True,
        (user, (user, "other")): False,
        ("staff", ()): False,
    }
    for (name, members), is_accepted in groups.items():
        group = grp.struct_group((name, "x", 1, list(members)))
        monkeypatch.setattr(grp, "getgrgid", lambda number, group=group: group)
        above.chmod(0o775)
        if is_accepted:
            recorder_cache.check_private(workshop.folder)
        else:
            with pytest.raises(mtp.BuildError, match=f"another user could write to {str(above)!r}"):
                recorder_cache.check_private(workshop.folder)
        above.chmod(0o777)
        with pytest.raises(mtp.BuildError, match=f"another user could write to {str(above)!r}"):
            recorder_cache.check_private(workshop.folder)


def test_load_ext_says_that_a_shared_folder_is_refused(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    workshop.folder.mkdir(parents=True)
    workshop.folder.chmod(0o777)
    installation._start_build()
    said = "".join(capsys.readouterr())
    assert (
        f"cells are recorded without the faster recorder: another user could write to {str(workshop.folder)!r}" in said
    )


def test_a_binary_that_others_may_have_written_is_refused(workshop: Workshop, compiled: Path) -> None:
    workshop.put(compiled)
    for mode in (0o720, 0o702):
        workshop.files.binary.chmod(mode)
        with pytest.raises(mtp.BuildError, match="another user could write"):
            mtp.build_recorder()
        assert f"another user could write to {str(workshop.files.binary)!r}" in (loading.why_not() or "")
    workshop.files.binary.unlink()
    workshop.files.binary.symlink_to(compiled)
    assert "another user could write" in (loading.why_not() or "")

    workshop.copying(compiled)
    mtp.build_recorder(force=True)
    assert loading.recorder() is not None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to somebody else")
def test_a_binary_of_another_user_is_refused(workshop: Workshop, compiled: Path) -> None:
    workshop.put(compiled)
    os.chown(workshop.files.binary, 12_345, -1)

    assert loading.recorder() is None
    assert f"another user could write to {str(workshop.files.binary)!r}" in (loading.why_not() or "")


LOAD = "import torch; from mtprof_nb.capture.native.recorder_loading import recorder; print(recorder())"


@pytest.mark.parametrize("damage", ["cut", "changed"])
def test_a_damaged_binary_is_removed_with_a_warning_and_built_again(
    workshop: Workshop, compiled: Path, damage: str
) -> None:
    workshop.copying(compiled)
    content = mtp.build_recorder().read_bytes()
    middle = len(content) // 2
    changed = content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]
    workshop.files.binary.write_bytes(content[:middle] if damage == "cut" else changed)
    # A process of its own: loading the file would end it.
    loads = subprocess.run([sys.executable, "-c", LOAD], capture_output=True, text=True, check=False)

    assert (loads.returncode, loads.stdout) == (0, "None\n")
    assert "the native recorder's file was damaged, and is removed: mtprof_nb.build_recorder()" in loads.stderr
    assert entries(workshop) == [".lock", ".log"]
    mtp.build_recorder()
    assert workshop.calls == 2
    assert loading.recorder() is not None


def test_a_build_replaces_a_damaged_binary(workshop: Workshop, compiled: Path) -> None:
    workshop.copying(compiled)
    mtp.build_recorder().write_bytes(b"half")
    assert not recorder_build.is_built()

    assert mtp.build_recorder().read_bytes() == compiled.read_bytes()
    assert recorder_build.is_built()


def test_a_binary_of_a_build_that_was_killed_before_its_end_is_not_loaded(workshop: Workshop, compiled: Path) -> None:
    workshop.put(compiled)
    workshop.files.digest.unlink()

    assert loading.why_not() == "it has not been built: mtprof_nb.build_recorder() builds it"
    with workshop.files.locked():
        assert loading.why_not() == "it is being built"


def test_a_binary_that_is_being_replaced_is_not_removed(workshop: Workshop, compiled: Path) -> None:
    workshop.put(compiled)
    workshop.files.digest.write_text("of another one")
    with workshop.files.locked():
        assert loading.why_not() == "it is being built"

    assert workshop.files.binary.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to somebody else")
def test_a_folder_of_another_user_is_refused(workshop: Workshop) -> None:
    workshop.folder.mkdir(parents=True)
    for path in (workshop.folder, workshop.folder.parent, workshop.folder.parent.parent):
        os.chown(path, 12_345, -1)
        with pytest.raises(mtp.BuildError, match="another user could write"):
            recorder_cache.private_folder()
        os.chown(path, 0, -1)


def test_loading_counts_as_use(workshop: Workshop, compiled: Path) -> None:
    workshop.put(compiled)
    os.utime(workshop.files.binary, (0, 0))

    assert loading.recorder() is not None
    assert time.time() - workshop.files.binary.stat().st_mtime < DAY_S


def test_without_a_recorder_nothing_is_loaded_and_the_reason_is_known(workshop: Workshop) -> None:
    assert loading.recorder() is None
    assert loading.why_not() == "it has not been built: mtprof_nb.build_recorder() builds it"
    assert not workshop.folder.exists()

    workshop.compiler("exit 1")
    with pytest.raises(mtp.BuildError) as failed:
        mtp.build_recorder()
    assert loading.why_not() == str(failed.value)

    with workshop.files.locked():
        assert loading.why_not() == "it is being built"


def test_a_recorder_that_cannot_be_loaded_is_none_and_one_that_is_built_again_is_loaded(
    workshop: Workshop, compiled: Path, tmp_path: Path
) -> None:
    (tmp_path / "text").write_text("not a library")
    workshop.put(tmp_path / "text")
    assert loading.recorder() is None
    assert "it cannot be loaded" in (loading.why_not() or "")

    workshop.copying(compiled)
    mtp.build_recorder(force=True)
    module = loading.recorder()
    assert module is not None
    assert loading.recorder() is module
    assert loading.why_not() is None


def test_the_switch_prevents_building_and_loading(workshop: Workshop, compiled: Path) -> None:
    workshop.put(compiled)
    assert loading.recorder() is not None

    workshop.patch.setenv("MTPROF_RECORDER", "off")
    assert loading.recorder() is None
    assert loading.why_not() == "the environment variable MTPROF_RECORDER is 'off'"
    with pytest.raises(mtp.BuildError, match="MTPROF_RECORDER is 'off'"):
        mtp.build_recorder()


def test_where_torch_is_not_imported_nothing_is_loaded(workshop: Workshop) -> None:
    workshop.patch.delitem(sys.modules, "torch")

    assert loading.recorder() is None
    assert loading.why_not() == "torch is not imported"
