"""What offset index and time index have in common: files, memory, cache."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logstore.errors import CorruptFileError
from logstore.host import File, FileSystem, read_file, write_file
from logstore.os_host import SystemFileSystem
from logstore.segments.kafka.offset_index import OffsetIndex
from logstore.segments.kafka.sparse_index import IndexCache
from logstore.segments.kafka.time_index import TimeIndex


class CountingFileSystem(SystemFileSystem):
    """The real files; counts how often one is opened."""

    def __init__(self) -> None:
        self.open_count = 0

    def open(self, path: str, *, create: bool = False, writable: bool = True) -> File:  # type: ignore[override]
        """Count and pass on."""
        self.open_count += 1
        return super().open(path, create=create, writable=writable)


@pytest.fixture
def fs() -> CountingFileSystem:
    """Count what is opened."""
    return CountingFileSystem()


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Name a file that is not there."""
    return str(tmp_path / "00000000000000000000.index")


def filled(fs: FileSystem, path: str, count: int, bytes_max: int = 1003) -> OffsetIndex:
    """Return an active index with the entries (0, 100), (10, 200), (20, 300) ..."""
    index = OffsetIndex.create(fs, path, 0, bytes_max)
    for number in range(count):
        index.append(number * 10, number * 100 + 100)
    return index


def test_append_makes_no_system_call(fs: CountingFileSystem, path: str) -> None:
    """Neither creating an index nor appending to it touches the disk; flush writes it all."""
    index = filled(fs, path, 3)
    assert fs.open_count == 0
    assert index.entry_count == 3

    index.flush(sync=True)
    assert read_file(fs, path) == bytes(index.data()).ljust(1000, b"\0")


def test_flush_without_news_is_free(fs: CountingFileSystem, path: str) -> None:
    """A second flush opens nothing; one that must sync what the first one only wrote does."""
    index = filled(fs, path, 3)
    index.flush(sync=False)
    opened = fs.open_count
    index.flush(sync=False)
    assert fs.open_count == opened
    index.flush(sync=True)
    assert fs.open_count == opened + 1
    index.flush(sync=True)
    assert fs.open_count == opened + 1


def test_active_file_has_full_size_rounded_down(fs: CountingFileSystem, tmp_path: Path) -> None:
    """With a limit of 1003 bytes the active files have 1000 and 996 bytes, as the real ones do."""
    OffsetIndex.create(fs, str(tmp_path / "a.index"), 0, 1003, preallocate=True)
    TimeIndex.create(fs, str(tmp_path / "a.timeindex"), 0, 1003, preallocate=True)
    assert read_file(fs, str(tmp_path / "a.index")) == bytes(1000)
    assert read_file(fs, str(tmp_path / "a.timeindex")) == bytes(996)


def test_an_old_file_of_that_name_is_overwritten(fs: CountingFileSystem, path: str) -> None:
    """Nothing of a leftover file survives the creation of an index in its place."""
    write_file(fs, path, b"\xff" * 5000, sync=False)
    index = OffsetIndex.create(fs, path, 0, 1003, preallocate=True)
    assert read_file(fs, path) == bytes(1000)
    index.append(5, 198)
    index.seal()
    assert read_file(fs, path).hex() == "00000005000000c6"


def test_seal_trims(fs: CountingFileSystem, path: str) -> None:
    """A sealed file is as long as its entries, whatever was flushed before; empty means 0 bytes."""
    index = filled(fs, path, 2)
    index.flush(sync=True)
    index.append(30, 500)
    index.seal()
    assert read_file(fs, path).hex() == "00000000000000640000000a000000c80000001e000001f4"
    assert not index.is_active
    assert index.entry_count == 3

    empty = OffsetIndex.create(fs, path, 0, 1003, preallocate=True)
    empty.seal()
    assert read_file(fs, path) == b""


def test_sealed_index_loads_once_on_first_lookup(fs: CountingFileSystem, path: str) -> None:
    """Opening reads nothing, the first lookup reads the file, the next ones use the cache."""
    filled(fs, path, 5).seal()
    fs.open_count = 0
    cache = IndexCache()
    index = OffsetIndex.open(fs, path, 0, 1003, cache=cache, size_bytes=40)
    assert index.entry_count == 5
    assert fs.open_count == 0
    assert index.lookup(25) == (20, 300)
    assert index.lookup(39) == (30, 400)
    assert fs.open_count == 1
    assert cache.size_bytes == 40


@pytest.mark.parametrize(
    ("size_bytes", "last"), [(40, (40, 500)), (37, (30, 400)), (7, (0, 0)), (0, (0, 0))]
)
def test_the_last_entry_of_a_sealed_index_is_read_alone(
    fs: CountingFileSystem, path: str, size_bytes: int, last: tuple[int, int]
) -> None:
    """A start needs no more of a segment; a file that is cut within an entry ends before it."""
    filled(fs, path, 5).seal()
    fs.open(path).truncate(size_bytes)
    cache = IndexCache()
    for known_bytes in (None, size_bytes):
        index = OffsetIndex.open(fs, path, 0, 1003, cache=cache, size_bytes=known_bytes)
        assert index.last_entry == last
        assert len(cache) == 0
    active = OffsetIndex.open(fs, path, 0, 1003, zero_tail=True)
    active.resume(preallocate=True)
    assert OffsetIndex.open(fs, path, 0, 1003, zero_tail=True).last_entry == last


def test_an_index_that_goes_on_is_not_in_the_cache(fs: CountingFileSystem, path: str) -> None:
    """Its entries are in the index itself; what the cache had of it is used, and let go."""
    filled(fs, path, 5).seal()
    cache = IndexCache()
    for is_looked_at in (False, True):
        index = OffsetIndex.open(fs, path, 0, 1003, cache=cache, size_bytes=40)
        if is_looked_at:
            assert index.lookup(25) == (20, 300)
        fs.open_count = 0
        index.resume()
        assert fs.open_count == (0 if is_looked_at else 1)
        assert index.last_entry == (40, 500)
        assert (len(cache), cache.size_bytes) == (0, 0)


def test_cache_keeps_what_was_used_last(fs: CountingFileSystem, tmp_path: Path) -> None:
    """A full cache drops the index unused for longest; it is loaded again when asked."""
    cache = IndexCache(bytes_max=100)
    indexes: list[OffsetIndex] = []
    for number in range(3):
        path = str(tmp_path / f"{number}.index")
        filled(fs, path, 5).seal()
        indexes.append(OffsetIndex.open(fs, path, 0, 1003, cache=cache))
    for index in (indexes[0], indexes[1], indexes[0], indexes[2]):
        assert index.lookup(10) == (10, 200)
    assert len(cache) == 2
    assert cache.size_bytes == 80
    fs.open_count = 0
    indexes[0].lookup(0)
    indexes[2].lookup(0)
    assert fs.open_count == 0
    indexes[1].lookup(0)
    assert fs.open_count == 1

    indexes[1].close()
    assert cache.size_bytes == 40


def test_larger_than_the_cache(fs: CountingFileSystem, path: str) -> None:
    """An index that does not fit the cache still answers."""
    cache = IndexCache(bytes_max=16)
    filled(fs, path, 5).seal()
    index = OffsetIndex.open(fs, path, 0, 1003, cache=cache)
    assert index.lookup(25) == (20, 300)
    assert len(cache) == 0
    assert cache.size_bytes == 0


def test_resume_continues_where_the_file_ends(fs: CountingFileSystem, path: str) -> None:
    """A reopened index takes appends behind what it had, and its file grows to full size again."""
    filled(fs, path, 2).seal()
    index = OffsetIndex.open(fs, path, 0, 1003)
    index.resume(preallocate=True)
    assert index.is_active
    assert len(read_file(fs, path)) == 1000
    index.append(30, 500)
    assert list(index.entries()) == [(0, 100), (10, 200), (30, 500)]
    index.close()
    assert len(read_file(fs, path)) == 24


def test_truncate_clears_what_was_on_disk(fs: CountingFileSystem, path: str) -> None:
    """After a truncation and a flush the file has zeros where the dropped entries were."""
    index = filled(fs, path, 5)
    index.flush(sync=True)
    index.truncate_to(20)
    assert list(index.entries()) == [(0, 100), (10, 200)]
    index.append(21, 7)
    index.flush(sync=True)
    assert read_file(fs, path) == bytes(index.data()).ljust(1000, b"\0")


def test_truncating_a_sealed_index_makes_it_active(fs: CountingFileSystem, path: str) -> None:
    """The segment that a truncation ends in is the active one."""
    filled(fs, path, 5).seal()
    index = OffsetIndex.open(fs, path, 0, 1003)
    index.truncate_to(11)
    assert index.is_active
    index.append(11, 250)
    index.seal()
    assert list(index.entries()) == [(0, 100), (10, 200), (11, 250)]


def test_reset_drops_everything(fs: CountingFileSystem, path: str) -> None:
    """A reset index is empty and active, on disk too once it is flushed."""
    filled(fs, path, 5).seal()
    index = OffsetIndex.open(fs, path, 0, 1003)
    index.lookup(0)
    index.reset()
    assert index.entry_count == 0
    assert index.lookup(100) == (0, 0)
    index.flush(sync=False)
    assert read_file(fs, path) == bytes(1000)


def test_zero_tail_is_left_out_when_asked(fs: CountingFileSystem, path: str) -> None:
    """The file of a killed broker counts in full as Kafka counts, or without its zeros."""
    index = filled(fs, path, 3)
    index.flush(sync=True)
    assert OffsetIndex.open(fs, path, 0, 1003).entry_count == 125
    trimmed = OffsetIndex.open(fs, path, 0, 1003, zero_tail=True)
    assert list(trimmed.entries()) == list(index.entries())
    assert trimmed.last_entry == (20, 300)


def test_zero_tail_behind_a_last_byte_of_zero(fs: CountingFileSystem, path: str) -> None:
    """Zeros at the end of a genuine entry are not taken for the tail."""
    write_file(fs, path, bytes.fromhex("0000000100000100") + bytes(80), sync=False)
    assert list(OffsetIndex.open(fs, path, 0, 96, zero_tail=True).entries()) == [(1, 256)]


def test_zero_file_is_empty(fs: CountingFileSystem, path: str) -> None:
    """A preallocated file without entries has none."""
    write_file(fs, path, bytes(1000), sync=False)
    assert OffsetIndex.open(fs, path, 7, 1003, zero_tail=True).last_entry == (7, 0)
    write_file(fs, path, bytes(996), sync=False)
    assert TimeIndex.open(fs, path, 7, 1003, zero_tail=True).last_entry == (-1, 7)


def test_rename_and_remove(fs: CountingFileSystem, path: str) -> None:
    """A rename replaces the temporary suffix; without a file only the name changes."""
    index = filled(fs, path, 3)
    index.rename(".cleaned")
    assert index.path == path + ".cleaned"
    index.seal()
    index.rename(".swap")
    assert fs.exists(path + ".swap")
    index.rename("")
    assert fs.exists(path)
    assert not fs.exists(path + ".swap")
    index.remove()
    index.remove()
    assert not fs.exists(path)


def test_sanity_check(fs: CountingFileSystem, path: str) -> None:
    """A length that is no multiple, a last offset below the base, times that fall: all corrupt."""
    write_file(fs, path, bytes(9), sync=False)
    with pytest.raises(CorruptFileError, match="8-byte entries"):
        OffsetIndex.open(fs, path, 0, 1003).sanity_check()
    write_file(fs, path, bytes.fromhex("fffffff000000010"), sync=False)
    with pytest.raises(CorruptFileError, match="below the base offset"):
        OffsetIndex.open(fs, path, 5, 1003).sanity_check()
    times = bytes.fromhex("000000000000000900000001" + "000000000000000800000002")
    write_file(fs, path, times, sync=False)
    with pytest.raises(CorruptFileError, match="below the first"):
        TimeIndex.open(fs, path, 0, 1003).sanity_check()
    filled(fs, path, 5).seal()
    OffsetIndex.open(fs, path, 0, 1003).sanity_check()


def golden_files(golden: Path, extension: str) -> Iterator[Path]:
    """Yield all sealed index files of the golden directories, but for what a crash left."""
    for directory in sorted(golden.glob("*/data")):
        if not directory.parent.name.startswith("crash-"):
            yield from sorted(directory.rglob(f"*{extension}"))


def test_golden_indexes_are_rewritten_identically(fs: FileSystem, golden: Path, path: str) -> None:
    """Entry by entry, every index file of a real broker comes out of ours as it went in."""
    checked = 0
    for kind in (OffsetIndex, TimeIndex):
        for file in golden_files(golden, kind.EXTENSION):
            base_offset = int(file.name.split(".")[0])
            theirs = kind.open(fs, str(file), base_offset, 10485760)
            theirs.sanity_check()
            ours = kind.create(fs, path, base_offset, 10485760)
            for first, second in theirs.entries():
                if isinstance(ours, OffsetIndex):
                    ours.append(first, second)
                else:
                    ours.maybe_append(first, second, skip_full_check=True)
            ours.seal()
            assert read_file(fs, path) == file.read_bytes(), file
            checked += 1
    assert checked > 100


@given(data=st.binary(max_size=200), zero_bytes=st.integers(0, 64), zero_tail=st.booleans())
def test_fuzz(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, zero_bytes: int, zero_tail: bool
) -> None:
    """Any file can be opened, looked into and truncated; only the sanity check may object."""
    fs = SystemFileSystem()
    path = str(tmp_path_factory.getbasetemp() / "fuzz.index")
    write_file(fs, path, data + bytes(zero_bytes), sync=False)
    for kind in (OffsetIndex, TimeIndex):
        index = kind.open(fs, path, 100, 1003, zero_tail=zero_tail)
        assert len(list(index.entries())) == index.entry_count
        index.lookup(50)
        index.lookup(10**12)
        with contextlib.suppress(CorruptFileError):
            index.sanity_check()
        index.truncate_to(10**6)
        index.truncate_to(0)
