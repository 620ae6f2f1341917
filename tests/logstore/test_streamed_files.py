"""Files that are written from front to back, past the page cache."""

from __future__ import annotations

import errno
import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logstore import streamed_files
from logstore.os_host import SystemFile
from logstore.streamed_files import StreamedFileSystem

_PAGE = 4096
_BLOCK = 4 * _PAGE


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streamed_files, "_BLOCK_BYTES", _BLOCK)


@pytest.fixture
def fs() -> Iterator[StreamedFileSystem]:
    """Files in a temporary directory, whose thread goes with the test."""
    found = StreamedFileSystem()
    yield found
    found.close()


def _no_direct(path: str) -> int:
    assert path
    return -1


def _not_direct(path: str) -> int:
    """Return a descriptor that the test has refuse what a direct one would."""
    return os.open(path, os.O_WRONLY)


@pytest.fixture(params=["direct", "refused at the opening", "refused at a write"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """A file system with direct writes, and two without."""
    way: str = request.param
    if way == "refused at the opening":
        monkeypatch.setattr(streamed_files, "_open_direct", _no_direct)
    elif way == "refused at a write":
        monkeypatch.setattr(streamed_files, "_open_direct", _not_direct)
        plain = os.pwrite

        def refuse(descriptor: int, data: memoryview, position: int) -> int:
            if len(data) == _BLOCK and descriptor not in refused:
                refused.add(descriptor)
                raise OSError(errno.EINVAL, "Invalid argument")
            return plain(descriptor, data, position)

        refused: set[int] = set()
        monkeypatch.setattr(os, "pwrite", refuse)
    return way


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize(
    "size_bytes", [0, 1, _PAGE, _BLOCK - 1, _BLOCK, 5 * _BLOCK, 7 * _BLOCK + 5]
)
def test_what_is_written_stands_there(
    fs: StreamedFileSystem, tmp_path: Path, size_bytes: int
) -> None:
    """In pieces of any size, whole blocks or not, with a way past the page cache or without."""
    path, data = tmp_path / "file", random.Random(size_bytes).randbytes(size_bytes)
    file = fs.open(str(path), create=True)
    position = 0
    for piece_bytes in (1, 700, _PAGE, 3 * _BLOCK, _BLOCK + 1, size_bytes):
        piece = data[position : position + piece_bytes]
        file.write(position, piece)
        position += len(piece)
    file.sync()
    assert path.read_bytes() == data
    file.close()
    assert path.read_bytes() == data


@pytest.mark.usefixtures("way")
def test_closing_hands_over_what_is_left(fs: StreamedFileSystem, tmp_path: Path) -> None:
    """As with any file, a sync is for power losses only."""
    file = fs.open(str(tmp_path / "file"), create=True)
    file.write(0, b"x" * (_BLOCK + 10))
    file.close()
    file.close()
    assert (tmp_path / "file").read_bytes() == b"x" * (_BLOCK + 10)


_WRITES = st.lists(
    st.tuples(
        st.sampled_from(["next", "next", "next", "back", "gap", "read", "sync", "cut", "size"]),
        st.integers(0, 3 * _BLOCK),
    ),
    max_size=30,
)


@settings(max_examples=60, deadline=None)
@given(steps=_WRITES)
def test_it_is_a_file_like_any_other(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int]]
) -> None:
    """Writes in between, cuts, reads and sizes are as without blocks."""
    directory, fs = tmp_path_factory.mktemp("streamed"), StreamedFileSystem()
    file = fs.open(str(directory / "file"), create=True)
    expected, chance = bytearray(), random.Random(1)
    for kind, number in steps:
        end = len(expected)
        if kind in ("next", "back", "gap"):
            position = {"next": end, "back": number % (end + 1), "gap": end + number}[kind]
            data = chance.randbytes(number)
            if data:
                file.write(position, data)
                expected.extend(bytes(max(0, position - end)))
                expected[position : position + len(data)] = data
        elif kind == "read":
            assert file.read(number, 100) == expected[number : number + 100]
        elif kind == "sync":
            file.sync()
        elif kind == "cut":
            size_bytes = number % (end + 1)
            file.truncate(size_bytes)
            del expected[size_bytes:]
        else:
            assert file.size() == end
    file.close()
    fs.close()
    assert (directory / "file").read_bytes() == expected


@pytest.mark.skipif(
    not hasattr(os, "O_DIRECT"), reason="O_DIRECT is missing, without which no thread writes"
)
def test_a_refusal_is_told_again_and_again(
    fs: StreamedFileSystem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thread was refused: who writes next, syncs or closes hears of it, with the file's name."""
    path = tmp_path / "file"
    file = fs.open(str(path), create=True)

    def refuse(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "pwrite", refuse)
        file.write(0, bytes(_BLOCK))
        with pytest.raises(OSError, match="No space left") as caught:
            file.sync()
    assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, str(path))
    for ask in (file.sync, lambda: file.write(_BLOCK, b"more"), file.close):
        with pytest.raises(OSError, match="No space left"):
            ask()
    assert path.stat().st_size == 0


def test_files_share_few_blocks(fs: StreamedFileSystem, tmp_path: Path) -> None:
    """One after the other, as many files as there are."""
    for number in range(20):
        file = fs.open(str(tmp_path / str(number)), create=True)
        file.write(0, bytes([number]) * (3 * _BLOCK + 1))
        file.close()
        assert (tmp_path / str(number)).read_bytes() == bytes([number]) * (3 * _BLOCK + 1)


def test_without_direct_writes_it_is_synced_as_it_grows(
    fs: StreamedFileSystem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that the sync at the end is short, and the page cache stays small."""
    monkeypatch.setattr(streamed_files, "_open_direct", _no_direct)
    monkeypatch.setattr(streamed_files, "_SYNC_STEP_BYTES", 4 * _BLOCK)
    synced: list[int] = []
    plain = SystemFile.sync

    def watched(file: SystemFile) -> None:
        synced.append(os.stat(file.path).st_size)
        plain(file)

    monkeypatch.setattr(SystemFile, "sync", watched)
    file = fs.open(str(tmp_path / "file"), create=True)
    for number in range(9):
        file.write(number * _BLOCK, bytes(_BLOCK))
    file.sync()
    file.close()
    assert len(synced) == 3
    assert synced[0] < synced[1] < synced[2] == 9 * _BLOCK


def test_files_that_are_only_read_are_the_usual_ones(
    fs: StreamedFileSystem, tmp_path: Path
) -> None:
    """There is nothing to hand on."""
    (tmp_path / "file").write_bytes(b"there")
    file = fs.open(str(tmp_path / "file"), writable=False)
    assert type(file) is SystemFile
    assert file.read(0, 5) == b"there"
    file.close()
