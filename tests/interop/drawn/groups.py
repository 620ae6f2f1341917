"""Groups of every kind: members come, beat and go; offsets are committed, fetched and deleted."""

from __future__ import annotations

from typing import Any

from tests.interop.drawn.schemas import ZERO_UUID
from tests.interop.drawn.share_states import await_states
from tests.interop.drawn.twin import Answer
from tests.interop.drawn.world import World, subscription

CLASSIC, CONSUMER, SHARE = "group", "consumer", "share"
TOO_LARGE = 12


def group_name(world: World) -> str:
    """Draw a classic group's name, now and then one of another kind, or none."""
    if world.likely(0.06):
        kind = world.pick("none", "consumer0", "share0")
        return "" if world.likely(0.25) else f"{world.prefix}-{kind}"
    return world.numbered(CLASSIC)


def member_of(world: World, group: str) -> dict[str, Any]:
    """Draw a member of a group, or somebody who is none."""
    members = world.members(group)
    if members and world.likely(0.9):
        found: dict[str, Any] = world.chance.choice(list(members.values()))
        return found
    return {
        "id": world.pick("", "nobody"),
        "generation": world.pick(-1, 0, 1),
        "instance": None,
        "name": "x",
    }


def join(world: World) -> None:
    """Join a classic group, or join it again."""
    group = group_name(world)
    version = world.version("JoinGroup")
    name = world.pick("a", "b")
    members = world.members(group)
    known = members.get(name, {})
    instance = f"i-{name}" if world.likely(0.2) and version >= 5 else known.get("instance")
    protocols = [{"Name": "range", "Metadata": subscription([world.topic_name()])}]
    if world.likely(0.2):
        protocols.append({"Name": "roundrobin", "Metadata": subscription([world.topic_name()], 0)})
    if world.likely(0.06):
        protocols = world.pick(
            [], [{"Name": "own", "Metadata": b"\1"}], [{"Name": "", "Metadata": b""}]
        )
    body = {
        "GroupId": group,
        "SessionTimeoutMs": world.pick(*[30_000] * 9, 1, 10_000_000),
        "RebalanceTimeoutMs": 60_000,
        "MemberId": known.get("id", "") if world.likely(0.95) else "somebody else",
        "GroupInstanceId": instance if version >= 5 else None,
        "ProtocolType": "consumer" if world.likely(0.95) else world.pick("", "connect"),
        "Protocols": protocols,
        "Reason": world.pick(None, "why", ""),
    }

    def learn(answer: Answer) -> None:
        member = answer.made(lambda told: told["MemberId"])
        code = answer.get(lambda told: told["ErrorCode"])
        if not answer.is_told or code not in {0, 79} or not member.ours or not member.real:
            return
        generation = answer.get(lambda told: told["GenerationId"], -1)
        everybody = answer.made(lambda told: [one["MemberId"] for one in told["Members"]])
        members[name] = {
            "id": member, "generation": generation, "instance": instance, "name": name,
            "leads": bool(answer.get(lambda told: told["Leader"] == told["MemberId"])),
            "everybody": everybody, "protocol": answer.get(lambda told: told["ProtocolName"]),
        }  # fmt: skip

    world.begin("JoinGroup", body, version, f"{group}-{name}", learn)


def sync(world: World) -> None:
    """Hand in or ask for an assignment."""
    group = group_name(world)
    member = member_of(world, group)
    assignments: Any = []
    if member.get("leads") or world.likely(0.1):
        assignments = [{"MemberId": member["id"], "Assignment": b"mine"}]
    version = world.version("SyncGroup")
    body = {
        "GroupId": group,
        "GenerationId": member["generation"] + (world.pick(1, -1) if world.likely(0.05) else 0),
        "MemberId": member["id"],
        "GroupInstanceId": member["instance"] if version >= 3 else None,
        "ProtocolType": world.pick("consumer", "consumer", "consumer", None, "x"),
        "ProtocolName": world.pick(member.get("protocol"), member.get("protocol"), None, "y"),
        "Assignments": assignments,
    }
    world.begin("SyncGroup", body, version, f"{group}-{member['name']}")


def heartbeat(world: World) -> None:
    """Beat in a classic group."""
    group = group_name(world)
    member = member_of(world, group)
    beat_as(world, group, member)


def beat_as(world: World, group: str, member: dict[str, Any]) -> None:
    """Beat as that member, now and then of another generation."""
    version = world.version("Heartbeat")
    body = {
        "GroupId": group,
        "GenerationId": member["generation"] + (world.pick(1, -1) if world.likely(0.08) else 0),
        "MemberId": member["id"],
        "GroupInstanceId": member["instance"] if version >= 3 else None,
    }
    world.ask("Heartbeat", body, version)


def leave(world: World) -> None:
    """Leave a classic group, alone or several at once."""
    group = group_name(world)
    version = world.version("LeaveGroup")
    member = member_of(world, group)
    items = []
    for one in (member, member_of(world, group)):
        with_instance = one["instance"] is not None and world.likely(0.5)
        items.append(
            {"MemberId": "" if with_instance else one["id"], "GroupInstanceId": one["instance"],
             "Reason": world.pick(None, "tired")}
        )  # fmt: skip
        if world.likely(0.8):
            break
    world.ask("LeaveGroup", {"GroupId": group, "MemberId": member["id"], "Members": items}, version)
    for name, one in list(world.members(group).items()):
        if one is member:
            del world.members(group)[name]


def offset_topics(world: World, by_id: bool, offset_fields: Any) -> list[dict[str, Any]]:
    """Draw topics with partitions and what is said of each."""
    found: dict[str, dict[str, Any]] = {}
    for _ in range(world.pick(1, 1, 2)):
        topic = world.topic()
        item = found.setdefault(
            topic.name,
            {"Name": topic.name, "TopicId": topic.id if by_id else ZERO_UUID, "Partitions": []},
        )
        item["Partitions"].append(offset_fields(world.partition(topic)))
    return list(found.values())


def offset_commit(world: World) -> None:
    """Commit offsets, as a member or as nobody."""
    group = world.numbered(CONSUMER) if world.likely(0.3) else group_name(world)
    version = world.version("OffsetCommit")
    member = member_of(world, group)
    is_nobody = world.likely(0.4)

    def fields(partition: int) -> dict[str, Any]:
        return {
            "PartitionIndex": partition,
            "CommittedOffset": world.pick(0, 1, 5, 7, -1, -2),
            "CommittedLeaderEpoch": world.pick(-1, 0, 3),
            "CommittedMetadata": world.pick(
                "", "note", None, "x" * 5000 if world.likely(0.2) else "y"
            ),
        }

    body = {
        "GroupId": group,
        "GenerationIdOrMemberEpoch": -1 if is_nobody else member["generation"],
        "MemberId": "" if is_nobody else member["id"],
        "GroupInstanceId": None if is_nobody or version < 7 else member["instance"],
        "RetentionTimeMs": world.pick(-1, -1, 1000),
        "Topics": offset_topics(world, version >= 10, fields),
    }
    answer = world.ask("OffsetCommit", body, version)
    codes = [
        one["ErrorCode"]
        for topic in answer.get(lambda told: told["Topics"], ())
        for one in topic["Partitions"]
    ]
    if TOO_LARGE in codes:
        have_all_seen(world)  # also a group that came to be by this


def have_all_seen(world: World) -> None:
    """
    Have the real broker show what it has noted without a record: it does with the next one.

    Both partitions of the coordinator's log get one, for names whose hashes are neighbours.
    """
    for group in (f"{world.prefix}-seen0", f"{world.prefix}-seen1"):
        partition = {"PartitionIndex": 0, "CommittedOffset": 1, "CommittedMetadata": ""}
        body = {
            "GroupId": group,
            "GenerationIdOrMemberEpoch": -1,
            "MemberId": "",
            "Topics": [{"Name": one, "Partitions": [partition]} for one in list(world.topics)[:1]],
        }
        world.twin.ask("OffsetCommit", 8, body)


def offset_fetch(world: World) -> None:
    """Fetch offsets of a group or of several."""
    version = world.version("OffsetFetch")
    topics: Any = None if version >= 2 and world.likely(0.4) else []
    if topics is not None:
        for _ in range(world.pick(1, 1, 2)):
            topic = world.topic()
            topics.append(
                {
                    "Name": topic.name,
                    "TopicId": topic.id,
                    "PartitionIndexes": [world.partition(topic), 0],
                }
            )
    if version < 8:
        for one in topics or ():
            del one["TopicId"]
        world.ask(
            "OffsetFetch",
            {"GroupId": group_name(world), "Topics": topics, "RequireStable": world.likely(0.2)},
            version,
        )
        return
    items = []
    for _ in range(world.pick(1, 1, 2)):
        group = world.numbered(CONSUMER) if world.likely(0.3) else group_name(world)
        item: dict[str, Any] = {"GroupId": group, "Topics": topics}
        member = member_of(world, group)
        if world.likely(0.3):
            item |= {"MemberId": member["id"], "MemberEpoch": member["generation"]}
        items.append(item)
    body = {"Groups": items, "RequireStable": world.likely(0.2)}
    world.ask("OffsetFetch", body, version)


def offset_delete(world: World) -> None:
    """Forget offsets of a group."""
    topic = world.topic()
    item = {"Name": topic.name, "Partitions": [{"PartitionIndex": world.partition(topic)}]}
    world.ask("OffsetDelete", {"GroupId": group_name(world), "Topics": [item]})


def any_group(world: World) -> str:
    """Draw a group of any kind."""
    kind = world.pick(CLASSIC, CLASSIC, CONSUMER, SHARE)
    return world.numbered(kind) if world.likely(0.9) else group_name(world)


def describe_groups(world: World) -> None:
    """Ask for groups as classic ones."""
    names = list(dict.fromkeys(any_group(world) for _ in range(world.pick(1, 1, 2))))
    world.ask("DescribeGroups", {"Groups": names, "IncludeAuthorizedOperations": world.likely(0.3)})


def describe_modern_groups(world: World) -> None:
    """Ask for groups of the new kind."""
    names = list(dict.fromkeys(any_group(world) for _ in range(world.pick(1, 1, 2))))
    world.ask(
        world.pick(
            "ConsumerGroupDescribe",
            "ConsumerGroupDescribe",
            "ShareGroupDescribe",
            "StreamsGroupDescribe",
        ),
        {"GroupIds": names, "IncludeAuthorizedOperations": world.likely(0.3)},
    )


def delete_groups(world: World) -> None:
    """Delete groups."""
    names = list(dict.fromkeys(any_group(world) for _ in range(world.pick(1, 1, 2))))
    world.ask("DeleteGroups", {"GroupsNames": names})


def find_coordinator(world: World) -> None:
    """Ask who coordinates."""
    version = world.version("FindCoordinator")
    kind = world.pick(0, 0, 1, 1, 2, 3, -1) if version >= 1 else 0
    keys = [world.pick(any_group(world), "", f"g:{'A' * 22}:0", "x:y:z", "x:1")]
    body: dict[str, Any] = {"Key": keys[0], "KeyType": kind}
    if version >= 4:
        body = {
            "KeyType": kind,
            "CoordinatorKeys": keys + ([any_group(world)] if world.likely(0.3) else []),
        }
    world.ask("FindCoordinator", body, version)


def consumer_heartbeat(world: World) -> None:
    """Join, beat in or leave a group of the new kind."""
    group = world.numbered(CONSUMER) if world.likely(0.95) else group_name(world)
    members = world.members(group)
    name = world.pick("a", "b")
    known = members.get(name)
    version = world.version("ConsumerGroupHeartbeat")
    body: dict[str, Any] = {"GroupId": group}
    if known is None:
        identity = f"{group}-{name}" if version >= 1 or world.likely(0.5) else ""
        body |= {
            "MemberId": identity, "MemberEpoch": 0, "RebalanceTimeoutMs": 60_000,
            "TopicPartitions": [],
            "SubscribedTopicNames": [world.topic_name() for _ in range(world.pick(1, 1, 2))],
            "InstanceId": f"i-{name}" if world.likely(0.15) else None,
            "ServerAssignor": world.pick(None, None, "range", "uniform", "none"),
        }  # fmt: skip
        if version >= 1 and world.likely(0.1):
            # One that is right is worked out beside the heartbeat (SKIPPED.md): epochs differ.
            body["SubscribedTopicRegex"] = world.pick("(", "[a", "*a", "a**", "")
            body["SubscribedTopicNames"] = world.pick(None, [], body["SubscribedTopicNames"])
    else:
        body |= {"MemberId": known["id"], "MemberEpoch": known["generation"]}
        if world.likely(0.5) and known.get("assigned") is not None:
            body["TopicPartitions"] = known["assigned"]
        if world.likely(0.15):
            body["SubscribedTopicNames"] = [world.topic_name()]
        if world.likely(0.1):
            body["MemberEpoch"] = world.pick(
                -1, -1, -2, known["generation"] + 1, max(0, known["generation"] - 1)
            )
            body["InstanceId"] = known["instance"]
        if known["instance"] is not None and world.likely(0.5):
            body["InstanceId"] = known["instance"]
    answer = world.ask("ConsumerGroupHeartbeat", body, version)
    learn_member(world, group, name, body, answer, "Assignment")


def learn_member(
    world: World, group: str, name: str, body: Any, answer: Answer, field: str
) -> None:
    """Keep what a member was told."""
    members = world.members(group)
    code = answer.get(lambda told: told["ErrorCode"])
    if not answer.is_told or code != 0:
        if code in {25, 110, 112}:
            members.pop(name, None)
        return
    epoch = answer.get(lambda told: told["MemberEpoch"])
    if epoch < 0:
        members.pop(name, None)
        return
    member = members.setdefault(name, {"instance": body.get("InstanceId"), "name": name})
    member |= {"id": answer.made(lambda told: told["MemberId"]), "generation": epoch}
    assigned = answer.made(lambda told: told[field]["TopicPartitions"])
    if assigned is not None and assigned.ours is not None:
        member["assigned"] = assigned


def share_heartbeat(world: World) -> None:
    """Join, beat in or leave a share group."""
    group = world.numbered(SHARE) if world.likely(0.95) else group_name(world)
    members = world.members(group)
    name = world.pick("a", "b")
    known = members.get(name)
    body: dict[str, Any] = {"GroupId": group}
    if known is None:
        body |= {
            "MemberId": f"{group}-{name}",
            "MemberEpoch": 0,
            "SubscribedTopicNames": [world.topic_name()],
        }
    else:
        body |= {"MemberId": known["id"], "MemberEpoch": known["generation"]}
        if world.likely(0.15):
            body["SubscribedTopicNames"] = [world.topic_name()]
        if world.likely(0.12):
            body["MemberEpoch"] = world.pick(-1, -1, known["generation"] + 1, -2)
    answer = world.ask("ShareGroupHeartbeat", body)
    learn_member(world, group, name, body, answer, "Assignment")
    if "SubscribedTopicNames" in body:
        await_states(world.twin, group)


def list_groups(world: World) -> None:
    """Ask for groups by state and kind."""
    states = world.pick([], ["Stable"], ["Empty", "Dead"], ["nonsense"], ["stable"], ["Assigning"])
    kinds = world.pick(
        [], ["classic"], ["consumer"], ["share", "streams"], ["nonsense"], ["Consumer"]
    )
    world.ask("ListGroups", {"StatesFilter": states, "TypesFilter": kinds})
