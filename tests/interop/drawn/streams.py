"""Members of streams groups come, beat and go, with topologies that fit or do not."""

from __future__ import annotations

import time
from typing import Any

from tests.interop.drawn.groups import any_group, have_all_seen, learn_member
from tests.interop.drawn.topics import learn_topics
from tests.interop.drawn.twin import Answer
from tests.interop.drawn.world import World

STREAMS = "streams"
#: so long a real broker may need to make internal topics
_SECONDS_MAX = 5.0
MISSING_INTERNAL_TOPICS = 3
STUMBLED = -1


def heartbeat(world: World) -> None:
    """Join, beat in or leave a streams group."""
    group = world.numbered(STREAMS) if world.likely(0.96) else any_group(world)
    members = world.members(group)
    name = world.pick("a", "b", "c")
    known = members.get(name)
    body = joining(world, group, name) if known is None else beating(world, known)
    body["GroupId"] = group
    answer = world.ask("StreamsGroupHeartbeat", body)
    learn(world, group, name, body, answer)
    if answer.get(lambda told: told["ErrorCode"]) == STUMBLED:
        have_all_seen(world)  # also what the topology has come to before that
    statuses = answer.get(lambda told: told["Status"]) or ()
    if any(one["StatusCode"] == MISSING_INTERNAL_TOPICS for one in statuses):
        await_topics(world, body.get("Topology") or world.topologies.get(group))


def joining(world: World, group: str, name: str) -> dict[str, Any]:
    """Draw what a member says first."""
    body: dict[str, Any] = {
        "MemberId": f"{group}-{name}",
        "MemberEpoch": 0,
        "RebalanceTimeoutMs": 60_000,
        "Topology": topology(world, group),
        "ProcessId": world.pick("p1", "p1", "p2"),
        "ClientTags": world.pick([], [], [{"Key": "zone", "Value": "z"}]),
        "ActiveTasks": [],
        "StandbyTasks": [],
        "WarmupTasks": [],
        "RackId": world.pick(None, None, "r"),
    }
    if world.likely(0.3):
        body["UserEndpoint"] = {"Host": "h", "Port": world.pick(1, 65535)}
    if world.likely(0.05):
        body["InstanceId"] = world.pick("i", "")
    if world.likely(0.04):
        body["TaskOffsets"] = []
    return body


def topology(world: World, group: str) -> dict[str, Any]:
    """Draw a group's topology: most often the one that its members have had so far."""
    if group in world.topologies and world.likely(0.85):
        found: dict[str, Any] = world.topologies[group]
        return found
    fresh = {
        "Epoch": world.pick(0, 0, 0, 1, -1),
        "Subtopologies": [
            subtopology(world, group, number) for number in range(world.pick(1, 1, 2))
        ],
    }
    return world.topologies.setdefault(group, fresh) if world.likely(0.9) else fresh


def subtopology(world: World, group: str, number: int) -> dict[str, Any]:
    """Draw what a part of an application reads, keeps and passes on."""
    sources = list(dict.fromkeys(world.topic_name() for _ in range(world.pick(1, 1, 2))))
    found: dict[str, Any] = {
        "SubtopologyId": str(number) if world.likely(0.95) else world.pick("0", "", "x"),
        "SourceTopics": sources,
        "SourceTopicRegex": [],
        "StateChangelogTopics": [],
        "RepartitionSinkTopics": [],
        "RepartitionSourceTopics": [],
        "CopartitionGroups": [],
    }
    if world.likely(0.3):
        found["StateChangelogTopics"] = [internal(world, f"{group}-store-changelog", 0)]
    if world.likely(0.15):
        again = f"{group}-repartition"
        found["RepartitionSourceTopics"] = [internal(world, again, world.pick(1, 2, 0))]
        found["RepartitionSinkTopics"] = [again] if world.likely(0.5) else []
    if len(sources) > 1 and world.likely(0.3):
        places = world.pick([0, 1], [0, 1], [0], [0, 7])
        found["CopartitionGroups"] = [
            {"SourceTopics": places, "SourceTopicRegex": [], "RepartitionSourceTopics": []}
        ]
    if world.likely(0.03):
        found["SourceTopicRegex"] = ["a.*"]
    return found


def internal(world: World, name: str, partitions: int) -> dict[str, Any]:
    """Draw a topic that the broker is to make."""
    configs = world.pick([], [], [{"Key": "cleanup.policy", "Value": "compact"}])
    if world.likely(0.05):
        configs = [{"Key": "cleanup.policy", "Value": "nonsense"}]
    return {
        "Name": name,
        "Partitions": partitions if world.likely(0.95) else 3,
        "ReplicationFactor": world.pick(0, 0, 1, -1),
        "TopicConfigs": configs,
    }


def beating(world: World, known: dict[str, Any]) -> dict[str, Any]:
    """Draw what a member says later."""
    body: dict[str, Any] = {"MemberId": known["id"], "MemberEpoch": known["generation"]}
    if world.likely(0.6):
        active, standby = known.get("tasks", ([], []))
        body |= {"ActiveTasks": active, "StandbyTasks": standby, "WarmupTasks": []}
    if world.likely(0.04):
        body |= {
            "ActiveTasks": [{"SubtopologyId": world.pick("0", "7"), "Partitions": [0, 9]}],
            "StandbyTasks": [],
            "WarmupTasks": [],
        }
    if world.likely(0.1):
        body["MemberEpoch"] = world.pick(
            -1, -1, -2, known["generation"] + 1, max(0, known["generation"] - 1)
        )
    if world.likely(0.04):
        body["ProcessId"] = "p3"
    if world.likely(0.04):
        body["RackId"] = "other"
    if world.likely(0.05):
        body["UserEndpoint"] = {"Host": "elsewhere", "Port": 7}
    if world.likely(0.2):
        body["EndpointInformationEpoch"] = world.pick(known["endpoints"], 0, 9)
    if world.likely(0.03):
        body["ShutdownApplication"] = True
    return body


def learn(world: World, group: str, name: str, body: dict[str, Any], answer: Answer) -> None:
    """Keep what a member was told."""
    learn_member(world, group, name, body, answer, "none")
    member = world.members(group).get(name)
    if member is None:
        return
    member.setdefault("tasks", ([], []))
    member.setdefault("endpoints", 0)
    if answer.is_told and answer.real["ErrorCode"] == 0:
        member["endpoints"] = answer.real["EndpointInformationEpoch"]
        if answer.real["ActiveTasks"] is not None:
            member["tasks"] = (answer.real["ActiveTasks"], answer.real["StandbyTasks"] or [])


def await_topics(world: World, told: Any) -> None:
    """Give the real broker time to make the internal topics that ours has at once."""
    names = [
        one["Name"]
        for part in (told or {}).get("Subtopologies") or ()
        for field in ("StateChangelogTopics", "RepartitionSourceTopics")
        for one in part.get(field) or ()
    ]
    names = [one for one in dict.fromkeys(names) if one and one.startswith(world.prefix)]
    if not names:
        return
    deadline = time.monotonic() + _SECONDS_MAX
    body = {"Topics": [{"Name": one} for one in names], "AllowAutoTopicCreation": False}
    while time.monotonic() < deadline:
        answer = world.twin.exchange("Metadata", 12, body)
        seen = [{one["Name"]: one["ErrorCode"] for one in side["Topics"]} for side in answer]
        if seen[0] == seen[1]:
            break
        time.sleep(0.02)
    learn_topics(world, names)


def describe(world: World) -> None:
    """Ask for streams groups."""
    names = [world.numbered(STREAMS) for _ in range(world.pick(1, 1, 2))]
    if world.likely(0.1):
        names.append(any_group(world))
    body = {
        "GroupIds": list(dict.fromkeys(names)),
        "IncludeAuthorizedOperations": world.likely(0.3),
    }
    world.ask("StreamsGroupDescribe", body)


def delete_groups(world: World) -> None:
    """Delete a streams group."""
    world.ask("DeleteGroups", {"GroupsNames": [world.numbered(STREAMS)]})


def commit(world: World) -> None:
    """Commit an offset as a member, or as nobody."""
    group = world.numbered(STREAMS)
    members = world.members(group)
    topic = world.topic()
    body: dict[str, Any] = {
        "GroupId": group,
        "GenerationIdOrMemberEpoch": -1,
        "MemberId": "",
        "Topics": [
            {"Name": topic.name, "TopicId": topic.id,
             "Partitions": [
                 {"PartitionIndex": world.partition(topic), "CommittedOffset": 3}
             ]}
        ],
    }  # fmt: skip
    if members and world.likely(0.8):
        member = world.chance.choice(list(members.values()))
        epoch = member["generation"] + (world.pick(1, -1) if world.likely(0.2) else 0)
        body |= {"GenerationIdOrMemberEpoch": epoch, "MemberId": member["id"]}
    world.ask("OffsetCommit", body)


def configure(world: World) -> None:
    """Ask for copies of a group's tasks, or for none."""
    change = {
        "Name": "streams.num.standby.replicas",
        "ConfigOperation": 0,
        "Value": world.pick("0", "1"),
    }
    resource = {
        "ResourceType": 32, "ResourceName": world.numbered(STREAMS), "Configs": [change],
    }  # fmt: skip
    world.twin.ask("IncrementalAlterConfigs", 1, {"Resources": [resource], "ValidateOnly": False})
    time.sleep(0.05)
