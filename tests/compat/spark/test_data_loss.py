"""Bounds that name what a store does not have, and what becomes of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from logstore.compat.spark.data_loss import DataLossError, check_bounds
from logstore.compat.spark.option_values import OptionError
from logstore.compat.spark.options import parse_options
from logstore.compat.spark.predicates import Where
from logstore.compat.spark.stores import open_for_reading, plan_tasks
from logstore.compat.spark.work_unit import WorkUnit
from logstore.os_host import system_host
from logstore.partition import Record
from logstore.segments.kafka.store import KafkaStore
from tests.segments.rocketmq.golden_case import GoldenCase


@pytest.fixture
def directory(tmp_path: Path) -> str:
    """A topic with records 3 to 9 in one partition, at 1,003 to 1,009 ms, and one in another."""
    store = KafkaStore(system_host(), str(tmp_path / "data"))
    store.create_topic("t", 2)
    for number in range(10):
        store.partition("t", 0).append_records([Record(None, b"%d" % number, 1000 + number)])
    store.partition("t", 1).append_records([Record(None, b"x", 1000)])
    store.partition("t", 0).delete_records(3)
    store.close()
    return store.directory


def tasks_of(directory: str, **options: str) -> list[list[tuple[int, int, int]]]:
    """Plan a batch query; return (partition, start, end) of its units, task by task."""
    parsed = parse_options({"path": directory, **options})
    with open_for_reading(directory) as store:
        check_bounds(store, parsed)
        tasks = plan_tasks(store, parsed, Where())
    return [
        [(one.partition, one.start_offset, one.end_offset) for one in task
         if isinstance(one, WorkUnit)]
        for task in tasks
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("startingOffsets", '{"tt": {"0": 1}}', "'tt-0' is not what is read"),
        ("endingOffsets", '{"t": {"0": 5, "2": 1}}', "'t-2' is not what is read"),
        ("startingOffsetsByTimestamp", '{"t": {"5": 1}}', "'t-5' is not what is read"),
        ("startingOffsets", '{"t": {"0": 11}}', "11 lies behind the end of t-0, 10"),
    ],
)
def test_bounds_that_mean_nothing_are_told(
    directory: str, name: str, text: str, message: str
) -> None:
    """Misspelled names would read too much, starts behind the end nothing."""
    with pytest.raises(OptionError) as caught:
        tasks_of(directory, **{name: text})
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"startingOffsets": '{"t": {"0": 1}}'}, "t-0: records 1 to 2 are not there"),
        ({"endingOffsets": '{"t": {"0": 12}}'}, "t-0: records 10 to 11 are not there"),
    ],
)
def test_records_that_are_not_there_fail_a_query_that_asks_about_loss(
    directory: str, options: dict[str, str], message: str
) -> None:
    """Other queries read what is there."""
    assert tasks_of(directory, **options) == [[(0, 3, 10), (1, 0, 1)]]
    with pytest.raises(DataLossError, match=message):
        tasks_of(directory, failOnDataLoss="true", **options)


def test_a_time_behind_the_youngest_record_reads_nothing_or_fails(directory: str) -> None:
    """By the option that Spark's source has; what it names is the partition."""
    assert tasks_of(directory, startingTimestamp="1005") == [[(0, 5, 10)]]
    with pytest.raises(OptionError, match="1005 is behind the youngest record of t-1"):
        tasks_of(directory, startingTimestamp="1005", startingOffsetsByTimestampStrategy="error")
    assert tasks_of(directory, endingTimestamp="2000") == [[(0, 3, 10), (1, 0, 1)]]


def test_tasks_are_as_small_as_asked_for(directory: str) -> None:
    """Also in a segment that is smaller than any unit would be."""
    assert tasks_of(directory, maxRecordsPerPartition="3") == [
        [(0, 3, 5)], [(0, 5, 7)], [(0, 7, 10)], [(1, 0, 1)]
    ]  # fmt: skip
    assert len(tasks_of(directory, minPartitions="5")) == 5
    assert len(tasks_of(directory, minPartitions="1")) == 2


def test_a_commit_log_is_divided_by_bytes() -> None:
    """It says how many tasks there are, and that it cannot say how many records each has."""
    case = GoldenCase("plain", "5.5.0")
    directory = str(case.store)
    assert 8 <= len(planned(directory, minPartitions="8")) <= 10
    with pytest.raises(OptionError, match="maxRecordsPerPartition: 3 is for the layout kafka"):
        planned(directory, maxRecordsPerPartition="3")


def planned(directory: str, **options: str) -> list[object]:
    """Plan a batch query."""
    parsed = parse_options({"path": directory, **options})
    with open_for_reading(directory) as store:
        return [*plan_tasks(store, parsed, Where())]
