"""Requests that arrive together, as from a producer with several in flight: most are all alike."""

from __future__ import annotations

from typing import Any

from tests.interop.drawn.batches import batch
from tests.interop.drawn.pair import of_side
from tests.interop.drawn.records import FIRST_TIME_MS, Sent, produced_by
from tests.interop.drawn.stores import sent
from tests.interop.drawn.world import Topic, World

Question = tuple[str, int, dict[str, Any]]
#: what a batch may say that has it take a longer way
ODD: tuple[dict[str, Any], ...] = (
    {"crc": 1}, {"count": 2}, {"magic": 1}, {"base_offset": 1}, {"attributes": 0x10},
    {"attributes": 0x20}, {"attributes": 8}, {"max_timestamp": -1}, {"last_offset_delta": 4},
    {"producer_id": 2**40, "producer_epoch": 0, "base_sequence": 7}, {"length": 20},
    {"leader_epoch": 3},
)  # fmt: skip


def burst(world: World) -> None:
    """Send several at once, most of them to the same partitions."""
    topic = world.topic()
    others = [world.topic()] if world.likely(0.2) else []
    version = world.version("Produce")
    acks = world.pick(-1, -1, 1)
    count = world.pick(1, 2, 3, 4, 6, 10)
    names = world.chance.sample(range(topic.partitions), world.pick(1, 1, topic.partitions))
    questions: list[Question] = []
    for _ in range(count):
        if world.likely(0.1):
            questions.append(other(world, topic))
            continue
        chosen = [topic, *others] if world.likely(0.9) else [world.topic()]
        numbers = names if world.likely(0.9) else [world.partition(topic)]
        items = [
            {
                "Name": one.name,
                "TopicId": one.id,
                "PartitionData": [
                    {"Index": number, "Records": data(world, one, number)} for number in numbers
                ],
            }
            for one in chosen
        ]
        body = {"TransactionalId": None, "Acks": acks, "TimeoutMs": 5_000, "TopicData": items}
        at = version if world.likely(0.95) else world.version("Produce")
        questions.append(("Produce", at, body))
    world.twin.ask_together(questions, "together")


def data(world: World, topic: Topic, partition: int) -> Sent:
    """Draw a batch, most often a usual one of one record."""
    if world.likely(0.08):
        return sent(world, topic)
    header: dict[str, Any] = {"codec": world.pick(*[0] * 12, 1, 2, 3)}
    if world.likely(0.06):
        header |= world.chance.choice(ODD)
    count = world.pick(1, 1, 1, 2, 5)
    size = world.pick(1, 30, 30, 60, 130, 1000)
    records = [
        {
            "key": world.pick(b"k1", b"k2", b""),
            "value": b"v" * size,
            "timestamp": FIRST_TIME_MS + number,
            "headers": [(b"h", b"x")] if world.likely(0.1) else [],
        }
        for number in range(count)
    ]
    if any(not one.transactional_id for one in world.producers) and world.likely(0.3):
        header = produced_by(world, topic, partition, count) | header
    told = f"{count} records of {size} bytes {header}"
    return Sent(lambda side: batch(records, **of_side(header, side)), told)


def other(world: World, topic: Topic) -> Question:
    """Draw what comes between."""
    if world.likely(0.3):
        return "Metadata", 9, {"Topics": [{"Name": topic.name}], "AllowAutoTopicCreation": False}
    item: dict[str, Any] = {"Topic": topic.name, "TopicId": topic.id}
    asked = [{"Partition": 0, "FetchOffset": 0, "PartitionMaxBytes": 2**24}]
    body = {
        "MaxWaitMs": 0, "MinBytes": 0, "MaxBytes": 2**25, "IsolationLevel": 0, "SessionId": 0,
        "SessionEpoch": -1, "Topics": [item | {"Partitions": asked}], "ForgottenTopicsData": [],
    }  # fmt: skip
    return "Fetch", 12, body
