"""Topics of every kind are sent batches of many records: what is said of each, and what is kept."""

from __future__ import annotations

from typing import Any

from tests.interop.drawn.batches import (
    APPEND_TIME,
    CONTROL,
    HEADER_BYTES,
    TRANSACTIONAL,
    batch,
    message_set,
)
from tests.interop.drawn.pair import of_side
from tests.interop.drawn.records import FIRST_TIME_MS, Sent, produced_by
from tests.interop.drawn.topics import learn_topics
from tests.interop.drawn.world import Topic, World

DAY_MS = 86_400_000
CODECS = ("producer", "uncompressed", "gzip", "snappy", "lz4", "zstd")
#: what a topic is told besides its codec
KINDS: tuple[dict[str, str], ...] = (
    {},
    {},
    {"message.timestamp.type": "LogAppendTime"},
    {"cleanup.policy": "compact"},
    {"cleanup.policy": "compact,delete"},
    {"cleanup.policy": "compact", "message.timestamp.type": "LogAppendTime"},
    {"message.timestamp.before.max.ms": "3600000"},
    {"message.timestamp.after.max.ms": "3600000"},
    {"message.timestamp.before.max.ms": "3600000", "cleanup.policy": "compact"},
    {"max.message.bytes": "300"},
    {"max.message.bytes": "100"},
    {"min.insync.replicas": "2"},
)
#: what a batch's header says besides what an honest client says
HEADERS: tuple[dict[str, Any], ...] = (
    {"attributes": APPEND_TIME},
    {"attributes": CONTROL},
    {"attributes": TRANSACTIONAL},
    {"attributes": 0x40},
    {"attributes": 0x80},
    {"attributes": -0x8000},
    {"base_offset": 2**40},
    {"base_offset": -1},
    {"leader_epoch": 7},
    {"base_sequence": 2},
    {"producer_epoch": 1},
    {"producer_id": 99, "producer_epoch": 1, "base_sequence": 0},
    {"producer_id": -2, "producer_epoch": 0, "base_sequence": 0},
    {"producer_id": 99, "producer_epoch": 0, "base_sequence": 2**31 - 1},
    {"producer_id": 99, "producer_epoch": 0, "base_sequence": -2},
    {"producer_id": 99, "producer_epoch": -1, "base_sequence": 0},
    {"count": 2},
    {"last_offset_delta": 0},
    {"magic": 1},
    {"crc": 0},
)


def create(world: World) -> None:
    """Ask for a topic of some kind."""
    name = f"{world.prefix}-kept{world.chance.randrange(6)}"
    settings = world.chance.choice(KINDS) | {"compression.type": world.pick(*CODECS)}
    wanted = [{"Name": key, "Value": value} for key, value in settings.items()]
    item = {"Name": name, "NumPartitions": 1, "ReplicationFactor": 1, "Configs": wanted}
    body = {"Topics": [item], "timeoutMs": 10_000}
    world.ask("CreateTopics", body)
    learn_topics(world, [name])


def many_records(world: World) -> list[dict[str, Any]]:
    """Draw records of which some have no key, or a time that is far away."""
    has_bad_times, has_null_keys = world.likely(0.15), world.likely(0.25)
    is_shuffled = world.likely(0.3)
    found = []
    for number in range(world.pick(1, 2, 3, 5, 12, 40)):
        time_ms = FIRST_TIME_MS + (world.chance.randrange(60) if is_shuffled else number)
        if has_bad_times and world.likely(0.4):
            time_ms = world.pick(
                -1, -2, 0, FIRST_TIME_MS - DAY_MS, FIRST_TIME_MS + DAY_MS,
                FIRST_TIME_MS + DAY_MS // 2,
            )  # fmt: skip
        is_keyless = has_null_keys and world.likely(0.4)
        headers = [(b"h", world.pick(b"x", None, b""))] if world.likely(0.1) else []
        found.append(
            {
                "key": None if is_keyless else world.pick(b"k1", b"k2", b""),
                "value": world.pick(b"v" * world.chance.randrange(1, 40), b"", None),
                "timestamp": time_ms,
                "headers": headers,
            }
        )
    return found


def change_of_first(world: World, records: list[dict[str, Any]]) -> tuple[float, int, bytes]:
    """
    Draw what is wrong with the bytes of the first record of several, its time apart.

    Of the others, and of the largest time, a leader of ours knows what their batch says.
    """
    whole = len(batch(records)) - HEADER_BYTES
    first = len(batch(records[:1])) - HEADER_BYTES
    time_at = 2 if first < 66 else 3
    position = world.chance.choice([one for one in range(first) if one != time_at])
    by = world.pick(b"\0", b"\1", b"\2", b"\x7f", b"\xff", b"\x80")
    return (position + 0.5) / whole, 1, by


def sent(world: World, topic: Topic) -> Sent:
    """Draw what a partition is sent: bytes that may be others for each broker."""
    records = many_records(world)
    if world.likely(0.05):
        raw = message_set(records, world.pick(0, 1), world.pick(0, 1, 2))
        raw = raw + batch(records) if world.likely(0.2) else raw
        return Sent(lambda _: raw, repr(raw[:30]))
    header: dict[str, Any] = {"codec": world.pick(0, 0, 1, 2, 3, 4)}
    if any(not one.transactional_id for one in world.producers) and world.likely(0.3):
        header |= produced_by(world, topic, 0, len(records))
    if world.likely(0.15):
        header |= world.chance.choice(HEADERS)
    if header == {"codec": 0} and world.likely(0.08):
        header["changes"] = [change_of_first(world, records)]
    times = world.pick(2, 3) if world.likely(0.04) else 1
    since = [record["timestamp"] - FIRST_TIME_MS for record in records]
    keyless = [number for number, record in enumerate(records) if record["key"] is None]
    told = f"{len(records)} records {header} x{times} {since} without keys: {keyless}"
    return Sent(lambda side: batch(records, **of_side(header, side)) * times, told)


def produce(world: World) -> None:
    """Send a batch of many records."""
    topic = world.topic()
    item = {
        "Name": topic.name,
        "TopicId": topic.id,
        "PartitionData": [{"Index": 0, "Records": sent(world, topic)}],
    }
    acks = world.pick(-1, -1, 1, 1, 0)
    items = [item]
    if world.likely(0.06):  # a partition twice, in one place or in two
        other = {"Index": 0, "Records": sent(world, topic)}
        if world.likely(0.5):
            item["PartitionData"] = [*item["PartitionData"], other]
        else:
            items.append(item | {"PartitionData": [other]})
    body = {"TransactionalId": None, "Acks": acks, "TimeoutMs": 5_000, "TopicData": items}
    version = world.version("Produce")
    if acks == 0:
        world.twin.send("Produce", version, body, "silent")
        world.twin.ask("Metadata", 4, {"Topics": []}, "silent")
        return
    world.ask("Produce", body, version)


def read(world: World) -> None:
    """Fetch all that a partition has."""
    topic = world.topic()
    item = {
        "Topic": topic.name,
        "TopicId": topic.id,
        "Partitions": [{"Partition": 0, "FetchOffset": 0, "PartitionMaxBytes": 2**24}],
    }
    body = {
        "MaxWaitMs": 0,
        "MinBytes": 0,
        "MaxBytes": 2**25,
        "IsolationLevel": world.pick(0, 1),
        "SessionId": 0,
        "SessionEpoch": -1,
        "Topics": [item],
        "ForgottenTopicsData": [],
    }
    world.twin.ask("Fetch", world.version("Fetch"), body)


def look_for(world: World) -> None:
    """Ask for an offset by time, the latest among them."""
    topic = world.topic()
    asked = world.pick(
        -3, -3, -1, FIRST_TIME_MS + world.chance.randrange(40), FIRST_TIME_MS - DAY_MS,
        FIRST_TIME_MS + DAY_MS, 0,
    )  # fmt: skip
    item = {"PartitionIndex": 0, "CurrentLeaderEpoch": -1, "Timestamp": asked}
    body = {"ReplicaId": -1, "IsolationLevel": 0, "TimeoutMs": 1000}
    world.twin.ask(
        "ListOffsets",
        max(7, world.version("ListOffsets")),
        body | {"Topics": [{"Name": topic.name, "Partitions": [item]}]},
    )
