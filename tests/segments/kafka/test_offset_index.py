"""The offset index."""

from __future__ import annotations

from bisect import bisect_right
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logstore.host import read_file
from logstore.os_host import SystemFileSystem
from logstore.segments.kafka.offset_index import OffsetIndex
from logstore.segments.kafka.sparse_index import IndexOrderError, IndexOverflowError

FS = SystemFileSystem()


def test_golden_bytes(tmp_path: Path) -> None:
    """Three entries have the bytes that Kafka wrote for them."""
    path = str(tmp_path / "00000000000000000000.index")
    index = OffsetIndex.create(FS, path, 0, 1003)
    for offset, position in [(5, 198), (9, 396), (11, 575)]:
        index.append(offset, position)
    index.seal()
    assert read_file(FS, path).hex() == "00000005000000c6000000090000018c0000000b0000023f"
    assert list(OffsetIndex.open(FS, path, 0, 1003).entries()) == [(5, 198), (9, 396), (11, 575)]


def test_empty(tmp_path: Path) -> None:
    """An empty index leads to the start of the file."""
    index = OffsetIndex.create(FS, str(tmp_path / "a.index"), 40, 1003)
    assert index.lookup(0) == (40, 0)
    assert index.lookup(100) == (40, 0)
    assert index.last_entry == (40, 0)
    assert index.first_from_position(0) is None
    assert not index.is_full


def test_lookup(tmp_path: Path) -> None:
    """A lookup gives the last entry that is not above the offset, relative to the base."""
    index = OffsetIndex.create(FS, str(tmp_path / "a.index"), 40, 1003)
    index.append(45, 198)
    index.append(49, 396)
    assert index.lookup(44) == (40, 0)
    assert index.lookup(45) == (45, 198)
    assert index.lookup(48) == (45, 198)
    assert index.lookup(10**15) == (49, 396)
    assert index.last_entry == (49, 396)


def test_first_from_position(tmp_path: Path) -> None:
    """The upper bound of a byte range is the first entry at or behind its end."""
    index = OffsetIndex.create(FS, str(tmp_path / "a.index"), 40, 1003)
    index.append(45, 198)
    index.append(49, 396)
    assert index.first_from_position(198) == (45, 198)
    assert index.first_from_position(199) == (49, 396)
    assert index.first_from_position(397) is None


def test_offsets_increase(tmp_path: Path) -> None:
    """An offset that is not larger than the last one, or below the base, is refused."""
    index = OffsetIndex.create(FS, str(tmp_path / "a.index"), 40, 1003)
    with pytest.raises(IndexOrderError):
        index.append(39, 0)
    index.append(45, 198)
    for offset in (44, 45):
        with pytest.raises(IndexOrderError):
            index.append(offset, 396)
    assert list(index.entries()) == [(45, 198)]


def test_overflow(tmp_path: Path) -> None:
    """An offset more than 2^31-1 above the base is refused; that one is taken."""
    index = OffsetIndex.create(FS, str(tmp_path / "a.index"), 40, 1003)
    with pytest.raises(IndexOverflowError):
        index.append(40 + 2**31, 0)
    with pytest.raises(IndexOverflowError):
        index.append(50, 2**31)
    index.append(40 + 2**31 - 1, 0)
    assert index.last_entry == (40 + 2**31 - 1, 0)


def test_full(tmp_path: Path) -> None:
    """An index is full when not one more entry fits."""
    index = OffsetIndex.create(FS, str(tmp_path / "a.index"), 0, 23)
    assert index.entry_count_max == 2
    index.append(1, 1)
    assert not index.is_full
    index.append(2, 2)
    assert index.is_full


@given(
    offsets=st.lists(st.integers(0, 1000), unique=True, max_size=50).map(sorted),
    target=st.integers(-10, 1100),
    seal=st.booleans(),
)
def test_against_a_list(
    tmp_path_factory: pytest.TempPathFactory, offsets: list[int], target: int, seal: bool
) -> None:
    """Lookup and truncation do what they do on a plain sorted list."""
    index = OffsetIndex.create(FS, str(tmp_path_factory.getbasetemp() / "m.index"), 5, 10000)
    for offset in offsets:
        index.append(5 + offset, offset * 3)
    if seal:
        index.seal()
    slot = bisect_right(offsets, target)
    expected = (5 + offsets[slot - 1], offsets[slot - 1] * 3) if slot else (5, 0)
    assert index.lookup(5 + target) == expected
    index.truncate_to(5 + target)
    assert [offset - 5 for offset, _ in index.entries()] == [o for o in offsets if o < target]
    index.append(5 + 2000, 6000)
    assert index.last_entry == (2005, 6000)
