"""Groups of which nobody says beforehand what they are: their names, members and topics."""

from __future__ import annotations

import time
from functools import partial
from itertools import combinations, product
from typing import Any

from tests.interop.drawn.groups import offset_topics
from tests.interop.drawn.pair import Pair
from tests.interop.drawn.schemas import ZERO_UUID
from tests.interop.drawn.transactions import epoch_of, producer_of
from tests.interop.drawn.walks import are_members_alike, are_topics_alike
from tests.interop.drawn.world import Topic, World
from tests.interop.eventually import eventually

CLASSIC, CONSUMER = "classic", "consumer"
NAMES = ("a", "b", "c")
#: of JoinGroup
INSTANCES_SINCE = 5
#: of so many topics of each kind one is taken, so that they stand in the same order at both
PARTITIONS, TOPICS_OF_A_KIND, ATTEMPTS = (1, 2, 3), 6, 9
IDS_TRIED = 40
#: So long after its other parts a real broker's coordinators mostly know of topics, too.
KNOWN_SECONDS = 0.2


def mixed_group(world: World) -> str:
    """Draw a group that either protocol is spoken in."""
    return world.numbered("mixed")


def line_of(group: str, name: str) -> str:
    """Return what the connection of a member is called."""
    return f"{group}-{name}"


def some_member(world: World, group: str, kind: str | None) -> dict[str, Any] | None:
    """Draw a member of a group, of one protocol or of either."""
    found = [one for one in world.members(group).values() if kind in (None, one["kind"])]
    return world.chance.choice(found) if found else None


def others(world: World, group: str, name: str) -> list[Any]:
    """Return the ids of the members of a group but one."""
    return [one["id"] for other, one in world.members(group).items() if other != name]


def own_id(world: World, group: str, name: str) -> str | None:
    """Return an id that a member gives itself; None if none stands alike."""
    known = others(world, group, name)
    first = world.chance.randrange(3)
    ids = [f"{group}-{name}{number}" for number in range(first, first + IDS_TRIED)]
    return next((one for one in ids if are_members_alike(known, one)), None)


def is_steady(world: World, group: str) -> bool:
    """Tell whether all members stand in the same order at both."""
    return all(one.get("is_alike", True) for one in world.members(group).values())


def is_of_consumers(world: World, group: str) -> bool:
    """Tell whether a group is one of the new protocol at present, with members."""
    answer = world.twin.exchange("ConsumerGroupDescribe", 0, {"GroupIds": [group]})
    return bool(answer.get(lambda told: told["Groups"][0]["Members"], []))


def make_topics(world: World) -> list[str]:
    """Return the names of the topics that members want; the first who asks has them made."""
    start = f"{world.prefix}-wanted"
    known = [name for name in world.topics if name.startswith(start)]
    for attempt in range(0 if known else ATTEMPTS):
        kinds = [
            [f"{start}-{count}-{attempt}{at}" for at in range(TOPICS_OF_A_KIND)]
            for count in PARTITIONS
        ]
        ids = made(world, dict(zip(PARTITIONS, kinds, strict=True)))
        for names in filter(partial(are_alike, ids), product(*kinds)):
            for name, count in zip(names, PARTITIONS, strict=True):
                world.topics[name] = Topic(name, ids[name], count)
                world.twin.comparison.learn(*ids[name])
            return list(names)
    assert known, "no topics that stand in the same order"
    return known


def made(world: World, kinds: dict[int, list[str]]) -> dict[str, Pair]:
    """Make topics of so many partitions each; return their ids once all know of them."""
    asked = [
        {"Name": name, "NumPartitions": count, "ReplicationFactor": 1, "Assignments": [],
         "Configs": []}
        for count, names in kinds.items()
        for name in names
    ]  # fmt: skip
    names = [name for of_a_kind in kinds.values() for name in of_a_kind]
    world.twin.exchange("CreateTopics", 5, {"Topics": asked, "timeoutMs": 10_000})
    found = eventually(partial(ids_of, world, names), what="topics")
    time.sleep(KNOWN_SECONDS)
    for number in range(2):
        group = f"{world.prefix}-mixed{number}"
        eventually(partial(are_known, world, group, names), what="known topics")
    return found


def ids_of(world: World, topics: list[str]) -> dict[str, Pair]:
    """Return the ids of topics, nothing while there is one that either does not know."""
    question = {"Topics": [{"TopicId": ZERO_UUID, "Name": name} for name in topics]}
    found = world.twin.exchange("Metadata", 12, question)
    sides = [{one["Name"]: one for one in side["Topics"]} for side in found]
    if any(side[name]["ErrorCode"] for side in sides for name in topics):
        return {}
    return {name: Pair(*(side[name]["TopicId"] for side in sides)) for name in topics}


def are_alike(ids: dict[str, Pair], topics: tuple[str, ...]) -> bool:
    """Tell whether topics stand in the same order at both."""
    return all(are_topics_alike(ids[one], ids[other]) for one, other in combinations(topics, 2))


def are_known(world: World, group: str, topics: list[str]) -> bool:
    """Tell whether the coordinator of a group, which has nobody yet, knows of all topics."""
    beat = {
        "GroupId": group, "MemberId": "scout", "MemberEpoch": 0, "RebalanceTimeoutMs": 60_000,
        "SubscribedTopicNames": topics, "TopicPartitions": [],
    }  # fmt: skip
    found = world.twin.exchange("ConsumerGroupHeartbeat", 0, beat)
    world.twin.exchange("ConsumerGroupHeartbeat", 0, beat | {"MemberEpoch": -1})
    world.twin.exchange("DeleteGroups", 2, {"GroupsNames": [group]})
    given = [(one["Assignment"] or {}).get("TopicPartitions", ()) for one in found]
    return all(len(one) == len(topics) for one in given)


# what has to do with groups besides their members


def commit(world: World) -> None:
    """Commit offsets as a member of either protocol, in its generation or another, or as nobody."""
    group = mixed_group(world)
    version = world.version("OffsetCommit")
    body = {
        "GroupId": group,
        "GenerationIdOrMemberEpoch": -1,
        "MemberId": "",
        "GroupInstanceId": None,
        "RetentionTimeMs": -1,
        "Topics": offset_topics(world, version >= 10, lambda at: _offset(world, at)),
    }
    member = some_member(world, group, None)
    if member is not None and world.likely(0.8):
        body |= {
            "GenerationIdOrMemberEpoch": _generation(world, member), "MemberId": member["id"],
            "GroupInstanceId": member["instance"] if version >= 7 else None,
        }  # fmt: skip
    world.ask("OffsetCommit", body, version)


def txn_commit(world: World) -> None:
    """Commit offsets within a transaction, as a member of either protocol or as nobody."""
    group = mixed_group(world)
    producer = producer_of(world)
    version = world.version("TxnOffsetCommit")
    body: dict[str, Any] = {
        "TransactionalId": producer.transactional_id,
        "GroupId": group,
        "ProducerId": producer.id,
        "ProducerEpoch": epoch_of(world, producer),
        "Topics": offset_topics(world, False, lambda at: _offset(world, at)),
    }
    for topic in body["Topics"]:
        del topic["TopicId"]
    if version < 5:
        joined = {name: body[name] for name in ("TransactionalId", "ProducerId", "ProducerEpoch")}
        world.twin.ask("AddOffsetsToTxn", 3, joined | {"GroupId": group})
    member = some_member(world, group, None)
    if version >= 3 and member is not None and world.likely(0.8):
        body |= {"MemberId": member["id"], "GenerationId": _generation(world, member)}
        body["GroupInstanceId"] = member["instance"] if world.likely(0.7) else None
    world.ask("TxnOffsetCommit", body, version)


def _generation(world: World, member: dict[str, Any]) -> int:
    found: int = member["generation"]
    return found + (world.pick(-1, 1, 2, -3) if world.likely(0.25) else 0)


def _offset(world: World, partition: int) -> dict[str, Any]:
    return {
        "PartitionIndex": partition,
        "CommittedOffset": world.pick(0, 1, 5, 7),
        "CommittedLeaderEpoch": -1,
        "CommittedMetadata": "",
    }


def fetch_offsets(world: World) -> None:
    """Ask what a group has committed, as a member of either protocol or as nobody."""
    group = mixed_group(world)
    item: dict[str, Any] = {"GroupId": group, "Topics": None}
    member = some_member(world, group, None)
    if member is not None and world.likely(0.6):
        item |= {"MemberId": member["id"], "MemberEpoch": _generation(world, member)}
    body = {"Groups": [item], "RequireStable": world.likely(0.3)}
    world.ask("OffsetFetch", body, world.pick(9, 10))


def forget_offsets(world: World) -> None:
    """Forget offsets of topics that somebody wants, or nobody."""
    topics = [
        {"Name": topic.name, "Partitions": [{"PartitionIndex": world.partition(topic)}]}
        for topic in {one.name: one for one in (world.topic(), world.topic())}.values()
    ]
    world.ask("OffsetDelete", {"GroupId": mixed_group(world), "Topics": topics})


def describe(world: World) -> None:
    """Ask what a group is, as if it was of any kind."""
    names = list(dict.fromkeys(mixed_group(world) for _ in world.pick("a", "ab")))
    if world.likely(0.35):
        version = world.version("DescribeGroups")
        world.ask("DescribeGroups", {"Groups": names}, version)
        return
    api = world.pick(*["ConsumerGroupDescribe"] * 4, "ShareGroupDescribe", "StreamsGroupDescribe")
    world.ask(api, {"GroupIds": names})


def list_groups(world: World) -> None:
    """Ask for groups of some kinds in some states."""
    states = world.pick([], [], ["Stable"], ["Empty"], ["Reconciling", "Assigning"], ["Dead"])
    kinds = world.pick([], [], ["classic"], ["consumer"], ["share", "streams"])
    world.ask("ListGroups", {"StatesFilter": states, "TypesFilter": kinds})


def delete(world: World) -> None:
    """Delete groups, which must have nobody."""
    names = list(dict.fromkeys(mixed_group(world) for _ in world.pick("a", "ab")))
    world.ask("DeleteGroups", {"GroupsNames": names})


def intrude(world: World) -> None:
    """Come to a group with the protocol of share groups or of streams groups, and go again."""
    group = mixed_group(world)
    member = f"{group}-sharer"
    topic = f"{world.prefix}-unknown"
    if world.likely(0.5):
        body: dict[str, Any] = {"GroupId": group, "MemberId": member, "MemberEpoch": 0}
        body |= {"SubscribedTopicNames": [topic], "RackId": None}
        api = "ShareGroupHeartbeat"
    else:
        subtopology = {"SubtopologyId": "0", "SourceTopics": [topic]}
        body = {
            "GroupId": group, "MemberId": member, "MemberEpoch": 0, "EndpointInformationEpoch": 0,
            "ProcessId": "p", "RebalanceTimeoutMs": 60_000, "ClientTags": [], "ActiveTasks": [],
            "StandbyTasks": [], "WarmupTasks": [],
            "Topology": {"Epoch": 0, "Subtopologies": [subtopology]},
        }  # fmt: skip
        api = "StreamsGroupHeartbeat"
    version = world.versions[api][-1]
    answer = world.twin.ask(api, version, body)
    if answer.get(lambda told: told["ErrorCode"]) == 0 and world.likely(0.85):
        gone = {"GroupId": group, "MemberId": member, "MemberEpoch": -1}
        world.twin.ask(api, version, gone)
