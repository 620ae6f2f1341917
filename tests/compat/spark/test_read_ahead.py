"""What the system is asked to fetch before a walk over headers comes to it."""

from __future__ import annotations

import os
import struct
from array import array
from pathlib import Path

import attrs
import pytest

from logstore.compat.spark.header_count import count_unit
from logstore.compat.spark.read_ahead import ReadAhead, indexed_places
from logstore.compat.spark.work_unit import WorkUnit
from logstore.os_host import system_host
from logstore.segments.kafka.config import LogConfig
from logstore.segments.kafka.record import Record, encode_batch
from logstore.segments.kafka.record_batch import RecordBatch
from logstore.segments.kafka.segment_files import SegmentFiles

_MB = 1024 * 1024


def asked(
    monkeypatch: pytest.MonkeyPatch, path: Path, bounds: tuple[int, int], gap_bytes: int
) -> list[tuple[int, int]]:
    """Walk over a file; return (start, end) of what was asked for."""
    path.touch()
    found: list[tuple[int, int]] = []

    def advise(descriptor: int, start: int, size_bytes: int, advice: int) -> None:
        assert os.fstat(descriptor).st_ino == path.stat().st_ino
        assert advice == os.POSIX_FADV_WILLNEED
        found.append((start, start + size_bytes))

    monkeypatch.setattr(os, "posix_fadvise", advise)
    file = system_host().fs.open(str(path), writable=False)
    ahead = ReadAhead(file, *bounds)
    for position in range(*bounds, gap_bytes):
        ahead.look(position, gap_bytes)
        assert not found or found[-1][1] <= position + 24 * _MB
    file.close()
    return found


@pytest.mark.skipif(not hasattr(os, "posix_fadvise"), reason="this system has no posix_fadvise")
@pytest.mark.parametrize("bounds", [(0, 100 * _MB), (5, 8 * _MB), (33, 20 * _MB + 1)])
def test_all_is_asked_for_once_in_order(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, bounds: tuple[int, int]
) -> None:
    """Each piece follows the one before it, and nothing behind the end is asked for."""
    found = asked(monkeypatch, tmp_path / "0.log", bounds, 16 * 1024)
    assert found[0][0] == bounds[0]
    assert found[-1][1] == bounds[1]
    assert [end for _, end in found[:-1]] == [start for start, _ in found[1:]]


@pytest.mark.skipif(not hasattr(os, "posix_fadvise"), reason="this system has no posix_fadvise")
def test_large_gaps_are_left_to_the_system(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Of a file with large batches only the headers are fetched."""
    assert asked(monkeypatch, tmp_path / "0.log", (0, 100 * _MB), _MB) == []


def asked_for_places(
    monkeypatch: pytest.MonkeyPatch, path: Path, places: list[int]
) -> list[tuple[int, int]]:
    """Walk from place to place; return (place, how far the walk was) of what was asked for."""
    path.touch()
    found: list[tuple[int, int]] = []
    position = 0

    def advise(descriptor: int, start: int, size_bytes: int, advice: int) -> None:
        del descriptor
        if advice == os.POSIX_FADV_WILLNEED:
            assert size_bytes == 61
            found.append((start, position))

    monkeypatch.setattr(os, "posix_fadvise", advise)
    file = system_host().fs.open(str(path), writable=False)
    ahead = ReadAhead(file, 0, places[-1] + 1, places, 61)
    for position in places:
        ahead.look(position, 16 * 1024)
    file.close()
    return found


@pytest.mark.skipif(not hasattr(os, "posix_fadvise"), reason="this system has no posix_fadvise")
@pytest.mark.parametrize("count", [1, 400, 2000])
def test_known_places_are_asked_for_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, count: int
) -> None:
    """Each once and in order, some hundred ahead of the walk, and never behind it."""
    places = list(range(16 * 1024, (count + 1) * 16 * 1024, 16 * 1024))
    found = asked_for_places(monkeypatch, tmp_path / "0.log", places)
    assert [place for place, _ in found] == places
    assert all(0 <= place - position <= 512 * 16 * 1024 for place, position in found)
    ahead = [place - position for place, position in found[1:]]
    assert not ahead or min(ahead) > 0


def write_index(path: Path, positions: list[int], zero_count: int = 0) -> WorkUnit:
    """Write an offset index; return a unit over the whole segment."""
    entries = b"".join(struct.pack(">ii", 10 * n, at) for n, at in enumerate(positions, 1))
    path.with_suffix(".index").write_bytes(entries + bytes(8 * zero_count))
    return WorkUnit(str(path), "t", 0, 0, positions[-1] + 16 * 1024, 0, 1_000_000)


def test_places_come_from_the_offset_index(tmp_path: Path) -> None:
    """Those within the unit; zeros at the end of a file that is not sealed are none."""
    positions = list(range(16_000, 1_600_000, 16_000))
    unit = write_index(tmp_path / "0.log", positions, zero_count=500)
    fs = system_host().fs
    assert list(indexed_places(fs, unit)) == positions
    part = attrs.evolve(unit, position=32_000, end_position=64_000)
    assert list(indexed_places(fs, part)) == [32_000, 48_000]


def test_small_batches_and_missing_indexes_have_no_places(tmp_path: Path) -> None:
    """Where headers are near to each other, all that lies between is fetched."""
    fs = system_host().fs
    unit = write_index(tmp_path / "0.log", list(range(4_100, 410_000, 4_100)))
    assert not indexed_places(fs, unit)
    (tmp_path / "0.index").write_bytes(b"\x00" * 13)
    assert not indexed_places(fs, unit)
    (tmp_path / "0.index").unlink()
    assert not indexed_places(fs, unit)


def test_an_index_that_lies_changes_no_count(tmp_path: Path) -> None:
    """It says where to look ahead, and nothing else."""
    host = system_host()
    files = SegmentFiles(host, str(tmp_path), LogConfig(), is_new=True)
    segment = files.create(0)
    for number in range(50):
        records = [Record(offset=number, timestamp_ms=1, key=None, value=bytes(20_000))]
        data = memoryview(encode_batch(records, base_offset=number))
        segment.append(RecordBatch(data, len(data)))
    segment.seal()
    segment.flush()
    segment.close()
    size_bytes = Path(segment.path).stat().st_size
    unit = WorkUnit(segment.path, "t", 0, 0, size_bytes, 0, 50)
    assert indexed_places(host.fs, unit)
    assert count_unit(host.fs, unit).record_count == 50
    lies = array("i", [1, 100_000, 2, 2**30, 3, 200_000, 4, 5])
    lies.byteswap()
    Path(segment.path).with_suffix(".index").write_bytes(lies.tobytes())
    assert count_unit(host.fs, unit).record_count == 50
