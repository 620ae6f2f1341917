"""SQL over damaged logs of either layout: an error, a row that tells, or every other row."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import attrs
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from logstore.compat.spark import read
from tests.compat.spark.test_damaged_logs import (
    KAFKA_DAMAGE,
    ROCKETMQ_DAMAGE,
    TOPIC,
    Victim,
    kafka_victim,
    rocketmq_victim,
)
from tests.segments.kafka.golden_case import GoldenCase, copy_of_data
from tests.segments.rocketmq.golden_case import GoldenCase as RocketMQCase

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(600)]


@attrs.frozen
class DamagedStore:
    """A store of which one batch or message is damaged."""

    directory: Path
    victims: list[Victim]
    #: (topic, partition, offset) of all that a real consumer read of it when it was sound
    expected: list[tuple[str, int, int]]
    #: of all of the above, what nobody can read any more
    lost: list[tuple[str, int, int]]
    options: dict[str, str]


@pytest.fixture
def kafka(tmp_path: Path) -> DamagedStore:
    """One batch in a sealed segment whose CRC is wrong, and nothing but zeros for the last one."""
    directory = copy_of_data("kafka-4.3", tmp_path)
    victims = [kafka_victim(directory, 0, 3), kafka_victim(directory, -1, -1)]
    for victim, name in zip(victims, ("last-byte", "zeros"), strict=True):
        victim.suffer(KAFKA_DAMAGE[name])
    records = GoldenCase("kafka-4.3", TOPIC).expected
    expected = [(TOPIC, r["partition"], r["offset"]) for r in records]
    lost = [row for victim in victims for row in victim.rows]
    return DamagedStore(directory, victims, expected, lost, {"subscribe": TOPIC})


@pytest.fixture
def rocketmq(tmp_path: Path) -> DamagedStore:
    """A body that is not what its CRC says, in a file that others follow; and one at the end."""
    case = RocketMQCase("plain", "5.5.0")
    store = case.copy_store(tmp_path / "store")
    victims = [rocketmq_victim(store, 0, 50), rocketmq_victim(store, -1, -1)]
    for victim in victims:
        victim.suffer(ROCKETMQ_DAMAGE["body"])
    expected = [(m["topic"], m["queueId"], m["queueOffset"]) for m in case.expected]
    lost = [row for victim in victims for row in victim.rows]
    return DamagedStore(store, victims, expected, lost, {})


@pytest.fixture(params=["kafka", "rocketmq"])
def damaged(request: pytest.FixtureRequest) -> DamagedStore:
    """A damaged store of either layout."""
    found: DamagedStore = request.getfixturevalue(request.param)
    return found


def view(spark: SparkSession, store: DamagedStore, **options: str) -> None:
    """Make what can be read of it a table."""
    columns = ["topic", "partition", "offset", "value", "file", "position", "_corrupt"]
    options = store.options | options
    read(spark, str(store.directory), columns, **options).createOrReplaceTempView("log")


def answer(spark: SparkSession, statement: str) -> list[tuple[Any, ...]]:
    """Return the rows of a statement."""
    return [tuple(row) for row in spark.sql(statement).collect()]


def test_a_query_that_meets_damage_fails(damaged: DamagedStore, spark: SparkSession) -> None:
    """With file and position of one of them in its message."""
    view(spark, damaged)
    with pytest.raises(PySparkException) as caught:
        answer(spark, "select count(*) from log")
    places = [f"{victim.path}: position {victim.position}: " for victim in damaged.victims]
    assert any(place in str(caught.value) for place in places)


def test_a_filter_keeps_a_query_away_from_damage(kafka: DamagedStore, spark: SparkSession) -> None:
    """Offsets between the two damaged batches are answered, pushed down as they are."""
    view(spark, kafka)
    low, high = kafka.victims[0].rows[-1][2], kafka.victims[1].rows[0][2]
    rows = spark.table("log").where(f"offset > {low} and offset < {high}").collect()
    found = sorted(row.offset for row in rows)
    assert found == [offset for _, _, offset in kafka.expected if low < offset < high]
    assert len(found) > 20


def test_damage_is_dropped(damaged: DamagedStore, spark: SparkSession) -> None:
    """Every other row is there, in groups and in joins of ranges of offsets."""
    view(spark, damaged, mode="dropmalformed")
    found = answer(
        spark, "select topic, partition, count(value), max(offset) from log group by all"
    )
    left = [row for row in damaged.expected if row not in damaged.lost]
    counted = Counter(row[:2] for row in left)
    last = {row[:2]: row[2] for row in sorted(left)}
    nulls = Counter(row[:2] for row in null_values(damaged))
    assert sorted(found) == sorted((*p, n - nulls[p], last[p]) for p, n in counted.items())
    joined = answer(
        spark,
        "select s.id, count(*) from range(0, 1000, 10) s join log on offset >= s.id and "
        "offset < s.id + 10 group by s.id order by s.id",
    )
    assert joined == sorted(Counter(row[2] // 10 * 10 for row in left).items())


def null_values(store: DamagedStore) -> list[tuple[str, int, int]]:
    """Return the places of records without a value, which only Kafka has."""
    if not store.options:
        return []
    records = GoldenCase("kafka-4.3", TOPIC).expected
    places = [(TOPIC, r["partition"], r["offset"]) for r in records if r.get("value", "") is None]
    return [place for place in places if place not in store.lost]


def test_damage_is_told_by_rows(damaged: DamagedStore, spark: SparkSession) -> None:
    """Each has file, position and reason, and nothing else; all other rows are there."""
    view(spark, damaged, mode="permissive")
    told = answer(
        spark,
        "select file, position, offset, value from log where _corrupt is not null "
        "and _corrupt like concat(file, ': position ', position, ': %') order by file, position",
    )
    assert told == [(str(one.path), one.position, None, None) for one in damaged.victims]
    ((count, distinct),) = answer(
        spark,
        "select count(*), count(distinct topic, partition, offset) from log where _corrupt is null",
    )
    assert count == distinct == len(damaged.expected) - len(damaged.lost)
