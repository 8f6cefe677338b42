"""A file is whole or untouched, whatever happens while it is written."""

import errno
import gzip
import os
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from mtprof_nb.errors import ExportError, MtprofError
from mtprof_nb.export import atomic
from mtprof_nb.export.atomic import replacing


def _names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def _run(program: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", program, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300)


def test_a_new_file_holds_what_was_written(tmp_path: Path) -> None:
    with replacing(tmp_path / "new.json") as file:
        file.write(b"[1]")

    assert (tmp_path / "new.json").read_bytes() == b"[1]"
    assert _names(tmp_path) == ["new.json"]


@pytest.mark.skipif(not hasattr(os, "posix_fadvise"), reason="the system takes no advice on files")
@pytest.mark.parametrize("is_refused", [False, True])
def test_a_large_file_goes_to_the_disk_while_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_refused: bool
) -> None:
    sent = []

    def advise(_file: int, first: int, count: int, advice: int) -> None:
        assert advice == os.POSIX_FADV_DONTNEED
        sent.append((first, first + count))
        if is_refused:
            raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    monkeypatch.setattr(os, "posix_fadvise", advise)
    parts = [bytes([number]) * (5 << 20) for number in range(6)]
    with replacing(tmp_path / "large.json") as file:
        for part in parts:
            file.write(part)

    assert (tmp_path / "large.json").read_bytes() == b"".join(parts)
    assert sent == [(0, 10 << 20), (2 << 20, 20 << 20), (12 << 20, 30 << 20)]


def test_a_file_that_ends_in_gz_is_compressed_and_the_same_every_time(tmp_path: Path) -> None:
    for name in ("one.json.gz", "two.json.gz"):
        with replacing(tmp_path / name) as file:
            file.write(b"[1]" * 1000)

    assert gzip.decompress((tmp_path / "one.json.gz").read_bytes()) == b"[1]" * 1000
    assert (tmp_path / "one.json.gz").read_bytes() == (tmp_path / "two.json.gz").read_bytes()


def test_the_old_file_is_there_until_the_new_one_is_whole(tmp_path: Path) -> None:
    target = tmp_path / "trace.json"
    target.write_bytes(b"old")
    with replacing(target) as file:
        file.write(b"new")
        file.flush()
        assert target.read_bytes() == b"old"

    assert target.read_bytes() == b"new"


@pytest.mark.parametrize("error", [RuntimeError("boom"), KeyboardInterrupt(), SystemExit(3)])
def test_an_exception_in_the_middle_leaves_the_old_file_and_nothing_beside_it(
    tmp_path: Path, error: BaseException
) -> None:
    target = tmp_path / "trace.json"
    target.write_bytes(b"old")

    def fail() -> None:
        with replacing(target) as file:
            file.write(b"half")
            raise error

    with pytest.raises(type(error)) as caught:
        fail()

    assert caught.value is error
    assert target.read_bytes() == b"old"
    assert _names(tmp_path) == ["trace.json"]


@pytest.mark.parametrize("name", ["trace.json", "trace.json.gz"])
def test_a_full_disk_leaves_the_old_file_and_says_what_to_do(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    target = tmp_path / name
    target.write_bytes(b"old")
    monkeypatch.setattr(os, "fsync", full)
    with (
        pytest.raises(ExportError, match=rf"cannot write '.*{name}': the disk is full: free some space"),
        replacing(target) as file,
    ):
        file.write(b"new")

    assert target.read_bytes() == b"old"
    assert _names(tmp_path) == [name]


def test_a_write_that_the_system_refuses_half_way_leaves_the_old_file(tmp_path: Path) -> None:
    target = tmp_path / "trace.json"
    target.write_bytes(b"old")
    program = """
import resource, sys
from mtprof_nb.export.atomic import replacing
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
with replacing(sys.argv[1]) as file:
    for _ in range(64):
        file.write(b"x" * (1 << 18))
"""
    finished = _run(program, target)

    assert "ExportError: cannot write" in finished.stderr
    assert "larger than allowed" in finished.stderr
    assert target.read_bytes() == b"old"
    assert _names(tmp_path) == ["trace.json"]


def test_a_folder_in_place_of_the_file_is_an_error_that_asks_for_a_file(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="it is a folder: name a file in it"), replacing(tmp_path):
        pass


def test_a_missing_folder_is_an_error_that_asks_to_create_it(tmp_path: Path) -> None:
    with (
        pytest.raises(ExportError, match="its folder does not exist: create it first"),
        replacing(tmp_path / "none" / "trace.json"),
    ):
        pass


def test_a_file_in_place_of_the_folder_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(ExportError, match="a file, not a folder"), replacing(tmp_path / "file" / "trace.json"):
        pass


def test_a_folder_that_may_not_be_written_is_an_error_that_asks_for_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*arguments: object, **options: object) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    (tmp_path / "trace.json").write_bytes(b"old")
    with monkeypatch.context() as patched:
        patched.setattr(atomic, "_Outgoing", refused)
        with (
            pytest.raises(ExportError, match="permission denied: choose a folder that you may write to"),
            replacing(tmp_path / "trace.json"),
        ):
            pass

    assert (tmp_path / "trace.json").read_bytes() == b"old"


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="the superuser may write anywhere")
def test_a_read_only_folder_keeps_its_file(tmp_path: Path) -> None:
    (tmp_path / "trace.json").write_bytes(b"old")
    tmp_path.chmod(0o555)
    try:
        with pytest.raises(ExportError, match="permission denied"), replacing(tmp_path / "trace.json"):
            pass
    finally:
        tmp_path.chmod(0o755)

    assert (tmp_path / "trace.json").read_bytes() == b"old"


def test_a_file_that_may_not_be_written_is_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "trace.json").write_bytes(b"old")
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(ExportError, match="permission denied"), replacing(tmp_path / "trace.json"):
        pass

    assert (tmp_path / "trace.json").read_bytes() == b"old"


def test_a_path_that_no_file_can_have_is_an_error_of_ours(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="null"), replacing(f"{tmp_path}/a\0b"):
        pass
    with pytest.raises(ExportError, match="name is too long"), replacing(tmp_path / ("x" * 300)):
        pass


def test_an_export_error_is_one_of_the_package_and_of_the_system() -> None:
    assert issubclass(ExportError, MtprofError)
    assert issubclass(ExportError, OSError)


def test_the_longest_name_that_a_file_can_have_is_written(tmp_path: Path) -> None:
    with replacing(tmp_path / ("x" * 255)) as file:
        file.write(b"new")

    assert (tmp_path / ("x" * 255)).read_bytes() == b"new"


def test_a_link_stays_a_link_and_its_file_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "trace.json").write_bytes(b"old")
    (tmp_path / "link.json").symlink_to(tmp_path / "real" / "trace.json")
    with replacing(tmp_path / "link.json") as file:
        file.write(b"new")

    assert (tmp_path / "link.json").is_symlink()
    assert (tmp_path / "real" / "trace.json").read_bytes() == b"new"


def test_the_permissions_of_the_old_file_stay(tmp_path: Path) -> None:
    target = tmp_path / "trace.json"
    target.write_bytes(b"old")
    target.chmod(0o640)
    with replacing(target) as file:
        file.write(b"new")

    assert stat.S_IMODE(target.stat().st_mode) == 0o640


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names here")
def test_a_pipe_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    received: list[bytes] = []
    reader = threading.Thread(target=lambda: received.append(pipe.read_bytes()))
    reader.start()
    with replacing(pipe) as file:
        file.write(b"new")
    reader.join(timeout=300)

    assert received == [b"new"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


@pytest.mark.skipif(sys.platform == "win32", reason="no such signal")
@pytest.mark.soak
def test_an_export_killed_in_the_middle_leaves_the_old_file_and_the_next_one_cleans_up(
    tmp_path: Path, rounds: Callable[[int, int], int]
) -> None:
    target = tmp_path / "trace.json"
    target.write_bytes(b"old")
    program = """
import os, signal, sys
from mtprof_nb.export.atomic import replacing
with replacing(sys.argv[1]) as file:
    for written in range(int(sys.argv[2])):
        file.write(b"x" * (1 << 16))
    os.kill(os.getpid(), signal.SIGKILL)
"""
    for kill in range(rounds(5, 50)):
        assert _run(program, target, kill * 7).returncode == -signal.SIGKILL
        assert target.read_bytes() == b"old"
        # Of all the killed ones, the next removes what they left beside the file.
        assert len(_names(tmp_path)) == 2

    with replacing(target) as file:
        file.write(b"new")
    assert target.read_bytes() == b"new"
    assert _names(tmp_path) == ["trace.json"]


def test_an_export_does_not_disturb_another_that_is_still_writing_the_same_file(tmp_path: Path) -> None:
    target = tmp_path / "trace.json"
    with replacing(target) as slow:
        slow.write(b"slow")
        with replacing(target) as quick:
            quick.write(b"quick")
        assert target.read_bytes() == b"quick"

    assert target.read_bytes() == b"slow"
    assert _names(tmp_path) == ["trace.json"]


def test_many_threads_may_write_one_file_and_one_of_them_wins(tmp_path: Path) -> None:
    target = tmp_path / "trace.json"
    failures: list[BaseException] = []

    def export(text: bytes) -> None:
        try:
            for _ in range(20):
                with replacing(target) as file:
                    file.write(text * 10_000)
        except BaseException as error:
            failures.append(error)

    texts = [b"a", b"b", b"c", b"d"]
    threads = [threading.Thread(target=export, args=(text,)) for text in texts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert failures == []
    assert target.read_bytes() in [text * 10_000 for text in texts]
    assert _names(tmp_path) == ["trace.json"]


def test_without_locks_what_a_killed_export_left_is_cleaned_up_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(atomic, "_HAS_LOCKS", False)
    target = tmp_path / "trace.json"
    (tmp_path / f"{atomic._prefix(target)}0123456789abcdef.tmp").write_bytes(b"half")
    with replacing(target) as file:
        file.write(b"new")

    assert _names(tmp_path) == ["trace.json"]
    assert target.read_bytes() == b"new"
