"""Fetch sessions that live long: partitions come and go, and what they hold, under the reader."""

from __future__ import annotations

from typing import Any

from tests.interop.drawn.batches import batch
from tests.interop.drawn.records import FIRST_TIME_MS, Sent
from tests.interop.drawn.world import UNKNOWN_ID, Topic, World, plus

#: how the sessions are called that are begun here; those of other areas keep less in mind
_LONG = "long"


def produce(world: World) -> None:
    """Send a few records to some partitions, so that there is something to read."""
    items: list[dict[str, Any]] = []
    known = list(world.topics.values())
    for topic in world.chance.sample(known, min(len(known), world.pick(0, 1, 1, 2))):
        numbers = world.chance.sample(range(topic.partitions), world.pick(1, 1, topic.partitions))
        data = [{"Index": number, "Records": records(world)} for number in numbers]
        items.append({"Name": topic.name, "TopicId": topic.id, "PartitionData": data})
    body = {"TransactionalId": None, "Acks": -1, "TimeoutMs": 5_000, "TopicData": items}
    world.twin.ask("Produce", world.version("Produce"), body)


def records(world: World) -> Sent:
    """Draw a batch that nobody objects to."""
    size = world.pick(1, 10, 60, 300)
    count = world.pick(1, 1, 3)
    data = batch([
        {"key": b"k", "value": b"v" * size, "timestamp": FIRST_TIME_MS} for _ in range(count)
    ])  # fmt: skip
    return Sent(lambda _: data, f"{count} records of {size} bytes")


def wanted(world: World, count: int) -> list[dict[str, Any]]:
    """Draw partitions to read, now and then one twice or one that is not there."""
    items: list[dict[str, Any]] = []
    for _ in range(count):
        topic = a_topic(world)
        numbers = world.chance.sample(range(topic.partitions + 1), world.pick(1, 1, 2))
        partitions = [
            {
                "Partition": number if world.likely(0.9) else world.partition(topic),
                "CurrentLeaderEpoch": world.pick(*[-1] * 6, 0, 1),
                "FetchOffset": world.pick(0, 0, 0, 1, 2, 3, 6, 1000, -1),
                "LastFetchedEpoch": world.pick(*[-1] * 8, 0, 1),
                "LogStartOffset": -1,
                "PartitionMaxBytes": world.pick(2**20, 2**20, 2**20, 1, 100, 0),
            }
            for number in numbers
        ]
        items.append({"Topic": topic.name, "TopicId": topic.id, "Partitions": partitions})
    return items


def a_topic(world: World) -> Topic:
    """Draw a topic, most often one that is there."""
    if world.gone and world.likely(0.1):
        return world.chance.choice(world.gone)
    if world.topics and world.likely(0.95):
        return world.chance.choice(list(world.topics.values()))
    return Topic(f"{world.prefix}-unknown", UNKNOWN_ID, 1)


def forgotten(world: World) -> list[dict[str, Any]]:
    """Draw partitions that are to be read no more."""
    items = []
    for _ in range(world.pick(0, 0, 0, 0, 1, 1, 2)):
        topic = a_topic(world)
        numbers = world.chance.sample(range(topic.partitions + 1), world.pick(1, topic.partitions))
        items.append({"Topic": topic.name, "TopicId": topic.id, "Partitions": numbers})
    return items


def body_of(world: World, session: Any, epoch: Any, topics: list[dict[str, Any]]) -> dict[str, Any]:
    """Return a Fetch."""
    return {
        "MaxWaitMs": 0,
        "MinBytes": world.pick(0, 1),
        "MaxBytes": world.pick(*[2**25] * 5, 1, 200, 500),
        "IsolationLevel": world.pick(0, 0, 1),
        "SessionId": session,
        "SessionEpoch": epoch,
        "Topics": topics,
        "ForgottenTopicsData": [],
    }


def long_ones(world: World) -> list[str]:
    """Return what the sessions are called that go on here."""
    return [name for name in world.sessions if name.startswith(_LONG)]


def begin(world: World) -> None:
    """Begin a session, in place of another or not."""
    known = long_ones(world)
    former = world.sessions[world.chance.choice(known)][0] if known and world.likely(0.3) else 0
    name = f"{_LONG}{world.chance.randrange(3)}"
    body = body_of(world, former, 0, wanted(world, world.pick(0, 1, 2, 3, 4)))
    version = max(7, world.version("Fetch"))
    answer = world.twin.ask("Fetch", version, body)
    session = answer.made(lambda told: told["SessionId"])
    if session and session.ours and session.real:
        world.sessions[name] = [session, 1, version]


def go_on(world: World) -> None:
    """Read on in a session: add, change, forget; now and then by another epoch or version."""
    known = long_ones(world)
    name = world.chance.choice(known) if known else ""
    session, epoch, version = world.sessions.get(name, (world.pick(0, 5), 1, 13))
    asked = epoch
    if world.likely(0.08):
        asked = world.pick(plus(epoch, 1), plus(epoch, -1), -1, 0, 2**31 - 1, -2)
    body = body_of(world, session, asked, wanted(world, world.pick(0, 0, 0, 0, 1, 1, 2)))
    body["ForgottenTopicsData"] = forgotten(world)
    version = max(7, world.version("Fetch")) if world.likely(0.1) else version
    answer = world.twin.ask("Fetch", version, body)
    if not name:
        return
    if asked in (-1, 0):
        world.sessions.pop(name)
    elif asked == epoch and answer.get(lambda told: told["ErrorCode"]) == 0:
        world.sessions[name][1] = epoch + 1
