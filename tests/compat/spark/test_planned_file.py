"""Segments that a broker replaces or removes after a query was planned."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest

from logstore.compat.spark.convert.committed_columns import committed_columns
from logstore.compat.spark.header_count import count_unit
from logstore.compat.spark.predicates import Where
from logstore.compat.spark.work_unit import WorkUnit
from logstore.errors import MissingSegmentError
from logstore.os_host import system_host
from logstore.partition import Record
from logstore.segments.kafka.store import KafkaStore
from logstore.tools.inspection.stats.kafka_measure import measure_kafka
from tests.compat.spark.test_kafka_rows import rows_of, units_of

Reading = Callable[[WorkUnit], Any]
SEGMENT = "00000000000000000000.log"


def filled(directory: Path, batch_count: int) -> Path:
    """Return the first segment of a store of so many batches."""
    store = KafkaStore(system_host(), str(directory))
    store.create_topic("t", 1)
    for number in range(batch_count):
        store.partition("t", 0).append_records([Record(b"k", b"%02d" % number, 1)] * 3)
    store.close()
    return directory / "t-0" / SEGMENT


def rows(unit: WorkUnit) -> list[Any]:
    """Return the values that Spark's rows have."""
    return [row["value"] for row in rows_of([unit])]


def passing_over(unit: WorkUnit) -> list[Any]:
    """Return the same where damage is passed over."""
    return [row["value"] for row in rows_of([unit], mode="dropmalformed")]


def counted(unit: WorkUnit) -> int:
    """Return how many records there are by the headers of batches."""
    return count_unit(system_host().fs, unit).record_count


def measured(unit: WorkUnit) -> int:
    """Return how many records ``logstore stats`` sees."""
    return measure_kafka(system_host().fs, unit, Where()).record_count


def converted(unit: WorkUnit) -> int:
    """Return how many records a conversion sees."""
    return sum(map(len, committed_columns(system_host().fs, unit)))


READERS = pytest.mark.parametrize("read", [rows, passing_over, counted, measured, converted])


@READERS
def test_a_segment_that_was_compacted_meanwhile_is_read_as_it_was(
    read: Reading, tmp_path: Path
) -> None:
    """For a minute it stands beside the one that has its name now."""
    log = filled(tmp_path / "store", 20)
    (unit,) = units_of(tmp_path / "store", {})
    before = read(unit)
    log.rename(f"{log}.deleted")
    shutil.copy(filled(tmp_path / "other", 7), log)
    assert read(unit) == before


@READERS
def test_a_segment_that_is_gone_is_told(read: Reading, tmp_path: Path) -> None:
    """Retention took it: nothing has its records."""
    log = filled(tmp_path / "store", 20)
    (unit,) = units_of(tmp_path / "store", {})
    log.rename(log.with_name("00000000000000000060.log"))
    with pytest.raises(MissingSegmentError, match="was replaced or removed since"):
        read(unit)


@pytest.mark.parametrize("batch_count", [7, 20, 40])
@pytest.mark.parametrize("suffix", ["", ".swap"])
@pytest.mark.parametrize("read", [rows, passing_over, counted, measured])
def test_what_is_left_is_read_where_a_segment_was_replaced_more_than_once(
    read: Reading, suffix: str, batch_count: int, tmp_path: Path
) -> None:
    """Offsets tell what of it; positions would mean something else."""
    log = filled(tmp_path / "store", 20)
    (unit,) = units_of(tmp_path / "store", {"endingOffsets": '{"t": {"0": 50}}'})
    log.unlink()
    filled(tmp_path / "other", batch_count).rename(f"{log}{suffix}")
    found = read(unit)
    assert (found if isinstance(found, int) else len(found)) == min(3 * batch_count, 50)
    log.with_name("00000000000000000018.log").write_bytes(b"")
    assert read(unit) == found  # one that is empty adds nothing


@pytest.mark.parametrize("batch_count", [7, 20, 40])
@pytest.mark.parametrize("read", [rows, passing_over, counted, measured])
def test_records_may_be_in_several_segments_now(
    read: Reading, batch_count: int, tmp_path: Path
) -> None:
    """What one has does not count for the other."""
    log = filled(tmp_path / "store", 20)
    (unit,) = units_of(tmp_path / "store", {})
    before = read(unit)
    data = log.read_bytes()
    cut = len(data) // 20 * batch_count if batch_count < 20 else len(data)
    log.unlink()
    log.write_bytes(data[:cut])
    log.with_name(f"{3 * batch_count:020}.log").write_bytes(data[cut:])
    assert read(unit) == before


@pytest.mark.parametrize("batch_count", [7, 20, 40])
@pytest.mark.parametrize("read", [rows, passing_over, counted, measured, converted])
def test_a_part_of_a_segment_that_was_replaced_is_not_guessed(
    read: Reading, batch_count: int, tmp_path: Path
) -> None:
    """It is known by positions alone, which mean something else in another file."""
    log = filled(tmp_path / "store", 20)
    (unit,) = units_of(tmp_path / "store", {})
    unit = attrs.evolve(unit, end_position=unit.end_position // 2, is_alone=False)
    log.unlink()
    filled(tmp_path / "other", batch_count).rename(log)
    with pytest.raises(MissingSegmentError, match="was replaced or removed since"):
        read(unit)


def test_only_a_unit_that_has_its_segment_alone_can_be_looked_for(tmp_path: Path) -> None:
    """Where a segment is divided, and where it is not."""
    directory = tmp_path / "store"
    store = KafkaStore(system_host(), str(directory))
    store.create_topic("t", 1)
    for number in range(40):
        store.partition("t", 0).append_records([Record(b"k", b"%d" % number * 1000, 1)] * 3)
    store.close()
    assert [unit.is_alone for unit in units_of(directory, {})] == [True]
    parts = units_of(directory, {"splitBytes": "20000"})
    assert len(parts) > 2
    assert not any(unit.is_alone for unit in parts)


@READERS
def test_numbers_that_a_file_system_draws_anew_do_no_harm(read: Reading, tmp_path: Path) -> None:
    """Size and time say that it is the same file; of a copy that is enough."""
    log = filled(tmp_path / "store", 20)
    (unit,) = units_of(tmp_path / "store", {})
    before = read(unit)
    shutil.copy2(log, f"{log}.new")
    Path(f"{log}.new").rename(log)
    assert unit.stamp is not None
    assert unit.stamp.number != log.stat().st_ino
    assert read(attrs.evolve(unit, is_alone=False)) == before


@READERS
def test_a_segment_without_a_number_is_known_by_its_size(read: Reading, tmp_path: Path) -> None:
    """As those of URLs: one that is shorter is another."""
    log = filled(tmp_path / "store", 20)
    (unit,) = units_of(tmp_path / "store", {})
    unit = WorkUnit(unit.path, unit.topic, unit.partition, 0, unit.end_position, 0, 60)
    assert read(unit)
    log.write_bytes(log.read_bytes()[:100])
    with pytest.raises(MissingSegmentError, match="was replaced or removed since"):
        read(unit)
