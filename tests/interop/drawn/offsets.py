"""Offsets are committed, fetched and forgotten, of groups of any kind and several at once."""

from __future__ import annotations

from typing import Any

from tests.interop.drawn.groups import any_group, member_of
from tests.interop.drawn.inquiries import INT64_MAX, doubled, numbers, places
from tests.interop.drawn.schemas import ZERO_UUID
from tests.interop.drawn.world import UNKNOWN_ID, World

DESCRIPTIONS = (
    "DescribeGroups", "ConsumerGroupDescribe", "ShareGroupDescribe", "StreamsGroupDescribe",
)  # fmt: skip


def names(world: World) -> list[str]:
    """Draw groups, none or many, nobody's among them and one twice or not."""
    found = [any_group(world) for _ in range(world.pick(0, 1, 1, 2, 3))]
    if world.likely(0.3):
        found.append(world.pick("", f"{world.prefix}-nobody", "x" * 300))
    return doubled(world, found)


def topics_of(world: World, partitions: Any, by_id: bool) -> list[dict[str, Any]]:
    """Draw topics by name and id, now and then by an id that is none's, or one twice."""
    found = []
    for topic in doubled(world, [world.topic() for _ in range(world.pick(0, 1, 1, 2))]):
        item: dict[str, Any] = {"Name": topic.name} | partitions(topic)
        if by_id:
            identity = world.pick(*[topic.id] * 8, ZERO_UUID, UNKNOWN_ID)
            item |= {"TopicId": identity}
        found.append(item)
    return found


def commit(world: World) -> None:
    """Commit offsets of many partitions, each once, as a member or as nobody."""
    version = world.version("OffsetCommit")
    group = any_group(world)
    member = member_of(world, group)
    is_nobody = world.likely(0.6)

    def partitions(topic: Any) -> dict[str, Any]:
        return {
            "Partitions": [
                {
                    "PartitionIndex": number,
                    "CommittedOffset": world.pick(0, 1, 5, 9, 1000, INT64_MAX, -1, -2, -(2**63)),
                    "CommittedLeaderEpoch": world.pick(-1, -1, 0, 3, -2),
                    "CommittedMetadata": world.pick("", "note", None, "x" * 4096, "\u00fc" * 2049),
                }
                for number in dict.fromkeys(numbers(world, topic))
            ]
        }

    # Of a partition that comes twice another offset counts (SKIPPED.md).
    found = topics_of(world, partitions, version >= 10)
    topics = list({one["Name"]: one for one in found}.values())
    body: dict[str, Any] = {
        "GroupId": group,
        "GenerationIdOrMemberEpoch": world.pick(-1, -1, -1, 0, -2) if is_nobody
        else member["generation"],
        "MemberId": "" if is_nobody else member["id"],
        "RetentionTimeMs": world.pick(-1, -1, 1000, 0),
        "Topics": topics,
    }  # fmt: skip
    if version >= 7:
        body["GroupInstanceId"] = world.pick(member["instance"], None, None, "i-a", "nobody")
    world.ask("OffsetCommit", body, version)


def fetch(world: World) -> None:
    """Fetch offsets of several groups, of all topics or some, what is unstable among them."""
    version = world.version("OffsetFetch")

    def partitions(topic: Any) -> dict[str, Any]:
        return {"PartitionIndexes": numbers(world, topic)}

    def topics() -> Any:
        if version >= 2 and world.likely(0.3):
            return None
        return topics_of(world, partitions, version >= 10)

    is_stable = world.likely(0.4)
    if version < 8:
        body: dict[str, Any] = {"GroupId": any_group(world), "Topics": topics()}
        if version >= 7:
            body["RequireStable"] = is_stable
        world.ask("OffsetFetch", body, version)
        return
    items = []
    for group in names(world):
        item = {"GroupId": group, "Topics": topics()}
        member = member_of(world, group)
        if version >= 9 and world.likely(0.4):
            epoch = world.pick(*[member["generation"]] * 4, -1, 0, -2)
            item |= {"MemberId": world.pick(member["id"], member["id"], None, ""),
                     "MemberEpoch": epoch}  # fmt: skip
        items.append(item)
    world.ask("OffsetFetch", {"Groups": items, "RequireStable": is_stable}, version)


def forget(world: World) -> None:
    """Forget offsets of many partitions, of one twice or not."""
    items = places(world, "Name", "Partitions")
    for item in items:
        item["Partitions"] = [{"PartitionIndex": number} for number in item["Partitions"]]
    group = "" if world.likely(0.05) else any_group(world)
    world.ask("OffsetDelete", {"GroupId": group, "Topics": items})


def delete_groups(world: World) -> None:
    """Delete several groups of any kind, one twice or not."""
    world.ask("DeleteGroups", {"GroupsNames": names(world)})


def describe(world: World) -> None:
    """Ask for groups as those of one kind, whatever they are."""
    api = world.pick(*DESCRIPTIONS)
    field = "Groups" if api == "DescribeGroups" else "GroupIds"
    world.ask(api, {field: names(world), "IncludeAuthorizedOperations": world.likely(0.3)})
