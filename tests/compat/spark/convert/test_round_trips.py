"""Golden stores converted, and converted back: every record, message and group's offset."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from logstore.compat.spark.convert.committed_offsets import read_committed_offsets
from logstore.compat.spark.convert.convert import convert
from logstore.compat.spark.convert.job import HereRunner
from logstore.compat.spark.convert.options import ConvertOptions
from logstore.compat.spark.convert.to_kafka import commit_offsets
from logstore.compat.spark.convert.topic_names import (
    kafka_group,
    kafka_name,
    rocketmq_group,
    rocketmq_name,
)
from logstore.os_host import system_host
from logstore.partition import Record
from logstore.segments.kafka.store import KafkaStore
from logstore.segments.kafka.store import StoreOptions as KafkaOptions
from logstore.segments.rocketmq.messages.message import Message
from logstore.segments.rocketmq.store import RocketMQStore
from logstore.segments.rocketmq.store import StoreOptions as RocketMQOptions
from tests.segments.kafka.golden_case import GOLDEN
from tests.segments.rocketmq.golden_case import GoldenCase

SMALL = {
    "mappedFileSizeCommitLog": "1048576",
    "maxHashSlotNum": "1000",
    "maxIndexNum": "4000",
    "mappedFileSizeConsumeQueue": "6000",
}
#: it carries no types
parquet: Any = importlib.import_module("pyarrow.parquet")
KAFKA_SETS = ("kafka-4.3", "kafka-3.9", "transactions-4.3", "legacy-3.9")
WITH_MANY_QUEUES = ("plain", "5.5.0")
ROCKETMQ_CASES = (
    ("plain", "4.9.8"),
    ("plain", "5.5.0"),
    ("properties", "4.9.8"),
    ("properties", "5.5.0"),
    ("ipv6", "5.5.0"),
    ("delay", "4.9.8"),
    ("transactions", "5.5.0"),
    ("groups", "4.9.8"),
    ("version-2", "5.5.0"),
)


def kafka_records(directory: Path) -> dict[tuple[str, int], list[Record]]:
    """Return the committed records of every partition of a Kafka store."""
    store = KafkaStore(system_host(), str(directory), KafkaOptions(is_writable=False))
    found: dict[tuple[str, int], list[Record]] = {}
    for topic, partitions in store.topics().items():
        for index, partition in partitions.items():
            if not topic.startswith("__"):
                start = partition.start_offset
                records = partition.read_records(start, 10**6, is_committed_only=True)
                found[topic, index] = records
    store.close()
    return found


def messages_of(
    directory: Path, settings: Mapping[str, str]
) -> dict[tuple[str, int], list[Message]]:
    """Return the messages of every queue of a RocketMQ store."""
    options = RocketMQOptions(is_writable=False, settings=dict(settings))
    store = RocketMQStore(system_host(), str(directory), options)
    found = {
        (topic, queue_id): queue.messages(queue.start_offset, 10**6)
        for topic, queues in store.topics().items()
        for queue_id, queue in queues.items()
        if not topic.startswith(("RMQ_SYS", "SCHEDULE", "rmq_sys", "%LMQ%"))
    }
    store.close()
    return found


def made(source: Path, target: Path, layout: str, **wishes: Any) -> dict[str, Any]:
    """Convert and return the report."""
    options = ConvertOptions(str(source), str(target), layout, **wishes)
    report: dict[str, Any] = convert(HereRunner(), options)
    return report


@pytest.mark.parametrize("name", KAFKA_SETS)
def test_kafka_to_rocketmq_and_back(name: str, tmp_path: Path) -> None:
    """Records come back to the last bit, and their offsets count on from the first one."""
    source = GOLDEN / name / "data"
    made(source, tmp_path / "rocketmq", "rocketmq", settings=SMALL)
    made(tmp_path / "rocketmq", tmp_path / "kafka", "kafka")
    before, after = kafka_records(source), kafka_records(tmp_path / "kafka")
    assert after.keys() == before.keys()
    for place, records in before.items():
        again = after[place]
        stripped = [record._replace(offset=0) for record in records]
        assert [record._replace(offset=0) for record in again] == stripped, place
        first = again[0].offset if again else 0
        assert [r.offset for r in again] == list(range(first, first + len(again)))
    assert sum(map(len, before.values())) > 20


@pytest.mark.parametrize("name", KAFKA_SETS[:2])
def test_messages_say_what_the_records_said(name: str, tmp_path: Path) -> None:
    """Body, key, born time; the queue offset is the offset up to a hole, dense behind it."""
    source = GOLDEN / name / "data"
    made(source, tmp_path / "rocketmq", "rocketmq", settings=SMALL)
    queues = messages_of(tmp_path / "rocketmq", SMALL)
    store = KafkaStore(system_host(), str(source), KafkaOptions(is_writable=False))
    for (topic, index), records in kafka_records(source).items():
        messages = queues[topic, index]
        assert [m.plain_body() for m in messages] == [r.value or b"" for r in records]
        assert [m.born_timestamp_ms for m in messages] == [r.timestamp_ms for r in records]
        start = store.topics()[topic][index].start_offset
        assert [m.queue_offset for m in messages] == list(range(start, start + len(records)))
        stored = [m.store_timestamp_ms for m in messages]
        assert stored == sorted(stored)
    store.close()


@pytest.mark.parametrize(("name", "version"), ROCKETMQ_CASES)
def test_rocketmq_to_kafka_and_back(name: str, version: str, tmp_path: Path) -> None:
    """All of every message comes back but where it stands, whatever Kafka has no place for."""
    case = GoldenCase(name, version)
    store = case.store if (name, version) == WITH_MANY_QUEUES else case.lean_store
    made(store, tmp_path / "kafka", "kafka")
    settings = {**SMALL, **case.settings}
    made(tmp_path / "kafka", tmp_path / "rocketmq", "rocketmq", settings=settings)
    before, after = (
        messages_of(store, case.settings),
        messages_of(tmp_path / "rocketmq", settings),
    )
    count = 0
    for place, messages in before.items():
        again = after.get(place, [])
        unplaced = [attrs.evolve(one, physical_offset=0) for one in messages]
        assert [attrs.evolve(one, physical_offset=0) for one in again] == unplaced, place
        count += len(again)
    assert count == sum(len(messages) for messages in after.values())
    assert count > 5


def test_old_messages_are_not_removed_by_the_first_broker(tmp_path: Path) -> None:
    """Kafka's default would remove what is older than a week; wishes are kept."""
    case = GoldenCase("plain", "5.5.0")
    for name, settings, expected in (
        ("default", {}, {"retention.ms": "-1"}),
        (
            "wished",
            {"segment.bytes": "1048576"},
            {"retention.ms": "-1", "segment.bytes": "1048576"},
        ),
        ("short", {"retention.ms": "5000"}, {"retention.ms": "5000"}),
    ):
        made(case.lean_store, tmp_path / name, "kafka", settings=settings)
        options = KafkaOptions(is_writable=False)
        store = KafkaStore(system_host(), str(tmp_path / name), options)
        found = {t.name: dict(t.settings) for t in store.topics_by_name.values()}
        store.close()
        converted = {n: s for n, s in found.items() if not n.startswith("__")}
        assert converted
        assert all(one == expected for one in converted.values())


def test_what_a_kafka_client_sees_of_messages(tmp_path: Path) -> None:
    """KEYS is the key, the other properties are headers, bodies are decompressed."""
    case = GoldenCase("properties", "5.5.0")
    made(case.lean_store, tmp_path / "kafka", "kafka")
    found = kafka_records(tmp_path / "kafka")
    # What a broker makes at its start and nobody has used becomes nothing.
    assert {"broker-a", "SELF_TEST_TOPIC", "TBW102"}.isdisjoint(topic for topic, _ in found)
    for (topic, queue_id), messages in messages_of(case.lean_store, case.settings).items():
        records = found[kafka_name(topic), queue_id] if messages else []
        for message, record in zip(messages, records, strict=True):
            keys = message.properties.get("KEYS")
            assert record.key == (None if keys is None else keys.encode())
            assert record.value == message.plain_body()
            headers = {header.name: (header.value or b"").decode() for header in record.headers}
            expected = {n: v for n, v in message.properties.items() if n != "KEYS"}
            assert headers == expected
            assert record.offset == message.queue_offset


def test_committed_offsets_of_groups_are_translated(tmp_path: Path) -> None:
    """Both ways: the next record that a group gets is the same one."""
    source = GOLDEN / "kafka-4.3" / "data"
    made(source, tmp_path / "rocketmq", "rocketmq", settings=SMALL)
    store = RocketMQStore(
        system_host(),
        str(tmp_path / "rocketmq"),
        RocketMQOptions(is_writable=False, settings=SMALL),
    )
    assert store.consumer_offsets.query("group-kafka-python", "groups", 0) == 3
    store.close()
    made(tmp_path / "rocketmq", tmp_path / "kafka", "kafka")

    def committed(directory: Path) -> dict[tuple[str, str, int], int]:
        store = KafkaStore(system_host(), str(directory), KafkaOptions(is_writable=False))
        found = read_committed_offsets(store)
        store.close()
        return {key: offset for key, offset in found.items() if not key[1].startswith("__")}

    before = {k: v for k, v in committed(source).items() if k[1] == "groups"}
    assert before
    assert {k: v for k, v in committed(tmp_path / "kafka").items() if k[1] == "groups"} == before


def test_the_offset_map_leads_from_every_record_to_its_message(tmp_path: Path) -> None:
    """Source and target offset, and the physical offset at which the message stands."""
    source = GOLDEN / "kafka-4.3" / "data"
    made(source, tmp_path / "rocketmq", "rocketmq", settings=SMALL, topics=("transactions",))
    rows = [
        row
        for path in sorted((tmp_path / "rocketmq").glob("logstore-offset-map-*.parquet"))
        for row in parquet.read_table(path).to_pylist()
    ]
    messages = messages_of(tmp_path / "rocketmq", SMALL)["transactions", 0]
    records = kafka_records(source)["transactions", 0]
    assert [row["sourceOffset"] for row in rows] == [record.offset for record in records]
    assert [row["targetOffset"] for row in rows] == [message.queue_offset for message in messages]
    assert [row["targetPosition"] for row in rows] == [m.physical_offset for m in messages]


@pytest.mark.parametrize(
    ("kafka", "rocketmq"),
    [
        ("orders", "orders"),
        ("a.b", "a%2Eb"),
        (".25RETRY.25g", "%RETRY%g"),
        (".25RETRY.25g.2Bt", "%RETRY%g+t"),
        ("a.2Bt", "a%2E2Bt"),
        ("x_y-z", "x_y-z"),
        ("rmq_sys_a.b", "%72mq_sys_a%2Eb"),
        ("SCHEDULE_TOPIC_XXXX", "%53CHEDULE_TOPIC_XXXX"),
        ("rmq_sys_wheel_timer", "%72mq_sys_wheel_timer"),
        ("TRANS_CHECK_MAX_TIME_TOPIC", "TRANS_CHECK_MAX_TIME_TOPIC"),
    ],
)
def test_names_are_spelled_so_that_they_come_back(kafka: str, rocketmq: str) -> None:
    """What one side does not allow is escaped, and what was escaped is restored."""
    assert rocketmq_name(kafka) == rocketmq
    assert kafka_name(rocketmq) == kafka


@pytest.mark.parametrize(
    ("kafka", "rocketmq"),
    [
        ("my.app", "my%2Eapp"),
        ("orders-service_2", "orders-service_2"),
        ("console consumer@1", "console%20consumer%401"),
        ("\u0433", "%D0%B3"),
        ("%RETRY%g", "%RETRY%g"),
        ("%FF", "%FF"),
        ("a%b", "a%b"),
        ("my%2Eapp", "my%252Eapp"),
    ],
)
def test_groups_are_spelled_so_that_clients_may_go_on(kafka: str, rocketmq: str) -> None:
    """RocketMQ's clients refuse most of the names that Kafka's groups may have."""
    assert rocketmq_group(kafka) == rocketmq
    assert kafka_group(rocketmq) == kafka


@given(st.text("a\u0433%2E5C4A9. |@", min_size=1), st.text("a%2E5C4A9|B-", min_size=1))
def test_no_two_groups_become_one(kafka: str, rocketmq: str) -> None:
    """Whatever they are called, also if one is called as another is spelled."""
    assert kafka_group(rocketmq_group(kafka)) == kafka
    assert rocketmq_group(kafka_group(rocketmq)) == rocketmq


def test_a_group_with_a_dot_goes_on_where_it_was(tmp_path: Path) -> None:
    """Under a name that RocketMQ's clients take, and under its own one on the way back."""
    store = KafkaStore(system_host(), str(tmp_path / "source"))
    store.create_topic("orders", 1).partitions[0].append_records(
        [Record(None, b"%d" % number, 1_700_000_000_000) for number in range(9)]
    )
    commit_offsets(store, {("my.app", "orders", 0): 5})
    store.close()
    made(tmp_path / "source", tmp_path / "rocketmq", "rocketmq")
    between = RocketMQStore(
        system_host(), str(tmp_path / "rocketmq"), RocketMQOptions(is_writable=False)
    )
    assert between.consumer_offsets.query("my%2Eapp", "orders", 0) == 5
    assert between.subscription_groups.get("my%2Eapp") is not None
    between.close()
    made(tmp_path / "rocketmq", tmp_path / "kafka", "kafka")
    back = KafkaStore(system_host(), str(tmp_path / "kafka"), KafkaOptions(is_writable=False))
    assert read_committed_offsets(back) == {("my.app", "orders", 0): 5}
    back.close()
