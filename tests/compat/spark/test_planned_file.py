"""Segments that a broker replaces or removes after a query was planned."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

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
        store.partition("t", 0).append_records([Record(b"k", b"%d" % number, 1)] * 3)
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
@pytest.mark.parametrize("batch_count", [0, 7, 20, 40])
def test_a_segment_that_is_gone_is_told(read: Reading, batch_count: int, tmp_path: Path) -> None:
    """Whatever has its name now, however long that is: its positions mean something else."""
    log = filled(tmp_path / "store", 20)
    (unit,) = units_of(tmp_path / "store", {})
    other = filled(tmp_path / "other", batch_count)
    log.unlink()
    if batch_count:
        other.rename(log)
    with pytest.raises(MissingSegmentError, match="was replaced or removed since"):
        read(unit)


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
