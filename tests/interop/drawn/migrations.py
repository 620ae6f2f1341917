"""
Groups in which both protocols meet: who comes with the one after the other, and what both are told.

Assignments depend on the order in which members stand in Java's tables, and so on ids that each
broker makes up: members whose ids stand otherwise at the two brokers leave, or come back under
another id, before anything else is asked (`walks.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.interop.drawn.consumer_protocol import VERSIONS, assignment, given, subscription
from tests.interop.drawn.groups import beat_as, learn_member
from tests.interop.drawn.mixed_groups import (
    CLASSIC,
    CONSUMER,
    INSTANCES_SINCE,
    NAMES,
    is_of_consumers,
    is_steady,
    line_of,
    make_topics,
    mixed_group,
    others,
    own_id,
    some_member,
)
from tests.interop.drawn.twin import Answer
from tests.interop.drawn.walks import are_members_alike
from tests.interop.drawn.world import World

MEMBER_ID_REQUIRED, UNKNOWN_MEMBER = 79, 25
TRIES = 60
PROTOCOLS = ("range", "roundrobin", "cooperative-sticky", "own")
ASSIGNORS = (None, None, None, "range", "uniform", "none")
#: Bytes that are no subscription, and ones that hardly are. Over text that ends too early Kafka
#: stumbles and does not answer (SKIPPED.md), but in what a leader gives.
BROKEN = (
    b"", b"\0", b"\0\1", b"\xff\xff\0\0\0\0", b"\0\7" + bytes(20), b"own",
    b"\0\0\0\0\0\0\xff\xff\xff\xffmore",
)  # fmt: skip
BROKEN_SHARES = (b"mine", b"", b"\0\3\0\0\0\1\0\5ab", b"\0\3\0\0\0\1\xff\xff", b"\0\3\0\0\1\1")


# who speaks the classic protocol


def join(world: World) -> None:
    """Come with the classic protocol: for the first time, again, or in the other one's place."""
    group = mixed_group(world)
    name = world.pick(*NAMES)
    repair(world, group)
    _join(world, group, name, is_as_before=False)


def _join(world: World, group: str, name: str, *, is_as_before: bool) -> None:
    if world.twin.is_waiting(line_of(group, name)):
        return
    known = world.members(group).get(name)
    if known is not None and known["kind"] == CONSUMER and (is_as_before or world.likely(0.5)):
        return
    version = world.version("JoinGroup")
    is_new = known is None
    known = known or {"id": "", "instance": None, "name": name}
    instance = known["instance"]
    if is_new and world.likely(0.3):
        instance = f"i-{name}"
    if instance is not None and version < INSTANCES_SINCE:
        version = world.versions["JoinGroup"][-1]
    member_id: Any = known["id"]
    if instance is not None and (known.get("kind") == CONSUMER or world.likely(0.2)):
        member_id = ""  # comes back under another id
    is_to_be_seen = instance is not None and member_id == "" and is_of_consumers(world, group)
    if not member_id and instance is None and is_of_consumers(world, group):
        member_id = own_id(world, group, name)
    if member_id is None:
        return
    protocols = _protocols(world, known, is_as_before or (is_to_be_seen and not is_new))
    if is_to_be_seen and is_new:
        protocols = _wanting_nothing(world)
    body = {
        "GroupId": group,
        "SessionTimeoutMs": 30_000,
        "RebalanceTimeoutMs": world.pick(60_000, 60_000, 50_000),
        "MemberId": member_id,
        "GroupInstanceId": instance,
        "ProtocolType": "consumer" if is_as_before or world.likely(0.95) else "connect",
        "Protocols": protocols,
        "Reason": world.pick(None, "why"),
    }
    _begin_join(world, name, body, version)


def _begin_join(world: World, name: str, body: dict[str, Any], version: int) -> None:
    """Put a join to both; who is told to come back with an id does, if the id is alike."""
    group = body["GroupId"]
    fresh: list[Any] = []

    def learn(answer: Answer) -> None:
        code = answer.get(lambda told: told["ErrorCode"]) if answer.is_told else None
        if code == MEMBER_ID_REQUIRED:
            fresh.append(answer.made(lambda told: told["MemberId"]))
            world.twin.comparison.learn(*fresh[0])
        if code == UNKNOWN_MEMBER and body["MemberId"]:
            world.members(group).pop(name, None)
        if code == 0 and answer.ours["ErrorCode"] == 0:
            _learn_joined(world, name, body, answer)

    line = line_of(group, name)
    world.twin.begin("JoinGroup", version, body, line, learn)
    for _ in range(TRIES):
        if not fresh:
            return
        member_id = fresh.pop()
        if are_members_alike(others(world, group, name), member_id):
            body = body | {"MemberId": member_id}
            world.twin.begin("JoinGroup", version, body, line, learn)
            return
        _give_up(world, group, member_id)
        answer = world.twin.exchange("JoinGroup", version, body, line)
        learn(answer)


def _learn_joined(world: World, name: str, body: dict[str, Any], answer: Answer) -> None:
    group = body["GroupId"]
    member_id = answer.made(lambda told: told["MemberId"])
    world.twin.comparison.learn(*member_id)
    if member_id.ours == member_id.real:
        member_id = member_id.ours
    before = world.members(group).get(name, {})
    world.members(group)[name] = {
        "id": member_id,
        "generation": answer.get(lambda told: told["GenerationId"]),
        "instance": body["GroupInstanceId"],
        "name": name,
        "kind": CLASSIC,
        "protocols": body["Protocols"],
        "protocol": answer.get(lambda told: told["ProtocolName"]),
        "leads": bool(answer.get(lambda told: told["Leader"] == told["MemberId"])),
        "owned": before.get("owned", {}),
        "is_alike": are_members_alike(others(world, group, name), member_id),
    }


def _give_up(world: World, group: str, member_id: Any) -> None:
    members = [{"MemberId": member_id, "GroupInstanceId": None, "Reason": None}]
    world.twin.exchange("LeaveGroup", 5, {"GroupId": group, "Members": members})


def _protocols(world: World, known: dict[str, Any], is_as_before: bool) -> list[dict[str, Any]]:
    """Draw what a member can do: most often what it could before."""
    before: list[dict[str, Any]] | None = known.get("protocols")
    if before is not None and (is_as_before or world.likely(0.6)):
        return before
    if before is None and is_as_before and known.get("topics") is not None:
        topics = known["topics"]
    else:
        topics = list(dict.fromkeys(world.pick(*wanted(world)) for _ in world.pick("a", "ab")))
    owned = known.get("owned", {}) if world.likely(0.6) else {}
    version = world.pick(*VERSIONS)
    rack = world.pick(None, None, "r", "")
    user_data = world.pick(None, None, b"", b"mine")
    metadata = subscription(topics, version, owned, known.get("generation", -1), rack, user_data)
    if world.likely(0.05) and not is_as_before:
        metadata = world.pick(*BROKEN, b"\0\7" + metadata[2:], metadata + b"more")
    names = world.pick(
        ["range"], ["range"], ["range", "cooperative-sticky"], ["cooperative-sticky", "range"],
        ["roundrobin", "range"], ["own"], ["own", "range"], list(PROTOCOLS),
    )  # fmt: skip
    found = [{"Name": one, "Metadata": metadata} for one in names]
    if world.likely(0.06) and not is_as_before:
        found[-1]["Metadata"] = world.pick(*BROKEN, subscription(topics, 1, {}))
    if world.likely(0.02) and not is_as_before:
        found = []
    return found


def wanted(world: World) -> Sequence[str]:
    """Return the topics that members want, one that is not there among them."""
    return (*make_topics(world), f"{world.prefix}-unknown")


def _wanting_nothing(world: World) -> list[dict[str, Any]]:
    metadata = subscription([f"{world.prefix}-unknown"], world.pick(*VERSIONS), {})
    return [{"Name": "range", "Metadata": metadata}]


def repair(world: World, group: str) -> None:
    """Have members leave, or come back, whose ids stand otherwise."""
    members = world.members(group)
    for name, one in list(members.items()):
        if one.get("is_alike", True) or world.twin.is_waiting(line_of(group, name)):
            continue
        if one["instance"] is None:
            _give_up(world, group, one["id"])
            del members[name]
            continue
        body = {
            "GroupId": group, "SessionTimeoutMs": 30_000, "RebalanceTimeoutMs": 60_000,
            "MemberId": "", "GroupInstanceId": one["instance"], "ProtocolType": "consumer",
            "Protocols": one["protocols"], "Reason": None,
        }  # fmt: skip
        version = world.versions["JoinGroup"][-1]
        for _ in range(TRIES):
            _begin_join(world, name, body, version)
            is_waiting = world.twin.is_waiting(line_of(group, name))
            if is_waiting or members.get(name, {}).get("is_alike", True):
                break


def sync(world: World) -> None:
    """Hand in or ask for an assignment."""
    group = mixed_group(world)
    member = some_member(world, group, CLASSIC)
    if member is not None:
        _sync(world, group, member, world.pick(1, -1) if world.likely(0.05) else 0)


def _sync(world: World, group: str, member: dict[str, Any], off: int = 0) -> None:
    name = member["name"]
    version = world.version("SyncGroup")
    is_leading = member.get("leads") or world.likely(0.05)

    def learn(answer: Answer) -> None:
        if answer.get(lambda told: told["ErrorCode"]) == 0:
            member["owned"] = given(answer.get(lambda told: told["Assignment"], b""))

    body = {
        "GroupId": group,
        "GenerationId": member.get("generation", -1) + off,
        "MemberId": member["id"],
        "GroupInstanceId": member["instance"] if version >= 3 else None,
        "ProtocolType": world.pick("consumer", "consumer", "consumer", None, "x" if off else None),
        "ProtocolName": world.pick(member.get("protocol"), member.get("protocol"), None),
        "Assignments": shares(world, group) if is_leading else [],
    }
    world.begin("SyncGroup", body, version, line_of(group, name), learn)


def shares(world: World, group: str) -> list[dict[str, Any]]:
    """Share the topics out among those who speak the classic protocol."""
    members = [one for one in world.members(group).values() if one["kind"] == CLASSIC]
    parts: list[dict[str, list[int]]] = [{} for _ in members]
    for topic in make_topics(world):
        for index in range(world.topics[topic].partitions):
            if members and world.likely(0.8):
                world.chance.choice(parts).setdefault(topic, []).append(index)
    if parts and world.likely(0.05):
        parts[0][f"{world.prefix}-unknown"] = [0, 1]
    found = []
    for member, one in zip(members, parts, strict=True):
        data = assignment(one, world.pick(*VERSIONS), world.pick(*[None] * 6, b"", b"mine"))
        if world.likely(0.04):
            data = world.pick(*BROKEN_SHARES, b"\0\7" + data[2:], data[:-1], b"\xff\xff" + data[2:])
        found.append({"MemberId": member["id"], "Assignment": data})
    return found


def heartbeat(world: World) -> None:
    """Beat with the classic protocol."""
    group = mixed_group(world)
    member = some_member(world, group, CLASSIC if world.likely(0.85) else None)
    if member is None:
        return
    beat_as(world, group, member)


def leave(world: World) -> None:
    """Leave, alone or several at once, of whichever protocol."""
    group = mixed_group(world)
    if not is_steady(world, group):
        return
    version = world.version("LeaveGroup")
    first = some_member(world, group, None)
    if first is None:
        return
    leaving = [first]
    if version >= 3 and world.likely(0.25):
        leaving.append(some_member(world, group, None) or first)
    items = [
        {
            "MemberId": "" if one["instance"] is not None and world.likely(0.4) else one["id"],
            "GroupInstanceId": one["instance"] if version >= 3 else None,
            "Reason": None,
        }
        for one in leaving
    ]
    body = {"GroupId": group, "MemberId": first["id"], "Members": items}
    answer = world.twin.ask("LeaveGroup", version, body)
    codes = answer.get(lambda told: [one["ErrorCode"] for one in told["Members"]], [0])
    if version < 3:
        codes = [answer.get(lambda told: told["ErrorCode"])]
    for one, code in zip(leaving, codes, strict=False):
        if code in {0, UNKNOWN_MEMBER}:
            world.members(group).pop(one["name"], None)


# who speaks the new one


def consumer_heartbeat(world: World) -> None:
    """Join, beat or leave with the new protocol, or take the place of a classic member."""
    group = mixed_group(world)
    repair(world, group)
    if not is_steady(world, group):
        return
    name = world.pick(*NAMES)
    if world.twin.is_waiting(line_of(group, name)):
        return
    known = world.members(group).get(name)
    if known is not None and known["kind"] == CONSUMER:
        beat(world, group, known)
    elif known is None or world.likely(0.4):
        _come(world, group, name, known)


def _come(world: World, group: str, name: str, known: dict[str, Any] | None) -> None:
    version = world.version("ConsumerGroupHeartbeat")
    instance = None if known is None else known["instance"]
    if known is None and world.likely(0.25):
        instance = f"i-{name}"
    if known is not None and instance is None:
        member_id = known["id"]
    else:
        member_id = own_id(world, group, name)
    if member_id is None:
        return
    topics = list(dict.fromkeys(world.pick(*wanted(world)) for _ in world.pick("a", "ab", "abc")))
    body: dict[str, Any] = {
        "GroupId": group,
        "MemberId": member_id,
        "MemberEpoch": 0,
        "InstanceId": instance,
        "RackId": world.pick(None, None, "r"),
        "RebalanceTimeoutMs": world.pick(60_000, 60_000, 45_000),
        "SubscribedTopicNames": topics,
        "ServerAssignor": world.pick(*ASSIGNORS),
        "TopicPartitions": [],
    }
    if version >= 1 and world.likely(0.06):
        body["SubscribedTopicRegex"] = world.pick("(", "[a", "")
    answer = world.twin.ask("ConsumerGroupHeartbeat", version, body)
    _learn_beat(world, group, name, body, answer)


def beat(world: World, group: str, known: dict[str, Any]) -> None:
    """Tell that a member is alive, what it still has, and what it wants now."""
    body: dict[str, Any] = {
        "GroupId": group, "MemberId": known["id"], "MemberEpoch": known["generation"],
    }  # fmt: skip
    if world.likely(0.6) and known.get("assigned") is not None:
        body["TopicPartitions"] = known["assigned"]
    if world.likely(0.15):
        body["SubscribedTopicNames"] = [world.pick(*wanted(world)) for _ in world.pick("a", "ab")]
    if world.likely(0.05):
        body["ServerAssignor"] = world.pick("range", "uniform")
    if world.likely(0.18):
        epoch = known["generation"]
        body["MemberEpoch"] = world.pick(-1, -1, -1, -2, epoch + 1, max(0, epoch - 1))
        body["InstanceId"] = known["instance"]
        if body["MemberEpoch"] == 0:
            return  # joins again, as `_come`
    if known["instance"] is not None and world.likely(0.5):
        body["InstanceId"] = known["instance"]
    answer = world.ask("ConsumerGroupHeartbeat", body)
    _learn_beat(world, group, known["name"], body, answer)


def _learn_beat(world: World, group: str, name: str, body: dict[str, Any], answer: Answer) -> None:
    learn_member(world, group, name, body, answer, "Assignment")
    member = world.members(group).get(name)
    if answer.get(lambda told: told["ErrorCode"]) != 0 or member is None:
        return
    if body["MemberEpoch"] == 0:
        member |= {"kind": CONSUMER, "instance": body["InstanceId"], "leads": False}
        member |= {"id": body["MemberId"], "topics": body["SubscribedTopicNames"]}
        member.pop("protocols", None)


def go_round(world: World) -> None:
    """Have everybody do what his protocol wants, so that the group comes to rest."""
    group = mixed_group(world)
    repair(world, group)
    if not is_steady(world, group):
        return
    names = sorted(world.members(group))
    for name in names:
        one = world.members(group).get(name)
        if one is not None and one["kind"] == CLASSIC:
            _join(world, group, name, is_as_before=True)
        elif one is not None:
            beat(world, group, one)
    world.twin.settle()
    for name in names:
        one = world.members(group).get(name)
        if one is None or world.twin.is_waiting(line_of(group, name)):
            continue
        if one["kind"] == CLASSIC:
            _sync(world, group, one)
        else:
            beat(world, group, one)
