"""Members of share groups fetch records and say what became of them; offsets are moved."""

from __future__ import annotations

import time
from typing import Any

from tests.interop.drawn.groups import SHARE, any_group
from tests.interop.drawn.share_states import await_states
from tests.interop.drawn.twin import Answer
from tests.interop.drawn.world import Sharer, Topic, World

GROUP_RESOURCE, SET = 32, 0
GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)
NO_SESSION, WRONG_EPOCH = 122, 123
#: A real broker reads a partition's state beside the first fetch, which so has to wait for it.
OPENING_MS = 500
#: how a group reads that nobody has told anything else
FROM_THE_START = ("share.auto.offset.reset", "earliest")
SETTINGS: tuple[tuple[str, str], ...] = (
    FROM_THE_START,
    ("share.auto.offset.reset", "latest"),
    ("share.auto.offset.reset", "by_duration:PT24H"),
    ("share.isolation.level", "read_committed"),
    ("share.isolation.level", "read_uncommitted"),
    ("share.delivery.count.limit", "2"),
    ("share.delivery.count.limit", "5"),
    ("share.partition.max.record.locks", "100"),
    ("share.renew.acknowledge.enable", "false"),
    ("share.renew.acknowledge.enable", "true"),
)


def sharer_of(world: World) -> Sharer:
    """Draw somebody who reads with a group; a new group is set to read what is there."""
    group = world.numbered(SHARE)
    name = world.pick("a", "a", "b")
    if not any(one.group == group for one in world.sharers.values()):
        configure(world, group, *FROM_THE_START)
    found = Sharer(group, f"{group}-{name}")
    return world.sharers.setdefault(found.member, found)


def configure(world: World, group: str, name: str, value: str) -> None:
    """Change a setting of a group, and wait until it is known."""
    change = {"Name": name, "ConfigOperation": SET, "Value": value}
    resource: dict[str, Any] = {"ResourceType": GROUP_RESOURCE, "ResourceName": group}
    body = {"Resources": [resource | {"Configs": [change]}], "ValidateOnly": False}
    world.twin.ask("IncrementalAlterConfigs", 1, body)
    time.sleep(0.05)
    asked = {"Resources": [resource | {"ConfigurationKeys": [name]}], "IncludeSynonyms": True}
    world.twin.ask("DescribeConfigs", 4, asked)


def change_settings(world: World) -> None:
    """Have a group read otherwise."""
    configure(world, world.numbered(SHARE), *world.chance.choice(SETTINGS))


def outcomes(world: World, sharer: Sharer, place: tuple[str, int]) -> list[dict[str, Any]]:
    """Draw what became of what a member has of a partition, now and then what cannot be."""
    found: list[dict[str, Any]] = []
    held = sharer.held.get(place, [])
    for first, last in list(held):
        if world.likely(0.25) or last < first:
            continue
        kind = world.pick(ACCEPT, ACCEPT, ACCEPT, RELEASE, RELEASE, REJECT, GAP, RENEW)
        types = [kind]
        end = last
        if world.likely(0.3):
            end = world.chance.randrange(first, last + 1)
        if world.likely(0.25):
            types = [world.pick(ACCEPT, RELEASE, REJECT, GAP) for _ in range(first, end + 1)]
        found.append({"FirstOffset": first, "LastOffset": end, "AcknowledgeTypes": types})
        if kind != RENEW:
            held.remove((first, last))
            held += [(end + 1, last)] if end < last else []
    if world.likely(0.08):
        first = world.pick(0, 1, 3, 100, -1)
        last = first + world.pick(0, 0, 2, -1)
        types = world.pick([ACCEPT], [RELEASE], [], [ACCEPT, ACCEPT], [5], [-1], [RENEW])
        found.append({"FirstOffset": first, "LastOffset": last, "AcknowledgeTypes": types})
    return found


def some_topic(world: World) -> Topic | None:
    """
    Draw a topic that is there.

    A real broker fails a whole fetch over another id (SKIPPED.md).
    """
    return world.chance.choice(list(world.topics.values())) if world.topics else None


def epoch_of(world: World, sharer: Sharer) -> int:
    """Draw the epoch of a session's next request, most often the one that is due."""
    if any(one.name == name for one in world.gone for name, _ in sharer.wanted):
        return 0  # over an id that is gone a real broker fails the whole fetch (SKIPPED.md)
    if world.likely(0.88):
        return sharer.epoch
    return int(world.pick(-1, -1, 0, sharer.epoch + 1, max(1, sharer.epoch - 1)))


def fetch_topics(world: World, sharer: Sharer, epoch: int) -> list[dict[str, Any]]:
    """Draw what is fetched of, and what became of what was fetched before."""
    items: dict[str, dict[str, Any]] = {}
    if epoch <= 0:
        sharer.wanted.clear()
    for _ in range(world.pick(0, 1, 1, 2) if epoch > 0 else world.pick(0, 1, 1, 1, 2)):
        topic = some_topic(world)
        if topic is None:
            break
        place = (topic.name, world.partition(topic))
        if sharer.wanted and not is_open(world, sharer, place):
            continue  # whether it is read before the others are is chance
        sharer.wanted.add(place)
        add(items, topic, place[1], {"PartitionMaxBytes": world.pick(0, 2**20)})
    for place in said(world, sharer, epoch):
        if place[0] in world.topics:
            batches = outcomes(world, sharer, place)
            for one in batches:  # a real broker has not noted them yet when it looks for records
                types = [ACCEPT if kind == RELEASE else kind for kind in one["AcknowledgeTypes"]]
                one["AcknowledgeTypes"] = types
            add(items, world.topics[place[0]], place[1], {"AcknowledgementBatches": batches})
            sharer.wanted.add(place)
    return list(items.values())


def is_open(world: World, sharer: Sharer, place: tuple[str, int]) -> bool:
    """Tell whether a real broker has read a partition's state for a group."""
    return (sharer.group, *place) in world.shared


def opens(world: World, sharer: Sharer) -> bool:
    """Tell whether a session is about something that has to be opened yet."""
    return not all(is_open(world, sharer, place) for place in sharer.wanted)


def said(world: World, sharer: Sharer, epoch: int) -> list[tuple[str, int]]:
    """Draw of which partitions something is said."""
    return [one for one in sharer.held if world.likely(0.5 if epoch else 0.05)]


def add(items: dict[str, dict[str, Any]], topic: Topic, index: int, said_of: Any) -> None:
    """Have a request name a partition, once."""
    item = items.setdefault(topic.name, {"TopicId": topic.id, "Partitions": []})
    for one in item["Partitions"]:
        if one["PartitionIndex"] == index:
            one |= said_of
            return
    item["Partitions"].append({"PartitionIndex": index, **said_of})


def fetch(world: World) -> None:
    """Open a session, go on with it or close it, and take records."""
    sharer = sharer_of(world)
    epoch = epoch_of(world, sharer)
    version = world.version("ShareFetch")
    topics = fetch_topics(world, sharer, epoch)
    wait_ms = OPENING_MS if opens(world, sharer) else world.pick(0, 0, 50)
    forgotten = []
    if epoch > 0 and world.likely(0.1):
        topic = world.topic()
        forgotten = [{"TopicId": topic.id, "Partitions": [world.partition(topic)]}]
    body: dict[str, Any] = {
        "GroupId": sharer.group,
        "MemberId": sharer.member,
        "ShareSessionEpoch": epoch,
        "MaxWaitMs": wait_ms,
        "MinBytes": world.pick(0, 1, 1, 1),
        "MaxBytes": world.pick(2**25, 2**25, 1, 100, 400, 2000),
        "MaxRecords": world.pick(1, 2, 3, 5, 500, 500),
        "BatchSize": world.pick(1, 2, 500, 500),
        "Topics": topics,
        "ForgottenTopicsData": forgotten,
    }
    if version >= 2:
        body["ShareAcquireMode"] = world.pick(0, 0, 1)
        if world.likely(0.07):
            body["IsRenewAck"] = True
            if world.likely(0.8):
                body |= dict.fromkeys(("MaxWaitMs", "MinBytes", "MaxBytes", "MaxRecords"), 0)
    answer = world.ask("ShareFetch", body, version, sharer.member)
    learn_session(sharer, epoch, answer)
    for topic, told in of_topics(world, answer):
        for one in told["Partitions"]:
            place = (topic.name, one["PartitionIndex"])
            if one["ErrorCode"]:
                world.shared.discard((sharer.group, *place))
            elif wait_ms == OPENING_MS and place in sharer.wanted:
                world.shared.add((sharer.group, *place))
            taken = [(some["FirstOffset"], some["LastOffset"]) for some in one["AcquiredRecords"]]
            if taken:
                sharer.held.setdefault(place, []).extend(taken)


def of_topics(world: World, answer: Answer) -> list[tuple[Topic, dict[str, Any]]]:
    """Return what the real one says of the topics of this session."""
    if not answer.is_told:
        return []
    ids = {topic.id.real: topic for topic in world.topics.values()}
    told = [(ids.get(one["TopicId"]), one) for one in answer.real["Responses"]]
    return [(topic, one) for topic, one in told if topic is not None]


def learn_session(sharer: Sharer, epoch: int, answer: Answer) -> None:
    """Keep where a session stands."""
    code = answer.get(lambda told: told["ErrorCode"])
    if not answer.is_told or code in {NO_SESSION, WRONG_EPOCH} or (code == 0 and epoch == -1):
        sharer.epoch = 0
        sharer.held.clear()
    elif code == 0:
        sharer.epoch = epoch + 1


def acknowledge(world: World) -> None:
    """Say what became of records."""
    sharer = sharer_of(world)
    epoch = epoch_of(world, sharer)
    if epoch == 0 and world.likely(0.8):
        return
    items: dict[str, dict[str, Any]] = {}
    for place in said(world, sharer, 1) or list(sharer.held)[:1]:
        if place[0] in world.topics:
            batches = outcomes(world, sharer, place)
            add(items, world.topics[place[0]], place[1], {"AcknowledgementBatches": batches})
    if not items or world.likely(0.06):
        topic = world.topic()
        batches = outcomes(world, sharer, (topic.name, 0))
        add(items, topic, world.partition(topic), {"AcknowledgementBatches": batches})
    version = world.version("ShareAcknowledge")
    body: dict[str, Any] = {
        "GroupId": sharer.group,
        "MemberId": sharer.member,
        "ShareSessionEpoch": epoch,
        "Topics": list(items.values()),
    }
    if version >= 2 and any(
        RENEW in batch["AcknowledgeTypes"]
        for item in items.values()
        for one in item["Partitions"]
        for batch in one["AcknowledgementBatches"]
    ):
        body["IsRenewAck"] = world.likely(0.8)
    learn_session(sharer, epoch, world.ask("ShareAcknowledge", body, version, sharer.member))


def close_sessions(world: World) -> None:
    """Have members give back what they have one by one: those who hang up do so in no order."""
    for sharer in world.sharers.values():
        body = {"GroupId": sharer.group, "MemberId": sharer.member, "ShareSessionEpoch": -1}
        world.twin.ask("ShareFetch", 1, body, sharer.member)
        time.sleep(0.05)


def describe_offsets(world: World) -> None:
    """
    Ask where groups begin, and how far behind they are.

    Of partitions that there are: a real broker is asked for others again and again (SKIPPED.md).
    """
    items = []
    for _ in range(world.pick(1, 1, 2)):
        group = world.numbered(SHARE) if world.likely(0.9) else any_group(world)
        topics: Any = None
        if world.likely(0.6):
            topics = []
            for _ in range(world.pick(1, 1, 2)):
                topic = world.topic()
                partitions = list(range(world.chance.randrange(topic.partitions + 1)))
                topics.append({"TopicName": topic.name, "Partitions": partitions})
        items.append({"GroupId": group, "Topics": topics})
    version = world.version("DescribeShareGroupOffsets")
    world.twin.ask("DescribeShareGroupOffsets", version, {"Groups": items})


def is_forgotten(world: World, group: str) -> None:
    """Have the partitions of a group count as not opened: what was of them may be over."""
    world.shared = {one for one in world.shared if one[0] != group}
    await_states(world.twin, group)


def alter_offsets(world: World) -> None:
    """
    Have a group begin elsewhere.

    Of no negative partition: that is refused before anything is written (SKIPPED.md).
    """
    group = world.numbered(SHARE) if world.likely(0.9) else world.pick(any_group(world), "")
    topics = []
    for _ in range(world.pick(1, 1, 2)):
        topic = world.topic()
        partitions = [
            {"PartitionIndex": index, "StartOffset": world.pick(0, 0, 1, 3, 100, -1)}
            for index in {world.partition(topic) for _ in range(world.pick(1, 1, 2))}
            if index >= 0
        ]
        topics.append({"TopicName": topic.name, "Partitions": partitions})
    if world.likely(0.08):
        topics.append(dict(topics[0]))
    world.twin.ask("AlterShareGroupOffsets", 0, {"GroupId": group, "Topics": topics})
    is_forgotten(world, group)


def delete_offsets(world: World) -> None:
    """Have a group forget topics."""
    group = world.numbered(SHARE) if world.likely(0.9) else any_group(world)
    topics = [{"TopicName": world.topic().name} for _ in range(world.pick(1, 1, 2))]
    world.ask("DeleteShareGroupOffsets", {"GroupId": group, "Topics": topics})
    is_forgotten(world, group)


def describe(world: World) -> None:
    """Ask for share groups."""
    names = list(dict.fromkeys(world.numbered(SHARE) for _ in range(world.pick(1, 1, 2))))
    body = {"GroupIds": names, "IncludeAuthorizedOperations": world.likely(0.3)}
    world.ask("ShareGroupDescribe", body)


def delete_groups(world: World) -> None:
    """Delete a share group."""
    group = world.numbered(SHARE)
    world.ask("DeleteGroups", {"GroupsNames": [group]})
    is_forgotten(world, group)
