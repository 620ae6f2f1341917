"""The same questions about groups, put to the real Kafka and to ours: the same answers."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import attrs
import pytest

from tests.compat.kafka.groups.questioner import (
    Line,
    Questioner,
    commit_fields,
    fetch_fields,
    join_fields,
    sync_fields,
)
from tests.interop.conftest import SETTINGS, start_real
from tests.interop.eventually import eventually
from tests.interop.our_broker import OurBroker

pytestmark = pytest.mark.interop

Scenario = Callable[[Questioner], None]
SCENARIOS: dict[str, Scenario] = {}
UNKNOWN_TOPIC_ID = uuid.UUID("66782f5e-7ae8-4daf-9135-71c816c45b18")


def scenario(told: Scenario) -> Scenario:
    """Enter a scenario under its name."""
    SCENARIOS[told.__name__] = told
    return told


@attrs.frozen
class Pair:
    """Where both brokers listen; each has topics ``t`` and ``gone`` of two partitions."""

    real: str
    ours: str


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """Both brokers, ready to coordinate."""
    directory = tmp_path_factory.mktemp("pair")
    settings = {"auto.create.topics.enable": "false"}
    with ExitStack() as stack:
        real = start_real(directory / "real", settings=dict(settings))
        stack.callback(real.stop)
        ours = OurBroker(directory / "ours", SETTINGS | settings).start()
        stack.callback(ours.stop)
        for bootstrap in (real.bootstrap, ours.bootstrap):
            _prepare(Line(bootstrap))
        yield Pair(real.bootstrap, ours.bootstrap)


def _prepare(line: Line) -> None:
    topic: dict[str, Any] = {
        "num_partitions": 2,
        "replication_factor": 1,
        "assignments": [],
        "configs": [],
    }
    topics = [{"name": name} | topic for name in ("t", "gone")]
    line.ask("CreateTopics", 5, topics=topics, timeout_ms=10_000, validate_only=False)

    def is_ready() -> bool:
        # The real one makes its __consumer_offsets only now, and loads it after that.
        line.ask("FindCoordinator", 3, key="warm", key_type=0)
        answer = line.ask("OffsetCommit", 8, **commit_fields("warm"))
        return bool(answer["topics"][0]["partitions"][0]["error_code"] == 0)

    eventually(is_ready, what="the coordinator serves")


@pytest.mark.parametrize("name", ["refused_joins", "a_members_life", "static_members", "lapses"])
def test_members_hear_the_same(pair: Pair, name: str) -> None:
    """Joins, syncs, heartbeats and leaves are answered alike, in every version and state."""
    _compare(pair, SCENARIOS[name])


@pytest.mark.parametrize("name", ["commits", "members_commits", "topic_ids", "deletions"])
def test_offsets_are_the_same(pair: Pair, name: str) -> None:
    """Commits, fetches and deletions are answered alike, in every version."""
    _compare(pair, SCENARIOS[name])


def test_administrators_see_the_same(pair: Pair) -> None:
    """Groups are described, listed and found alike, in every version."""
    _compare(pair, SCENARIOS["administration"])


def _compare(pair: Pair, told: Scenario) -> None:
    heard: list[list[tuple[str, Any]]] = []
    for bootstrap in (pair.real, pair.ours):
        questioner = Questioner(bootstrap)
        told(questioner)
        heard.append(questioner.answers)
    real, ours = heard
    assert len(real) > 5
    for real_answer, our_answer in zip(real, ours, strict=True):
        assert our_answer == real_answer


def join(questioner: Questioner, version: int, group_id: str, **changes: Any) -> dict[str, Any]:
    """Join on the main line, with the id that the first answer brings."""
    answer = questioner.ask("JoinGroup", version, **join_fields(group_id, **changes))
    if answer["error_code"] == 79:
        changes["member_id"] = answer["member_id"]
        answer = questioner.ask("JoinGroup", version, **join_fields(group_id, **changes))
    return answer


@scenario
def refused_joins(questioner: Questioner) -> None:
    """What is wrong with a join is told in the shape of each version."""
    for version in range(10):
        group = f"refused-{version}"
        new_groups: list[dict[str, Any]] = [
            {"group_id": ""},
            {"session_timeout_ms": 50},
            {"session_timeout_ms": 1_800_001},
            {"member_id": "nobody"},
            {"group_id": f"{group}-a", "protocols": []},
            {"group_id": f"{group}-b", "protocol_type": ""},
        ]
        for changes in new_groups:
            questioner.ask("JoinGroup", version, **join_fields(group) | changes)
        member = join(questioner, version, group)
        questioner.ask("SyncGroup", min(version, 5), **sync_fields(group, member))
        other = [{"name": "other", "metadata": b""}]
        for changes in ({"protocols": other}, {"protocol_type": "x"}, {"member_id": "nobody"}):
            questioner.ask("JoinGroup", version, **join_fields(group, **changes))
        groups = [group, f"{group}-a", f"{group}-b"]
        questioner.ask("DescribeGroups", 6, groups=groups)


@scenario
def a_members_life(questioner: Questioner) -> None:
    """Two members go through two generations, and do all that they should not."""
    group = "life"
    unknown: dict[str, Any] = {"generation_id": 1, "member_id": "m", "members": []}
    for group_id in ("", "nowhere"):
        questioner.ask("SyncGroup", 5, **sync_fields(group_id, unknown))
        questioner.ask("Heartbeat", 4, group_id=group_id, generation_id=1, member_id="m")
        questioner.ask("LeaveGroup", 1, group_id=group_id, member_id="m")
        questioner.ask("LeaveGroup", 5, group_id=group_id, members=[{"member_id": "m"}])
    first = join(questioner, 9, group)
    mistakes: list[dict[str, Any]] = [
        {"protocol_type": None},
        {"protocol_name": None},
        {"protocol_type": "x"},
        {"protocol_name": "x"},
        {"generation_id": 7},
        {"member_id": "x"},
        {"group_instance_id": "x"},
    ]
    for mistake in mistakes:
        questioner.ask("SyncGroup", 5, **sync_fields(group, first, **mistake))
    beat = {"group_id": group, "generation_id": 1, "member_id": first["member_id"]}
    commit = commit_fields(group, generation_id_or_member_epoch=1, member_id=first["member_id"])
    questioner.ask("Heartbeat", 4, **beat)
    questioner.ask("OffsetCommit", 8, **commit)
    questioner.ask("JoinGroup", 9, **join_fields(group, member_id=first["member_id"]))
    questioner.await_state(group, "CompletingRebalance")
    questioner.ask("SyncGroup", 5, **sync_fields(group, first))
    questioner.ask("SyncGroup", 5, **sync_fields(group, first, assignments=[]))
    for mistake in ({"generation_id": 2}, {"group_instance_id": "x"}, {"member_id": "x"}):
        questioner.ask("Heartbeat", 4, **beat | mistake)
    _second_generation(questioner, group, first, beat, commit)


def _second_generation(
    questioner: Questioner,
    group: str,
    first: dict[str, Any],
    beat: dict[str, Any],
    commit: dict[str, Any],
) -> None:
    line = questioner.open()
    pending = questioner.hear("second comes", line.ask("JoinGroup", 9, **join_fields(group)))
    line.send("JoinGroup", 9, **join_fields(group, member_id=pending["member_id"]))
    questioner.await_state(group, "PreparingRebalance")
    questioner.ask("Heartbeat", 4, **beat)
    questioner.ask("SyncGroup", 5, **sync_fields(group, first))
    questioner.ask("OffsetCommit", 8, **commit)
    again = questioner.ask("JoinGroup", 9, **join_fields(group, member_id=first["member_id"]))
    second = questioner.hear("second joined", line.receive())
    line.send("SyncGroup", 5, **sync_fields(group, second))
    questioner.ask("SyncGroup", 5, **sync_fields(group, again))
    questioner.hear("second synced", line.receive())
    questioner.ask("JoinGroup", 9, **join_fields(group, member_id=second["member_id"]))
    changed = [{"name": "range", "metadata": b"\0\1\0\0\0\0"}]
    line.send(
        "JoinGroup", 9, **join_fields(group, member_id=second["member_id"], protocols=changed)
    )
    questioner.await_state(group, "PreparingRebalance")
    questioner.ask("LeaveGroup", 5, group_id=group, members=[{"member_id": first["member_id"]}])
    questioner.hear("second leads", line.receive())
    for version in (0, 2):
        questioner.ask("LeaveGroup", version, group_id=group, member_id=second["member_id"])
    questioner.await_state(group, "Empty")
    questioner.ask("Heartbeat", 4, **beat)
    questioner.ask("JoinGroup", 9, **join_fields(group, member_id=second["member_id"]))
    join(questioner, 9, group)


@scenario
def static_members(questioner: Questioner) -> None:
    """Static members restart, are fenced, change their mind and are removed by name."""
    for version in (5, 6, 7, 8, 9):
        group = f"static-{version}"
        leader = _two_static_members(questioner, group, version)
        for instance, old in (("b", leader["b"]), ("a", leader["a"])):
            named = {"group_instance_id": instance}
            back = questioner.ask("JoinGroup", version, **join_fields(group, **named))
            questioner.ask("SyncGroup", 5, **sync_fields(group, back, **named))
            beat = {"group_id": group, "generation_id": 2, "member_id": old["member_id"]}
            questioner.ask("Heartbeat", 4, **beat, **named)
            questioner.ask("Heartbeat", 4, **beat)
            questioner.ask("SyncGroup", 5, **sync_fields(group, old, **named))
            again = join_fields(group, member_id=old["member_id"], **named)
            questioner.ask("JoinGroup", version, **again)
            generation: dict[str, Any] = {
                "generation_id_or_member_epoch": 2,
                "member_id": old["member_id"],
            }
            questioner.ask("OffsetCommit", 8, **commit_fields(group, **generation), **named)
            leaving = [{"member_id": old["member_id"]} | named]
            questioner.ask("LeaveGroup", 5, group_id=group, members=leaving)
        questioner.await_state(group, "Stable")
        changed = [{"name": "range", "metadata": b"\0\1\0\0\0\0"}]
        fields = join_fields(group, group_instance_id="b", protocols=changed)
        questioner.ask("JoinGroup", version, **fields)
        leaving = [{"member_id": "", "group_instance_id": one} for one in ("a", "b", "c")]
        questioner.ask("LeaveGroup", 5, group_id=group, members=leaving)
        questioner.await_state(group, "Empty")


def _two_static_members(
    questioner: Questioner, group: str, version: int
) -> dict[str, dict[str, Any]]:
    """Bring two static members to stability in generation 2; return them by instance."""
    line = questioner.open()
    first = questioner.ask("JoinGroup", version, **join_fields(group, group_instance_id="a"))
    line.send("JoinGroup", version, **join_fields(group, group_instance_id="b"))
    questioner.await_state(group, "PreparingRebalance")
    again = join_fields(group, member_id=first["member_id"], group_instance_id="a")
    leader = questioner.ask("JoinGroup", version, **again)
    follower = questioner.hear("b joined", line.receive())
    questioner.ask("SyncGroup", 5, **sync_fields(group, leader, group_instance_id="a"))
    questioner.ask("SyncGroup", 5, **sync_fields(group, follower, group_instance_id="b"))
    return {"a": leader, "b": follower}


@scenario
def lapses(questioner: Questioner) -> None:
    """Sessions, ids and syncs that do not come in time end, and what is left is the same."""
    short = {"session_timeout_ms": 500, "rebalance_timeout_ms": 500}
    silent = join(questioner, 9, "silent", **short)
    questioner.ask("SyncGroup", 5, **sync_fields("silent", silent))
    questioner.await_state("silent", "Empty")
    beat = {"generation_id": 1, "member_id": silent["member_id"]}
    questioner.ask("Heartbeat", 4, group_id="silent", **beat)
    idle = join(questioner, 9, "idle", rebalance_timeout_ms=500)
    questioner.await_state("idle", "Empty")
    questioner.ask("SyncGroup", 5, **sync_fields("idle", idle))
    join(questioner, 9, "idle")
    questioner.await_state("idle", "CompletingRebalance")


@scenario
def commits(questioner: Questioner) -> None:
    """Simple consumers commit right and wrong in all versions, and fetch it in all versions."""
    for version in range(2, 10):
        group = f"simple-{version}"
        questions: list[dict[str, Any]] = [
            commit_fields(group, 0, 1),
            commit_fields(group, name="nowhere"),
            commit_fields(group, 0, 99),
            commit_fields(group, generation_id_or_member_epoch=1, member_id="m"),
            commit_fields(group, generation_id_or_member_epoch=0),
            commit_fields(group, member_id="m"),
            commit_fields(f"none-{version}", generation_id_or_member_epoch=1, member_id="m"),
            commit_fields(f"only-{version}", name="nowhere"),
            commit_fields(""),
            commit_fields(group, metadata="x" * 4097),
            commit_fields(group, metadata="é" * 4096),
            commit_fields(group, 1, metadata=None),
        ]
        for fields in questions:
            questioner.ask("OffsetCommit", version, **fields)
        groups = [group, f"none-{version}", f"only-{version}"]
        questioner.ask("DescribeGroups", 6, groups=groups)
    some = [
        {"name": "t", "partition_indexes": [0, 1, 99]},
        {"name": "nowhere", "partition_indexes": [0]},
    ]
    for version in range(1, 10):
        for group_id in ("simple-2", "simple-9", "nowhere"):
            for topics in (some, None) if version >= 2 else (some,):
                questioner.ask("OffsetFetch", version, **fetch_fields(version, group_id, topics))
    groups_asked = [{"group_id": one, "topics": None} for one in ("nowhere", "simple-5")]
    questioner.ask("OffsetFetch", 9, groups=groups_asked, require_stable=True)
    epoch = {"group_id": "simple-5", "member_id": "m", "member_epoch": 3, "topics": None}
    questioner.ask("OffsetFetch", 9, groups=[epoch, epoch | {"group_id": "nowhere"}])


@scenario
def members_commits(questioner: Questioner) -> None:
    """A group with a member takes offsets from that member only."""
    member = join(questioner, 9, "members")
    questioner.ask("SyncGroup", 5, **sync_fields("members", member))
    mine = {"member_id": member["member_id"]}
    for version in (7, 8, 9):
        for generation in (-1, 0, 1, 2):
            for who in ({}, mine, {"member_id": "x"}, mine | {"group_instance_id": "x"}):
                fields: dict[str, Any] = {"generation_id_or_member_epoch": generation} | who
                questioner.ask("OffsetCommit", version, **commit_fields("members", **fields))


@scenario
def topic_ids(questioner: Questioner) -> None:
    """Version 10 names topics by id."""
    names = [{"name": "t"}]
    topics = questioner.line.ask("Metadata", 12, topics=names)["topics"]
    known = topics[0]["topic_id"]
    questioner.ask("OffsetFetch", 9, **fetch_fields(9, "ids", None))
    for topic_id, index in ((known, 0), (known, 99), (UNKNOWN_TOPIC_ID, 0)):
        partitions = [{"partition_index": index, "committed_offset": 3}]
        fields = commit_fields("ids") | {
            "topics": [{"topic_id": topic_id, "partitions": partitions}]
        }
        questioner.ask("OffsetCommit", 10, **fields)
    asked = [
        {"topic_id": one, "partition_indexes": [0, 1, 99]} for one in (known, UNKNOWN_TOPIC_ID)
    ]
    for group_id in ("ids", "nowhere"):
        for topics in (asked, None):
            questioner.ask("OffsetFetch", 10, **fetch_fields(10, group_id, topics))


@scenario
def deletions(questioner: Questioner) -> None:
    """Offsets, groups and topics are deleted, or not."""
    for group in ("rich", "poor"):
        questioner.ask("OffsetCommit", 8, **commit_fields(group, 0, 1))
        questioner.ask("OffsetCommit", 8, **commit_fields(group, 0, name="gone"))
    member = join(questioner, 9, "busy")
    questioner.ask("SyncGroup", 5, **sync_fields("busy", member))
    partitions = [{"partition_index": 0}, {"partition_index": 99}]
    topics = [{"name": name, "partitions": partitions} for name in ("t", "gone", "nowhere")]
    for group in ("rich", "busy", "nowhere", ""):
        questioner.ask("OffsetDelete", 0, group_id=group, topics=topics)
    for version in range(3):
        names = ["busy", "poor", "poor", "nowhere", ""]
        questioner.ask("DeleteGroups", version, groups_names=names)
    for group in ("rich", "poor"):
        questioner.ask("OffsetFetch", 8, **fetch_fields(8, group, None))
    questioner.ask("OffsetCommit", 8, **commit_fields("poor", 0, name="gone"))
    questioner.line.ask("DeleteTopics", 3, topic_names=["gone"], timeout_ms=5000)

    def has_forgotten() -> bool:
        answer = questioner.line.ask("OffsetFetch", 8, **fetch_fields(8, "poor", None))
        return bool(answer["groups"][0]["topics"] == [])

    eventually(has_forgotten, what="the offsets in the topic are forgotten")
    questioner.ask("DescribeGroups", 6, groups=["poor", "rich"])


@scenario
def administration(questioner: Questioner) -> None:
    """One stable, one simple and one unknown group are looked at from all sides."""
    member = join(questioner, 9, "seen")
    questioner.ask("SyncGroup", 5, **sync_fields("seen", member))
    questioner.ask("OffsetCommit", 8, **commit_fields("seen-simple"))
    for version in range(7):
        for more in ({}, {"include_authorized_operations": True}) if version >= 3 else ({},):
            groups = ["seen", "seen-simple", "nobody", ""]
            questioner.ask("DescribeGroups", version, groups=groups, **more)
    filters: list[dict[str, Any]] = [{}]
    filters += [{"states_filter": one} for one in (["stable"], ["EMPTY", "x"], [" Stable "])]
    filters += [{"types_filter": one} for one in (["classic"], ["Classic", "share"], ["x"])]
    for version in range(6):
        for chosen in filters[: (1, 1, 1, 1, 4, 7)[version]]:
            answer = questioner.line.ask("ListGroups", version, **chosen)
            seen = [one for one in answer["groups"] if one["group_id"].startswith("seen")]
            questioner.hear(f"ListGroups v{version} {chosen}", answer | {"groups": seen})
    for version in range(7):
        keys = {"coordinator_keys": ["k", ""]} if version >= 4 else {"key": "k"}
        questioner.ask("FindCoordinator", version, **keys)
