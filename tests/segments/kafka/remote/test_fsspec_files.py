"""A file system of fsspec, used as one of the host."""

from __future__ import annotations

import uuid

import pytest

from logstore.host import read_file, write_file
from logstore.segments.kafka.remote.fsspec_files import FsspecFiles, is_url, open_url


@pytest.fixture
def opened() -> tuple[FsspecFiles, str]:
    """An empty directory in memory."""
    return open_url(f"memory://tests/{uuid.uuid4().hex}")


def test_only_urls_are_for_fsspec() -> None:
    """A path is not a URL, whatever is in it."""
    assert is_url("s3://bucket/x")
    assert is_url("memory://x")
    assert not is_url("/data/remote")
    assert not is_url("C:/data")


def test_what_is_written_is_read_by_ranges(opened: tuple[FsspecFiles, str]) -> None:
    """Front to back on the way in, anywhere on the way out, and never past the end."""
    fs, root = opened
    file = fs.open(f"{root}/a/b", create=True)
    file.truncate(0)
    file.write(0, b"hello ")
    file.write(6, memoryview(b"world"))
    file.sync()
    assert file.size() == 11
    file.close()
    file.close()
    found = fs.open(f"{root}/a/b", writable=False)
    assert (found.size(), found.fileno()) == (11, None)
    assert found.read(6, 100) == b"world"
    assert found.read(0, 5) == b"hello"
    assert found.read(11, 5) == b""
    target = bytearray(8)
    assert found.read_into(6, memoryview(target)) == 5
    assert bytes(target) == b"world\0\0\0"


def test_objects_are_not_written_to_again(opened: tuple[FsspecFiles, str]) -> None:
    """Neither elsewhere than at the end, nor once they are there; nor are they cut."""
    fs, root = opened
    file = fs.open(f"{root}/x", create=True)
    with pytest.raises(OSError, match="front to back"):
        file.write(3, b"x")
    with pytest.raises(OSError, match="cannot be cut"):
        file.truncate(5)
    file.close()
    with pytest.raises(OSError, match="cannot be written to"):
        fs.open(f"{root}/x")
    with pytest.raises(OSError, match="front to back"):
        fs.open(f"{root}/x", writable=False).write(0, b"x")
    with pytest.raises(FileNotFoundError):
        fs.open(f"{root}/missing", writable=False)


def test_small_files_are_replaced_whole(opened: tuple[FsspecFiles, str]) -> None:
    """What the host's own functions do with checkpoints works here too."""
    fs, root = opened
    fs.make_directory(root)
    write_file(fs, f"{root}/m.json", b"one")
    write_file(fs, f"{root}/m.json", b"two")
    assert read_file(fs, f"{root}/m.json") == b"two"
    assert fs.modified_ms(f"{root}/m.json") > 1_600_000_000_000


def test_directories_are_listed_and_removed(opened: tuple[FsspecFiles, str]) -> None:
    """Names in order, with kind and size; removal of what is not there is fine."""
    fs, root = opened
    for name, data in (("d/two", b"22"), ("d/one", b"1"), ("d/e/three", b"333")):
        file = fs.open(f"{root}/{name}", create=True)
        file.write(0, data)
        file.close()
    found = fs.list_directory(f"{root}/d")
    assert [(e.name, e.is_directory, e.size_bytes) for e in found] == [
        ("e", True, 0),
        ("one", False, 1),
        ("two", False, 2),
    ]
    assert fs.is_directory(f"{root}/d")
    assert not fs.is_directory(f"{root}/d/one")
    fs.rename(f"{root}/d/one", f"{root}/d/uno")
    fs.remove(f"{root}/d/two")
    assert [e.name for e in fs.list_directory(f"{root}/d")] == ["e", "uno"]
    fs.sync_directory(f"{root}/d")
    fs.remove_directory(f"{root}/d")
    fs.remove_directory(f"{root}/d")
    assert not fs.exists(f"{root}/d/uno")


def test_what_object_stores_do_not_have_is_refused(opened: tuple[FsspecFiles, str]) -> None:
    """Locks and the size of the volume."""
    fs, root = opened
    with pytest.raises(OSError, match="no locks"):
        fs.lock(root)
    with pytest.raises(OSError, match="size of the volume"):
        fs.volume_space(root)
