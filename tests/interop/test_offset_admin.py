"""Offsets, deleted records, log directories and group administration."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import kafka
import pytest
from kafka.errors import BrokerResponseError, OffsetOutOfRangeError
from kafka.structs import OffsetAndMetadata, TopicPartition

from logstore.segments.rocketmq.messages.message import decode_message
from tests.interop.clients import CLIENTS, read, read_all
from tests.interop.conftest import Broker, CreateTopic
from tests.interop.eventually import eventually
from tests.interop.samples import FIRST_TIMESTAMP_MS, numbered

pytestmark = [pytest.mark.interop, pytest.mark.either_layout]

# ListOffsets' own numbers for the ends of a log and its newest timestamp.
EARLIEST, LATEST, MAX_TIMESTAMP = -2, -1, -3


@pytest.fixture
def admin(broker: Broker) -> Iterator[Any]:
    """kafka-python's admin client."""
    client = kafka.KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    yield client
    client.close()


@pytest.fixture
def filled(broker: Broker, create_topic: CreateTopic) -> TopicPartition:
    """A partition with twenty records, a second apart, in four batches."""
    topic = create_topic(broker.bootstrap)
    records = numbered(20)
    for start in range(0, 20, 5):
        CLIENTS[0].produce(broker.bootstrap, topic, records[start : start + 5])
    return TopicPartition(topic, 0)


def group_of(partition: TopicPartition) -> str:
    """Name a group of the test's own."""
    return f"group-of-{partition.topic}"


@pytest.mark.parametrize(
    ("asked", "offset", "timestamp_ms"),
    [
        (EARLIEST, 0, -1),
        (LATEST, 20, -1),
        (MAX_TIMESTAMP, 19, FIRST_TIMESTAMP_MS + 19_000),
        (0, 0, FIRST_TIMESTAMP_MS),
        (FIRST_TIMESTAMP_MS + 7_000, 7, FIRST_TIMESTAMP_MS + 7_000),
        (FIRST_TIMESTAMP_MS + 7_001, 8, FIRST_TIMESTAMP_MS + 8_000),
        (FIRST_TIMESTAMP_MS + 19_001, -1, -1),
    ],
    ids=["earliest", "latest", "max", "epoch", "exact", "between", "after all"],
)
def test_offsets_for_times(
    admin: Any, filled: TopicPartition, asked: Any, offset: int, timestamp_ms: int
) -> None:
    """ListOffsets finds the first record at or after a time, both ends, and the newest time."""
    found = admin.list_partition_offsets({filled: asked})[filled]
    assert (found.offset, found.timestamp) == (offset, timestamp_ms)


def test_consumers_seek_by_time(broker: Broker, filled: TopicPartition) -> None:
    """offsets_for_times leads a consumer to the record."""
    consumer = kafka.KafkaConsumer(bootstrap_servers=broker.bootstrap)
    consumer.assign([filled])
    found = consumer.offsets_for_times({filled: FIRST_TIMESTAMP_MS + 12_345})[filled]
    assert found is not None
    consumer.seek(filled, found.offset)
    record = next(consumer)
    consumer.close()
    assert (record.offset, record.value) == (13, b"v-13")


def test_deleted_records_are_gone(broker: Broker, admin: Any, filled: TopicPartition) -> None:
    """DeleteRecords moves the start of the log; consumers from the start begin there, for good."""
    answer = admin.delete_records({filled: 7})[filled]
    assert answer["low_watermark"] == 7
    assert admin.list_partition_offsets({filled: EARLIEST})[filled].offset == 7
    admin.close()
    broker.stop()
    broker.start()
    assert read_all(CLIENTS[0], broker.bootstrap, filled.topic, 13) == numbered(20)[7:]
    assert read_all(CLIENTS[1], broker.bootstrap, filled.topic, 13) == numbered(20)[7:]


def test_records_up_to_the_high_watermark_may_go(admin: Any, filled: TopicPartition) -> None:
    """Offset -1 deletes all that is there; beyond the end is OFFSET_OUT_OF_RANGE."""
    with pytest.raises(OffsetOutOfRangeError):
        admin.delete_records({filled: 21})
    assert admin.delete_records({filled: -1})[filled]["low_watermark"] == 20
    assert admin.list_partition_offsets({filled: EARLIEST})[filled].offset == 20


def test_a_consumer_below_the_start_is_told(
    broker: Broker, admin: Any, filled: TopicPartition
) -> None:
    """An offset that was deleted is OFFSET_OUT_OF_RANGE, and the reset policy decides."""
    admin.delete_records({filled: 15})
    consumer = kafka.KafkaConsumer(
        bootstrap_servers=broker.bootstrap, auto_offset_reset="earliest", enable_auto_commit=False
    )
    consumer.assign([filled])
    consumer.seek(filled, 3)
    assert next(consumer).offset == 15
    consumer.close()


def stored_bytes(broker: Broker, topic: str) -> int:
    """Return what the only partition of a topic takes in the data files of either layout."""
    logs = list((broker.data / f"{topic}-0").glob("*.log"))
    if logs:
        return sum(log.stat().st_size for log in logs)
    found = position = 0
    with (broker.data / "commitlog" / f"{0:020}").open("rb") as file:
        while size_bytes := int.from_bytes(file.read(4), "big"):
            file.seek(position)
            message = decode_message(file.read(size_bytes))
            found += size_bytes if message.topic == topic else 0
            position += size_bytes
    return found


def test_log_directories_show_sizes(broker: Broker, admin: Any, filled: TopicPartition) -> None:
    """DescribeLogDirs names the directory and the bytes of each partition's segments."""
    (node,) = admin.describe_log_dirs()
    (directory,) = node["log_dirs"]
    assert directory["log_dir"] == str(broker.data)
    sizes = {
        (topic["name"], one["partition_index"]): one["partition_size"]
        for topic in directory["topics"]
        for one in topic["partitions"]
    }
    assert 0 < directory["usable_bytes"] <= directory["total_bytes"]
    assert sizes[filled.topic, 0] == stored_bytes(broker, filled.topic) > 0


def test_producers_are_described(admin: Any, filled: TopicPartition) -> None:
    """DescribeProducers shows the idempotent producers that wrote, and their last sequence."""
    states = admin.describe_producers([filled])[filled].active_producers
    assert len(states) == 4
    assert {(one.producer_epoch, one.last_sequence) for one in states} == {(0, 4)}


def test_committed_offsets_are_administered(admin: Any, filled: TopicPartition) -> None:
    """Offsets of a group without members are set, listed, removed; then the group is."""
    group = group_of(filled)
    eventually(lambda: coordinator_answers(admin, group), what="a coordinator")
    admin.alter_group_offsets(group, {filled: OffsetAndMetadata(7, "a note", -1)})
    assert admin.list_group_offsets({group: None})[group] == {
        filled: OffsetAndMetadata(7, "a note", -1)
    }
    assert group in {one["group_id"] for one in admin.list_groups()}
    described = admin.describe_groups([group])[group]
    assert (described["group_state"], described["members"]) == ("Empty", [])
    admin.delete_group_offsets(group, [filled])
    assert admin.list_group_offsets({group: None})[group] == {}
    admin.alter_group_offsets(group, {filled: OffsetAndMetadata(7, "", -1)})
    assert admin.delete_groups([group]) == {group: "OK"}
    assert group not in {one["group_id"] for one in admin.list_groups()}


def coordinator_answers(admin: Any, group: str) -> bool:
    """Tell whether the group's coordinator is there: the real one makes its topic first."""
    try:
        admin.list_group_offsets({group: None})
    except BrokerResponseError:
        return False
    return True


def test_a_group_with_members_is_described(
    broker: Broker, admin: Any, filled: TopicPartition
) -> None:
    """DescribeGroups shows members with what they were assigned; such a group is not deleted."""
    group = group_of(filled)
    member = CLIENTS[0].consumer(broker.bootstrap, filled.topic, group=group)
    assert len(read(member, 20)) == 20
    described = admin.describe_groups([group])[group]
    assert described["group_state"] == "Stable"
    assert described["protocol_type"] == "consumer"
    (one,) = described["members"]
    assert one["client_host"] == "/127.0.0.1"
    assert one["client_id"] == "rdkafka"
    assigned = one["member_assignment"]["assigned_partitions"]
    assert [(each["topic"], each["partitions"]) for each in assigned] == [(filled.topic, [0])]
    assert admin.delete_groups([group]) == {group: "NonEmptyGroupError"}
    member.close()
    eventually(
        lambda: admin.describe_groups([group])[group]["group_state"] == "Empty", what="it is empty"
    )
    assert admin.delete_groups([group]) == {group: "OK"}
