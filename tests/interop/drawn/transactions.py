"""Producers get identities, begin transactions and end them."""

from __future__ import annotations

from typing import Any

from tests.interop.drawn.batches import TRANSACTIONAL, batch
from tests.interop.drawn.pair import of_side
from tests.interop.drawn.records import Sent, some_records
from tests.interop.drawn.world import Producer, World, plus


def transactional_id(world: World) -> str:
    """Draw a name of a few."""
    return (
        f"{world.prefix}-x{world.chance.randrange(3)}"
        if world.likely(0.95)
        else world.pick("", f"{world.prefix}-none")
    )


def producer_of(world: World, with_name: bool = True) -> Producer:
    """Draw a producer, or what would be one."""
    known = [one for one in world.producers if bool(one.transactional_id) == with_name]
    if known and world.likely(0.95):
        return world.chance.choice(known)
    return Producer(
        world.pick(-1, 0, 12345),
        world.pick(0, -1, 3),
        transactional_id(world) if with_name else None,
    )


def epoch_of(world: World, producer: Producer) -> Any:
    """Draw its epoch, now and then another."""
    return plus(producer.epoch, world.pick(1, -1, 3)) if world.likely(0.08) else producer.epoch


def init_producer_id(world: World) -> None:
    """Ask for an identity, with a name or without."""
    name = transactional_id(world) if world.likely(0.65) else None
    body: dict[str, Any] = {
        "TransactionalId": name,
        "TransactionTimeoutMs": world.pick(60_000, 60_000, 60_000, 0, -1, 2**31 - 1)
        if name
        else 60_000,
        "ProducerId": -1,
        "ProducerEpoch": -1,
    }
    version = world.version("InitProducerId")
    if version >= 3 and world.likely(0.25):
        old = producer_of(world, bool(name))
        body |= {"ProducerId": old.id, "ProducerEpoch": epoch_of(world, old)}
    answer = world.ask("InitProducerId", body, version)
    if answer.get(lambda told: told["ErrorCode"]) != 0 or not answer.is_told:
        return
    identity = answer.made(lambda told: told["ProducerId"])
    epoch = answer.made(lambda told: told["ProducerEpoch"])
    world.producers = [one for one in world.producers if not name or one.transactional_id != name]
    world.producers = [*world.producers[-4:], Producer(identity, epoch, name)]


def parts(world: World, field: str = "Partitions") -> list[dict[str, Any]]:
    """Draw partitions to add."""
    found: dict[str, list[int]] = {}
    for _ in range(world.pick(1, 1, 2)):
        topic = world.topic()
        partition = world.partition(topic)
        if partition not in found.setdefault(topic.name, []):
            found[topic.name].append(partition)
    return [{"Name": name, field: partitions} for name, partitions in found.items()]


def add_partitions(world: World) -> None:
    """Register partitions with a transaction, or have it looked up whether they are."""
    version = world.version("AddPartitionsToTxn")
    producer = producer_of(world)
    topics = parts(world)
    if version < 4:
        body: dict[str, Any] = {
            "V3AndBelowTransactionalId": producer.transactional_id,
            "V3AndBelowProducerId": producer.id,
            "V3AndBelowProducerEpoch": epoch_of(world, producer),
            "V3AndBelowTopics": topics,
        }
        world.ask("AddPartitionsToTxn", body, version)
        return
    items = []
    for one in {one.transactional_id: one for one in (producer_of(world), producer)}.values():
        items.append(
            {
                "TransactionalId": one.transactional_id,
                "ProducerId": one.id,
                "ProducerEpoch": epoch_of(world, one),
                "VerifyOnly": world.likely(0.35),
                "Topics": topics if one is producer else parts(world),
            }
        )
        if world.likely(0.7):
            break
    world.ask("AddPartitionsToTxn", {"Transactions": items}, version)


def add_offsets(world: World) -> None:
    """Register a group's offsets with a transaction."""
    producer = producer_of(world)
    body = {
        "TransactionalId": producer.transactional_id,
        "ProducerId": producer.id,
        "ProducerEpoch": epoch_of(world, producer),
        "GroupId": world.numbered("group"),
    }
    world.ask("AddOffsetsToTxn", body)


def txn_offset_commit(world: World) -> None:
    """Commit offsets within a transaction."""
    producer = producer_of(world)
    group = world.numbered("group")
    topic = world.topic()
    partition = {
        "PartitionIndex": world.partition(topic),
        "CommittedOffset": world.pick(0, 1, 5, -1),
        "CommittedLeaderEpoch": world.pick(-1, 0),
        "CommittedMetadata": world.pick("", "m", None),
    }
    body: dict[str, Any] = {
        "TransactionalId": producer.transactional_id,
        "GroupId": group,
        "ProducerId": producer.id,
        "ProducerEpoch": epoch_of(world, producer),
        "Topics": [{"Name": topic.name, "Partitions": [partition]}],
    }
    version = world.version("TxnOffsetCommit")
    members = world.members(group)
    if version >= 3 and members and world.likely(0.5):
        member = world.chance.choice(list(members.values()))
        body |= {"MemberId": member["id"], "GenerationId": member.get("generation", -1)}
    world.ask("TxnOffsetCommit", body, version)


def end_txn(world: World) -> None:
    """Commit or abort."""
    producer = producer_of(world)
    body = {
        "TransactionalId": producer.transactional_id,
        "ProducerId": producer.id,
        "ProducerEpoch": epoch_of(world, producer),
        "Committed": world.likely(0.6),
    }
    version = world.version("EndTxn")
    answer = world.ask("EndTxn", body, version)
    is_done = answer.is_told and answer.get(lambda told: told["ErrorCode"]) == 0
    if is_done and version >= 5 and answer.get(lambda told: told["ProducerId"]) >= 0:
        producer.id = answer.made(lambda told: told["ProducerId"])
        producer.epoch = answer.made(lambda told: told["ProducerEpoch"])
        producer.sequences.clear()
    if producer.transactional_id:
        world.twin.ask("DescribeTransactions", 0, {"TransactionalIds": [producer.transactional_id]})


def describe_transactions(world: World) -> None:
    """Ask for transactions by name."""
    names = [transactional_id(world) for _ in range(world.pick(1, 1, 2))]
    world.ask("DescribeTransactions", {"TransactionalIds": list(dict.fromkeys(names))})


def list_transactions(world: World) -> None:
    """Ask for transactions by state, producer or age."""
    states = world.pick([], [], ["Ongoing"], ["CompleteCommit", "Empty"], ["Nonsense"], ["ongoing"])
    producers = [producer_of(world).id for _ in range(world.pick(0, 0, 1))]
    body = {
        "StateFilters": states,
        "ProducerIdFilters": producers,
        "DurationFilter": world.pick(-1, -1, 0, 100_000),
        "TransactionalIdPattern": world.pick(
            f"{world.prefix}-.*", f"{world.prefix}-x1", f"({world.prefix}"
        ),
    }
    version = 2 if world.likely(0.9) else world.version("ListTransactions")
    if version == 2:
        world.ask("ListTransactions", body, version)


def produce(world: World) -> None:
    """Send a batch of a transaction to a partition."""
    producer = producer_of(world)
    if producer.id == -1:
        return  # over which a real broker stumbles, but only in some topics
    topic = world.topic()
    partition = world.partition(topic)
    place = (topic.name, partition)
    records = some_records(world)
    header: dict[str, Any] = {
        "producer_id": producer.id,
        "producer_epoch": epoch_of(world, producer),
        "base_sequence": producer.sequences.get(place, 0),
        "attributes": TRANSACTIONAL if world.likely(0.95) else 0,
    }
    told = f"{len(records)} records {header}"
    data = Sent(lambda side: batch(records, **of_side(header, side)), told)
    body = {
        "TransactionalId": producer.transactional_id if world.likely(0.97) else None,
        "Acks": -1 if world.likely(0.95) else 1,
        "TimeoutMs": 5_000,
        "TopicData": [
            {"Name": topic.name, "TopicId": topic.id,
             "PartitionData": [{"Index": partition, "Records": data}]}
        ],
    }  # fmt: skip
    answer = world.ask("Produce", body)
    told = answer.get(lambda one: one["Responses"][0]["PartitionResponses"][0]["ErrorCode"])
    if told == 0:
        producer.sequences[place] = header["base_sequence"] + len(records)


def write_markers(world: World) -> None:
    """
    End transactions in partitions, as their coordinator does.

    A real broker does not answer if a partition comes twice, or if only some of several markers
    are for partitions that are there.
    """
    version = world.version("WriteTxnMarkers")
    is_one = world.likely(0.7) or not world.topics
    markers: dict[str, dict[str, Any]] = {}
    for _ in range(1 if is_one else 2):
        producer = producer_of(world, with_name=world.likely(0.8))
        is_known = not isinstance(producer.id, int)
        topics = parts(world, "PartitionIndexes")
        there = next(iter(world.topics), "")
        if not is_one and all(one["Name"] != there for one in topics):
            topics.append({"Name": there, "PartitionIndexes": [0]})
        markers[repr(producer.id)] = {
            "ProducerId": producer.id,
            "ProducerEpoch": epoch_of(world, producer),
            "TransactionResult": world.likely(0.5),
            "Topics": topics,
            # a later coordinator's would keep the real one from ending what it has begun
            "CoordinatorEpoch": 0 if is_known else world.pick(0, 0, 3, -1),
        } | ({"TransactionVersion": world.pick(0, 1, 2)} if version >= 2 else {})
    world.twin.ask("WriteTxnMarkers", version, {"Markers": list(markers.values())})
