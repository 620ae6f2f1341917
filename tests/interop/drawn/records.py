"""Records are produced, fetched, looked for by time and deleted."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from tests.interop.drawn.batches import APPEND_TIME, CONTROL, TRANSACTIONAL, batch, message_set
from tests.interop.drawn.pair import of_side
from tests.interop.drawn.world import Producer, Topic, World, plus

FIRST_TIME_MS = int(time.time() * 1000) - 100_000
#: What a client may say wrong in a batch's header.
WRONG: tuple[dict[str, Any], ...] = (
    {"crc": 7},
    {"count": 9},
    {"count": 0},
    {"count": -1},
    {"last_offset_delta": 9},
    {"last_offset_delta": -1},
    {"length": 5},
    {"length": 100_000},
    {"length": -1},
    {"magic": 3},
    {"magic": 1},
    {"magic": 0},
    {"base_offset": 5},
    {"attributes": CONTROL},
    {"attributes": APPEND_TIME},
    {"max_timestamp": -1},
    {"base_sequence": 3},
    {"leader_epoch": 9},
    {"attributes": 0x40},
    {"attributes": 0x100},
    {"base_timestamp": -1},
    {"max_timestamp": 2**62},
    {"attributes": TRANSACTIONAL},
    {"producer_epoch": 3},
    {"producer_id": 77},
    {"producer_id": 77, "producer_epoch": 0},
    {"producer_id": 77, "producer_epoch": 0, "base_sequence": 4},
    {"producer_id": 78, "producer_epoch": 0, "base_sequence": 0, "attributes": TRANSACTIONAL},
)


class Sent:
    """Bytes that may be others for each broker, and what they are."""

    def __init__(self, make: Callable[[int], bytes | None], told: str) -> None:
        self._make = make
        self._told = told

    def __call__(self, side: int) -> bytes | None:
        """Return what one of them is sent."""
        return self._make(side)

    def __repr__(self) -> str:
        return self._told


def some_records(world: World) -> list[dict[str, Any]]:
    """Draw the records of a batch."""
    start = FIRST_TIME_MS + world.chance.randrange(50) * 1000
    found = []
    for number in range(world.pick(1, 1, 2, 3, 5)):
        key = world.pick(b"k1", b"k2", b"k3", b"k1", None if world.likely(0.3) else b"k4", b"")
        value = world.pick(b"v" * world.chance.randrange(1, 40), b"v", b"", None)
        headers = [(b"h", world.pick(b"x", None, b""))] if world.likely(0.15) else []
        step = world.pick(number, number, -number, 0)
        found.append({"key": key, "value": value, "timestamp": start + step, "headers": headers})
    if world.likely(0.04):
        found[0]["timestamp"] = world.pick(-1, 0, FIRST_TIME_MS + 10**10, FIRST_TIME_MS - 10**9)
    if world.likely(0.04):
        found[0]["value"] = b"large" * world.pick(500, 300_000)
    return found


def some_change(world: World) -> tuple[float, int, bytes]:
    """Draw what is wrong with the bytes of records whose checksum is right."""
    share = world.pick(0.0, 0.0, 1.0, world.chance.random(), world.chance.random())
    by = world.pick(b"", b"\0", b"\1", b"\2", b"\x7f", b"\xff", b"\x80\x01", b"\xff" * 10)
    return share, world.pick(0, 1, 1, 1, 2, 8, 1000), by


def batches_of(
    world: World, topic: Topic, partition: int, version: int
) -> Callable[[int], bytes | None]:
    """Draw what one partition is sent: bytes that may be others for each broker."""
    records = some_records(world)
    knows_zstd = version >= 7 or world.likely(0.1)
    codec = world.pick(0, 0, 0, 1, 2, 3, 4) if knows_zstd else world.pick(0, 0, 1, 2, 3)
    if world.likely(0.02):
        raw = world.pick(
            b"",
            b"\0" * 61,
            b"garbage",
            message_set(records, 1),
            message_set(records, 0),
            message_set(records, 1, 1),
            message_set(records, 0, 2),
        )
        return Sent(lambda _: raw, repr(raw and raw[:20]))
    if codec == 0 and world.likely(0.02):  # Kafka stumbles over such records in compressed batches
        records[-1]["delta"] = world.pick(0, 5, -1)
    header: dict[str, Any] = {"codec": codec}
    if any(not one.transactional_id for one in world.producers) and world.likely(0.45):
        header |= produced_by(world, topic, partition, len(records))
    if world.likely(0.08):
        header |= world.chance.choice(WRONG)
    # Of several records, and of compressed ones, not everything is looked at that Kafka looks at.
    if codec == 0 and len(records) == 1 and world.likely(0.06):
        header["changes"] = [some_change(world)]
    times = world.pick(2, 2, 1) if world.likely(0.02) else 1
    since = [record["timestamp"] - FIRST_TIME_MS for record in records]
    told = f"{len(records)} records {header} {times} {since}"
    return Sent(lambda side: batch(records, **of_side(header, side)) * times, told)


def produced_by(world: World, topic: Topic, partition: int, count: int) -> dict[str, Any]:
    """Draw the fields of a producer with an identity, most often the ones that are due."""
    nameless = [one for one in world.producers if not one.transactional_id]
    producer: Producer = world.chance.choice(nameless)
    place = (topic.name, partition)
    due = producer.sequences.get(place, 0)
    sequence, epoch = due, producer.epoch
    if world.likely(0.15):
        before, first = max(0, due - 1), max(0, due - count)
        sequence = world.pick(due + 1, before, 0, first, 2**31 - 1, -1)
    else:
        producer.sequences[place] = due + count
    if world.likely(0.06):
        epoch = plus(epoch, world.pick(1, -1, 5))
    return {"producer_id": producer.id, "producer_epoch": epoch, "base_sequence": sequence}


def produce(world: World) -> None:
    """Send records to a partition or several."""
    version = world.version("Produce")
    acks = world.pick(*[-1] * 8, 1, 0)
    items: dict[str, dict[str, Any]] = {}
    for _ in range(world.pick(1, 1, 1, 2)):
        topic = world.topic()
        partition = world.partition(topic)
        item = items.setdefault(
            topic.name, {"Name": topic.name, "TopicId": topic.id, "PartitionData": []}
        )
        if any(one["Index"] == partition for one in item["PartitionData"]):
            continue
        data = batches_of(world, topic, partition, version)
        item["PartitionData"].append({"Index": partition, "Records": data})
    body = {
        "TransactionalId": None,
        "Acks": acks,
        "TimeoutMs": 5_000,
        "TopicData": list(items.values()),
    }
    if acks == 0:
        world.twin.send("Produce", version, body, "silent")
        world.twin.ask("Metadata", 4, {"Topics": []}, "silent")
        return
    world.ask("Produce", body, version)


def fetch_items(world: World, count: int) -> list[dict[str, Any]]:
    """Draw what is to be fetched."""
    items: dict[str, dict[str, Any]] = {}
    for _ in range(count):
        topic = world.topic()
        item = items.setdefault(
            topic.name, {"Topic": topic.name, "TopicId": topic.id, "Partitions": []}
        )
        offset = world.pick(0, 0, 0, 1, 2, 3, 5, 8, 13, 100, -1) if world.likely(0.95) else 2**62
        item["Partitions"].append(
            {
                "Partition": world.partition(topic),
                "CurrentLeaderEpoch": world.pick(-1, -1, -1, -1, 0, 0, 1, -2),
                "FetchOffset": offset,
                "LastFetchedEpoch": world.pick(*[-1] * 8, 0, 1),
                "LogStartOffset": world.pick(-1, -1, 0),
                "PartitionMaxBytes": world.pick(1, 100, 200, 2**20, 2**20, 2**20, 0, -1),
            }
        )
    return list(items.values())


def fetch(world: World) -> None:
    """Fetch once, or begin a session."""
    begins = world.likely(0.35)
    body = {
        "MaxWaitMs": world.pick(0, 1, 20),
        "MinBytes": world.pick(0, 1, 1, 500),
        "MaxBytes": world.pick(2**25, 2**25, 2**25, 150, 1, 0, -1),
        "IsolationLevel": world.pick(0, 1, 1, 0, 0, 2),
        "SessionId": 0,
        "SessionEpoch": 0 if begins else -1,
        "Topics": fetch_items(world, world.pick(0, 1, 1, 1, 2, 3)),
        "ForgottenTopicsData": [],
        "RackId": world.pick("", "", "rack"),
    }
    if not begins:
        world.ask("Fetch", body)
        return
    line = world.pick("main", "second")
    answer = world.ask("Fetch", body, line=line)
    session = answer.made(lambda told: told["SessionId"])
    if session and session.ours and session.real:
        world.sessions[f"fetch{len(world.sessions) % 3}"] = [session, 1]


def fetch_incrementally(world: World) -> None:
    """Go on with a fetch session: add, forget, nothing new, or another epoch."""
    known = [name for name in world.sessions if name.startswith("fetch")]
    name = world.chance.choice(known) if known else ""
    session, epoch = world.sessions.get(name, (world.pick(0, 5), 1))
    forgotten = []
    if world.likely(0.3):
        topic = world.topic()
        forgotten = [
            {"Topic": topic.name, "TopicId": topic.id, "Partitions": [world.partition(topic)]}
        ]
    if world.likely(0.1):
        epoch = world.pick(epoch + 1, -1, 0, 1)
    body = {
        "MaxWaitMs": world.pick(0, 1),
        "MinBytes": world.pick(0, 1),
        "MaxBytes": 2**25,
        "IsolationLevel": world.pick(0, 1),
        "SessionId": session,
        "SessionEpoch": epoch,
        "Topics": fetch_items(world, world.pick(0, 0, 1)),
        "ForgottenTopicsData": forgotten,
    }
    version = max(7, world.version("Fetch"))
    answer = world.ask("Fetch", body, version)
    if name and answer.get(lambda told: told["ErrorCode"]) == 0 and epoch > 0:
        world.sessions[name] = [session, epoch + 1]
    elif name:
        world.sessions.pop(name)


def list_offsets(world: World) -> None:
    """Ask for offsets by time, and for all the ends there are."""
    items: dict[str, dict[str, Any]] = {}
    for _ in range(world.pick(1, 1, 2)):
        topic = world.topic()
        item = items.setdefault(topic.name, {"Name": topic.name, "Partitions": []})
        asked = world.pick(
            -1, -1, -2, -3, -4, -5, -6, -7, 0, FIRST_TIME_MS + world.chance.randrange(60_000), 2**62
        )
        item["Partitions"].append(
            {
                "PartitionIndex": world.partition(topic),
                "CurrentLeaderEpoch": world.pick(-1, -1, -1, 0, 1, -2),
                "Timestamp": asked,
            }
        )
    body = {
        "ReplicaId": world.pick(*[-1] * 6, -2, 1),
        "IsolationLevel": world.pick(0, 1),
        "Topics": list(items.values()),
        "TimeoutMs": 1000,
    }
    world.ask("ListOffsets", body)


def delete_records(world: World) -> None:
    """Move the start of a log."""
    topic = world.topic()
    partition = {
        "PartitionIndex": world.partition(topic),
        "Offset": world.pick(-1, 0, 1, 2, 4, 8, 100, -2),
    }
    world.ask(
        "DeleteRecords",
        {"Topics": [{"Name": topic.name, "Partitions": [partition]}], "TimeoutMs": 5000},
    )


def offset_for_leader_epoch(world: World) -> None:
    """Ask where an epoch ends."""
    topic = world.topic()
    partition = {
        "Partition": world.partition(topic),
        "CurrentLeaderEpoch": world.pick(-1, -1, 0, 1),
        "LeaderEpoch": world.pick(0, 0, 1, -1, 5),
    }
    body = {"ReplicaId": -1, "Topics": [{"Topic": topic.name, "Partitions": [partition]}]}
    world.ask("OffsetForLeaderEpoch", body)


def describe_producers(world: World) -> None:
    """Ask who has written to a partition."""
    topic = world.topic()
    body = {"Topics": [{"Name": topic.name, "PartitionIndexes": [world.partition(topic)]}]}
    world.ask("DescribeProducers", body)


def init_producer_id(world: World) -> None:
    """Ask for an identity, for no transactions."""
    body = {"TransactionalId": None, "TransactionTimeoutMs": 60_000}
    answer = world.ask("InitProducerId", body)
    if answer.is_told and answer.real["ErrorCode"] == answer.ours["ErrorCode"] == 0:
        identity = answer.made(lambda told: told["ProducerId"])
        world.producers.append(Producer(identity, answer.made(lambda told: told["ProducerEpoch"])))
