"""The time index."""

from __future__ import annotations

from bisect import bisect_right
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logstore.host import read_file
from logstore.os_host import SystemFileSystem
from logstore.segments.kafka.sparse_index import IndexOrderError, IndexOverflowError
from logstore.segments.kafka.time_index import TimeIndex

FS = SystemFileSystem()


def test_golden_bytes(tmp_path: Path) -> None:
    """Three entries have the bytes that Kafka wrote for them."""
    path = str(tmp_path / "00000000000000000000.timeindex")
    index = TimeIndex.create(FS, path, 0, 1003)
    for timestamp_ms, offset in [(1700000000501, 3), (1700000000951, 9), (1700000001100, 11)]:
        assert index.maybe_append(timestamp_ms, offset)
    index.seal()
    assert read_file(FS, path).hex() == (
        "0000018bcfe569f5000000030000018bcfe56bb7000000090000018bcfe56c4c0000000b"
    )
    assert TimeIndex.open(FS, path, 0, 1003).last_entry == (1700000001100, 11)


def test_empty(tmp_path: Path) -> None:
    """An empty index knows no timestamp and leads to the base offset."""
    index = TimeIndex.create(FS, str(tmp_path / "a.timeindex"), 40, 1003)
    assert index.lookup(10**13) == (-1, 40)
    assert index.last_entry == (-1, 40)
    assert not index.maybe_append(-1, 45)
    assert index.entry_count == 0


def test_only_larger_timestamps_get_an_entry(tmp_path: Path) -> None:
    """The same timestamp again adds nothing, at the same offset or a later one."""
    index = TimeIndex.create(FS, str(tmp_path / "a.timeindex"), 40, 1003)
    assert index.maybe_append(100, 41)
    assert not index.maybe_append(100, 41)
    assert not index.maybe_append(100, 45)
    assert index.maybe_append(101, 41)
    assert list(index.entries()) == [(100, 41), (101, 41)]


def test_order(tmp_path: Path) -> None:
    """A timestamp or an offset below the last one is an error, even if the other is larger."""
    index = TimeIndex.create(FS, str(tmp_path / "a.timeindex"), 40, 1003)
    index.maybe_append(100, 45)
    with pytest.raises(IndexOrderError):
        index.maybe_append(200, 44)
    with pytest.raises(IndexOrderError):
        index.maybe_append(99, 46)
    with pytest.raises(IndexOverflowError):
        index.maybe_append(200, 40 + 2**31)
    empty = TimeIndex.create(FS, str(tmp_path / "b.timeindex"), 40, 1003)
    with pytest.raises(IndexOverflowError):
        empty.maybe_append(1, 39)
    assert list(index.entries()) == [(100, 45)]


def test_lookup(tmp_path: Path) -> None:
    """A lookup gives the last entry that is not above the timestamp."""
    index = TimeIndex.create(FS, str(tmp_path / "a.timeindex"), 40, 1003)
    index.maybe_append(100, 45)
    index.maybe_append(200, 49)
    assert index.lookup(99) == (-1, 40)
    assert index.lookup(100) == (100, 45)
    assert index.lookup(199) == (100, 45)
    assert index.lookup(10**13) == (200, 49)


def test_one_slot_is_kept_for_the_last_entry(tmp_path: Path) -> None:
    """An index is full one entry early; the final entry of the segment may take that slot."""
    index = TimeIndex.create(FS, str(tmp_path / "a.timeindex"), 0, 40)
    assert index.entry_count_max == 3
    index.maybe_append(1, 1)
    assert not index.is_full
    index.maybe_append(2, 2)
    assert index.is_full
    assert index.maybe_append(3, 3, skip_full_check=True)
    assert index.entry_count == 3


@given(
    entries=st.lists(st.integers(0, 1000), unique=True, max_size=50).map(sorted),
    target=st.integers(-10, 1100),
    seal=st.booleans(),
)
def test_against_a_list(
    tmp_path_factory: pytest.TempPathFactory, entries: list[int], target: int, seal: bool
) -> None:
    """Lookup and truncation do what they do on a plain sorted list."""
    index = TimeIndex.create(FS, str(tmp_path_factory.getbasetemp() / "m.timeindex"), 5, 10000)
    for number in entries:
        assert index.maybe_append(number * 2, 5 + number // 2)
    if seal:
        index.seal()
    timestamps = [number * 2 for number in entries]
    slot = bisect_right(timestamps, target)
    expected = (timestamps[slot - 1], 5 + entries[slot - 1] // 2) if slot else (-1, 5)
    assert index.lookup(target) == expected
    index.truncate_to(5 + target)
    kept = [(number * 2, 5 + number // 2) for number in entries if number // 2 < target]
    assert list(index.entries()) == kept
    assert index.last_entry == (kept[-1] if kept else (-1, 5))
