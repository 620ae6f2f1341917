"""Topics are made, changed, asked for and deleted."""

from __future__ import annotations

import time
from typing import Any

from tests.interop.drawn.pair import Pair
from tests.interop.drawn.schemas import ZERO_UUID
from tests.interop.drawn.world import CHANGE_SECONDS, Topic, World
from tests.interop.eventually import eventually

GOOD_CONFIGS: tuple[tuple[str, str | None], ...] = (
    ("retention.ms", "-1"),
    ("cleanup.policy", "compact"),
    ("cleanup.policy", "compact,delete"),
    ("compression.type", "gzip"),
    ("compression.type", "producer"),
    ("max.message.bytes", "2000"),
    ("message.timestamp.type", "LogAppendTime"),
    ("segment.bytes", "1048576"),
    ("min.insync.replicas", "1"),
    ("min.insync.replicas", "2"),
    ("compression.type", "zstd"),
    ("message.timestamp.before.max.ms", "1000"),
    ("message.timestamp.after.max.ms", "1000"),
    ("retention.bytes", "100000"),
    ("unclean.leader.election.enable", "true"),
    ("compression.gzip.level", "3"),
    ("compression.lz4.level", "9"),
    ("flush.messages", "10"),
    ("delete.retention.ms", "0"),
    ("index.interval.bytes", "0"),
    ("preallocate", "false"),
    ("leader.replication.throttled.replicas", "*"),
    ("file.delete.delay.ms", "100"),
    ("min.cleanable.dirty.ratio", "0.25"),
    ("segment.jitter.ms", "3"),
    ("flush.ms", "1000"),
)
BAD_CONFIGS: tuple[tuple[str, str | None], ...] = (
    ("retention.ms", "soon"),
    ("retention.ms", "-2"),
    ("no.such.config", "1"),
    ("", "1"),
    ("cleanup.policy", "burn"),
    ("cleanup.policy", ""),
    ("compression.type", "rar"),
    ("segment.bytes", "20"),
    ("max.message.bytes", "-1"),
    ("retention.ms", None),
    ("min.cleanable.dirty.ratio", "2"),
    ("compression.gzip.level", "99"),
    ("preallocate", "maybe"),
    ("min.insync.replicas", "0"),
    ("leader.replication.throttled.replicas", "x:y"),
    ("message.timestamp.type", "Never"),
    ("segment.bytes", "99999999999"),
    ("compression.zstd.level", "-200000"),
    ("compression.lz4.level", "18"),
    ("remote.storage.enable", "true"),
    ("local.retention.ms", "-2"),
    ("local.retention.bytes", "-3"),
    ("index.interval.bytes", "-1"),
    ("message.format.version", "3.0"),
    ("cleanup.policy", "compact,,delete"),
    ("unclean.leader.election.enable", ""),
    ("segment.jitter.ms", "-1"),
    ("delete.retention.ms", "1e3"),
    ("min.compaction.lag.ms", "10"),
    ("max.compaction.lag.ms", "0"),
    ("internal.segment.bytes", "100"),
    ("retention.bytes", "0x10"),
    ("errors.deadletterqueue.group.enable", "true"),
    ("local.retention.ms", "5"),
)


def configs(world: World, count_max: int = 3) -> dict[str, str | None]:
    """Draw settings of a topic, now and then a bad one."""
    found: dict[str, str | None] = {}
    for _ in range(world.chance.randrange(count_max + 1)):
        source = GOOD_CONFIGS if world.likely(0.8) else BAD_CONFIGS
        name, value = world.chance.choice(source)
        found[name] = value
    return found


def wanted_topic(world: World) -> tuple[str, dict[str, Any]]:
    """Draw a topic to be."""
    letters = "abcdefg"
    name = f"{world.prefix}-{world.chance.choice(letters)}"
    if world.likely(0.1):
        name = world.pick(
            "",
            ".",
            "..",
            "bad name",
            "x" * 250,
            f"{world.prefix}.a",
            f"{world.prefix}_a",
            "__cluster_metadata",
        )
    count, factor, assignments = world.chance.randrange(1, 4), 1, []
    if world.likely(0.3):
        count, factor = world.pick(
            (-1, -1), (-1, 1), (0, 1), (2, 0), (1, 2), (2, -1), (1, 32767), (-2, 1), (1, -2)
        )
    if world.likely(0.12):
        numbers = world.pick([0], [0, 1], [1], [0, 2], [0, 0], [-1])
        brokers = world.pick([1], [1], [1], [2], [1, 1], [], [1, 2], [-1])
        assignments = [{"PartitionIndex": one, "BrokerIds": list(brokers)} for one in numbers]
        if world.likely(0.7):
            count, factor = -1, -1
    wanted = [{"Name": key, "Value": value} for key, value in configs(world).items()]
    return name, {
        "Name": name,
        "NumPartitions": count,
        "ReplicationFactor": factor,
        "Assignments": assignments,
        "Configs": wanted,
    }


def create_topics(world: World) -> None:
    """Ask for one topic or several."""
    wanted = dict(wanted_topic(world) for _ in range(world.pick(1, 1, 1, 2, 3)))
    items = list(wanted.values())
    if world.likely(0.06):
        items.append(dict(items[0]))
    timeout_ms = 0 if world.likely(0.04) else 10_000
    body = {"Topics": items, "timeoutMs": timeout_ms, "validateOnly": world.likely(0.15)}
    world.ask("CreateTopics", body)
    learn_topics(world, list(wanted))


def learn_topics(world: World, names: list[str]) -> None:
    """Find out what both have of these topics by now, and wait until they have the same."""
    asked = [{"Name": name} for name in names if name.startswith(world.prefix)]
    if not asked:
        return
    body = {"Topics": asked, "AllowAutoTopicCreation": False}
    answer = world.twin.ask("Metadata", 12, body)
    if not answer.is_told:
        return
    for mine, other in zip(answer.ours["Topics"], answer.real["Topics"], strict=False):
        name = other["Name"]
        if mine["Name"] != name:
            continue
        old = world.topics.pop(name, None)
        if other["ErrorCode"] == 0 and mine["ErrorCode"] == 0:
            identity = Pair(mine["TopicId"], other["TopicId"])
            count = min(len(mine["Partitions"]), len(other["Partitions"]))
            await_logs(world, name, count)
            if old is not None and old.id == identity:
                old.partitions = count
                world.topics[name] = old
            else:
                world.topics[name] = Topic(name, identity, count)
        elif old is not None:
            world.gone.append(old)
    time.sleep(CHANGE_SECONDS)  # the real one's coordinators hear of it after who answers Metadata


def await_logs(world: World, name: str, count: int) -> None:
    """Wait until the real broker does not only say that it leads partitions, but does."""
    partitions = [{"PartitionIndex": index, "Timestamp": -1} for index in range(count)]
    body = {"ReplicaId": -1, "Topics": [{"Name": name, "Partitions": partitions}]}

    def are_led() -> bool:
        found = world.twin.exchange("ListOffsets", 4, body).real["Topics"][0]["Partitions"]
        return not any(one["ErrorCode"] for one in found)

    eventually(are_led, what=f"the logs of {name}")


def metadata(world: World) -> None:
    """Ask for some topics, by name or by id, or for all there are of this session."""
    version = world.version("Metadata")
    items: list[dict[str, Any]] = []
    for _ in range(world.pick(0, 1, 1, 2, 3)):
        topic = world.topic()
        by_id = version >= 10 and world.likely(0.4)
        item: dict[str, Any] = {"Name": topic.name, "TopicId": ZERO_UUID}
        if by_id:
            item = {"Name": None if world.likely(0.9) else topic.name, "TopicId": topic.id}
        elif version >= 10 and world.likely(0.05):
            item = {"Name": None, "TopicId": ZERO_UUID}
        items.append(item)
    if version == 0 and not items:
        return
    body: dict[str, Any] = {
        "Topics": items,
        "AllowAutoTopicCreation": False,
        "IncludeTopicAuthorizedOperations": world.likely(0.3),
        "IncludeClusterAuthorizedOperations": world.likely(0.3),
    }
    if world.likely(0.05) and version >= 4:
        body["AllowAutoTopicCreation"] = True
        body["Topics"] = [{"Name": world.pick(f"{world.prefix}-auto", "a b", f"{world.prefix}.x")}]
        auto_created(world, version, body)
        return
    world.ask("Metadata", body, version)
    if version < 4:  # which makes what is not there
        names = {one["Name"] for one in items if one["Name"].startswith(world.prefix)}
        learn_topics(world, sorted(names - world.topics.keys()))


def auto_created(world: World, version: int, body: dict[str, Any]) -> None:
    """Let a topic come into being by a question; the real one has it a moment later."""
    names = [one["Name"] for one in body["Topics"]]
    world.twin.ask("Metadata", version, body)
    learn_topics(world, names)


def create_partitions(world: World) -> None:
    """Ask for more partitions."""
    items = []
    for _ in range(world.pick(1, 1, 2)):
        topic = world.topic()
        count = topic.partitions + world.pick(1, 1, 2, 0, -1)
        count = world.pick(-1, 0) if world.likely(0.1) else count
        assignments = None
        if world.likely(0.25):
            assignments = [
                {"BrokerIds": world.pick([1], [1], [2], [], [1, 1], [1, 2])}
                for _ in range(world.pick(0, 1, 2))
            ]
        items.append({"Name": topic.name, "Count": count, "Assignments": assignments})
    body = {"Topics": items, "TimeoutMs": 10_000, "ValidateOnly": world.likely(0.2)}
    world.ask("CreatePartitions", body)
    learn_topics(world, [one["Name"] for one in items if one["Name"]])


def delete_topics(world: World) -> None:
    """Delete one topic or several, by name or by id."""
    version = world.version("DeleteTopics")
    topics = [world.topic() for _ in range(world.pick(1, 1, 2))]
    body: dict[str, Any] = {"TimeoutMs": 10_000, "TopicNames": [one.name for one in topics]}
    if version >= 6:
        by_id = [world.likely(0.5) for _ in topics]
        body = {
            "TimeoutMs": 10_000,
            "Topics": [
                {
                    "Name": None if one_by_id else one.name,
                    "TopicId": one.id if one_by_id else ZERO_UUID,
                }
                for one, one_by_id in zip(topics, by_id, strict=True)
            ],
        }
    world.ask("DeleteTopics", body, version)
    learn_topics(world, list(world.topics))


def describe_topic_partitions(world: World) -> None:
    """Page through partitions."""
    topics = [{"Name": world.topic().name} for _ in range(world.pick(1, 1, 2, 3))]
    cursor = None
    if world.likely(0.4):
        cursor = {"TopicName": world.topic().name, "PartitionIndex": world.pick(0, 1, 2, 5)}
    body = {
        "Topics": topics,
        "ResponsePartitionLimit": world.pick(1, 2, 3, 2000, 2000),
        "Cursor": cursor,
    }
    world.ask("DescribeTopicPartitions", body)
