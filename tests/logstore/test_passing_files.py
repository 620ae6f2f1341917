"""What a large scan leaves in the page cache: what was there before it."""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
from pathlib import Path

import pytest

from logstore import passing_files
from logstore.compat.spark.stores import file_system_of
from logstore.os_host import SystemFile, SystemFileSystem
from logstore.passing_files import (
    PassingFile,
    PassingFileSystem,
    give_back,
    is_in_passing,
)
from logstore.streamed_files import StreamedFileSystem

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="only Linux tells what is in its page cache, and lets go of it"
)
_MB = 1024 * 1024
_SIZE_BYTES = 40 * _MB
_STEP_BYTES = 2 * _MB


def cached_places(path: Path) -> list[int]:
    """Return which MiB of a file begin in the page cache; looking there fetches nothing."""
    size_bytes = path.stat().st_size
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY) as view:
        is_there = (ctypes.c_ubyte * -(-size_bytes // mmap.PAGESIZE))()
        start = ctypes.c_char.from_buffer(view)
        status = ctypes.CDLL(None).mincore(
            ctypes.byref(start), ctypes.c_size_t(size_bytes), ctypes.byref(is_there)
        )
        del start
    assert status == 0
    return [place for place in range(size_bytes // _MB) if is_there[place * _MB // mmap.PAGESIZE]]


def forget(path: Path) -> None:
    """Put a file out of the cache."""
    file = SystemFile(str(path), os.open(path, os.O_RDWR))
    file.sync()
    give_back(file)
    file.close()


@pytest.fixture
def large(tmp_path: Path) -> Path:
    """A file of which nothing is in the cache."""
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(os.urandom(_MB) * (_SIZE_BYTES // _MB))
    forget(path)
    if cached_places(path):
        pytest.skip("this file system keeps what it has in memory (it may be a tmpfs)")
    return path


def scan(path: Path, *, step_bytes: int = _STEP_BYTES, again_bytes: int = 0) -> bytes:
    """Read a file from one end to the other; of each step the last bytes once more."""
    file = PassingFileSystem().open(str(path), writable=False)
    found, position, target = bytearray(), 0, bytearray(step_bytes)
    while count := file.read_into(position, memoryview(target)):
        taken = count - again_bytes if position + count < _SIZE_BYTES else count
        found += target[:taken]
        position += taken
    file.close()
    return bytes(found)


@pytest.mark.parametrize("again_bytes", [0, 12_345])
def test_a_scan_leaves_nothing_of_what_it_fetched(large: Path, again_bytes: int) -> None:
    """And it read what stands there."""
    expected = large.read_bytes()
    forget(large)
    assert scan(large, again_bytes=again_bytes) == expected
    assert cached_places(large) == []


def test_what_was_in_the_cache_stays(large: Path) -> None:
    """Others may need it."""
    expected = large.read_bytes()
    assert scan(large) == expected
    assert len(cached_places(large)) == _SIZE_BYTES // _MB


def test_a_scan_gives_back_as_it_goes_on(large: Path) -> None:
    """Not at its end: it may be longer than there is memory."""
    file = PassingFile(str(large), os.open(large, os.O_RDONLY))
    for position in range(0, 32 * _MB, _MB):
        assert len(file.read(position, _MB)) == _MB
    assert not set(range(16)) & set(cached_places(large))
    file.close()


def test_a_part_of_a_file_is_given_back_alone(large: Path) -> None:
    """Another task reads on behind it, and finds what the system fetched ahead."""
    large.read_bytes()
    ahead = SystemFile(str(large), os.open(large, os.O_RDONLY))
    give_back(ahead, 0, 24 * _MB)
    ahead.close()
    kept = cached_places(large)
    file = PassingFile(str(large), os.open(large, os.O_RDONLY))
    for position in range(0, 16 * _MB, _MB):
        file.read(position, _MB)
    end = set(range(24, _SIZE_BYTES // _MB))
    assert end <= set(kept)
    file.close()
    assert end <= set(cached_places(large))


def test_places_may_be_read_in_any_order(large: Path) -> None:
    """Giving back is about memory alone."""
    expected = large.read_bytes()
    forget(large)
    file = PassingFileSystem().open(str(large), writable=False)
    for position in (30 * _MB + 7, 3, 39 * _MB, 12 * _MB + 1, 0, _SIZE_BYTES - 5):
        assert file.read(position, 100) == expected[position : position + 100]
    file.close()


def test_what_was_written_is_given_back_once_it_is_durable(large: Path) -> None:
    """It was written to be there tomorrow."""
    fs, data = StreamedFileSystem(), os.urandom(_MB)
    file = fs.open(str(large))
    for position in range(0, 16 * _MB, _MB):
        file.write(position, data)
    file.write(16 * _MB, b"not a whole page")
    file.sync()
    assert not set(range(17)) & set(cached_places(large))
    assert file.read(5 * _MB, _MB) == data
    file.close()
    fs.close()


def test_a_system_that_does_not_tell_is_let_alone(
    large: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is given back that others may have had there."""

    def refuse(*_: object, **__: object) -> mmap.mmap:
        raise OSError(19, "No such device")

    with monkeypatch.context() as patched:
        patched.setattr(mmap, "mmap", refuse)
        file = PassingFile(str(large), os.open(large, os.O_RDONLY))
        for position in range(0, 32 * _MB, _MB):
            file.read(position, _MB)
        file.close()
    assert len(cached_places(large)) >= 32


def test_to_look_fetches_nothing(large: Path) -> None:
    """However often: what the system has begun to fetch would count as what was there."""
    for _ in range(50):
        file = PassingFile(str(large), os.open(large, os.O_RDONLY))
        file.read(0, 0)
        file.close()
    assert cached_places(large) == []


def test_large_scans_are_in_passing(monkeypatch: pytest.MonkeyPatch) -> None:
    """More than a quarter of the memory; or anything that is read but once."""
    monkeypatch.setattr(passing_files, "_memory_bytes", lambda: 4000)
    assert not is_in_passing(1000)
    assert is_in_passing(1001)
    assert not isinstance(file_system_of("/data", 1000), PassingFileSystem)
    assert isinstance(file_system_of("/data", 1001), PassingFileSystem)
    assert isinstance(file_system_of("/data", is_read_once=True), PassingFileSystem)


def test_files_that_are_written_are_the_usual_ones(tmp_path: Path) -> None:
    """Only what is read alone is in passing."""
    path = str(tmp_path / "a")
    for fs, kind in ((PassingFileSystem(), PassingFile), (SystemFileSystem(), SystemFile)):
        made = fs.open(path, create=True)
        assert type(made) is SystemFile
        made.write(0, b"abc")
        made.close()
        found = fs.open(path, writable=False)
        assert type(found) is kind
        assert found.read(0, 9) == b"abc"
        found.close()
