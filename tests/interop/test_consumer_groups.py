"""Groups of KIP-848 with real clients, against both brokers."""

from __future__ import annotations

import re
import uuid
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import attrs
import confluent_kafka
import pytest

from logstore.compat.kafka.groups.consumer.messages import DescribedGroup
from logstore.tools.dev.kafka_peer import KafkaPeer
from tests.compat.kafka.groups.questioner import Line
from tests.interop.clients import CLIENTS
from tests.interop.conftest import SETTINGS, Broker, CreateTopic, RunTool, new_topic
from tests.interop.eventually import eventually
from tests.interop.group_wire import GroupWire, RawMember
from tests.interop.our_broker import OurBroker
from tests.interop.samples import numbered

pytestmark = [pytest.mark.interop, pytest.mark.either_layout]

RECORD_COUNT = 120
SECONDS_MAX = 60


@contextmanager
def consumers(
    bootstrap: str, group: str, count: int, topic: str, **settings: Any
) -> Generator[list[Any]]:
    """Lend so many members of a group; whoever is not closed by then is closed at the end."""
    config = {
        "bootstrap.servers": bootstrap,
        "group.id": group,
        "group.protocol": "consumer",
        "auto.offset.reset": "earliest",
        **settings,
    }
    made = [
        confluent_kafka.Consumer(config | {"client.id": f"client-{number}"})
        for number in range(count)
    ]
    try:
        for consumer in made:
            consumer.subscribe([topic])
        yield made
    finally:
        for consumer in made:
            consumer.close()


def shares(members: list[Any]) -> list[list[int]]:
    """Let members speak for a moment; return which partitions each has."""
    for consumer in members:
        consumer.poll(0.05)
    return [sorted(one.partition for one in consumer.assignment()) for consumer in members]


def settled(members: list[Any], sizes: list[int]) -> list[list[int]]:
    """Wait until everything is shared out in parts of these sizes, and nothing twice."""

    def is_shared() -> list[list[int]]:
        found = shares(members)
        parts = [one for part in found for one in part]
        is_whole = len(set(parts)) == len(parts) == sum(sizes)
        return found if is_whole and sorted(map(len, found)) == sizes else []

    return eventually(is_shared, what=f"parts of {sizes}", seconds=SECONDS_MAX)


def rows(output: str) -> list[dict[str, str]]:
    """Return the table that a tool prints, as one mapping a line."""
    lines = [line.split() for line in output.splitlines() if line.strip()]
    start = next(number for number, line in enumerate(lines) if line[0] == "GROUP")
    return [dict(zip(lines[start], line, strict=False)) for line in lines[start + 1 :]]


def test_librdkafka_members_share_the_work(broker: Broker, create_topic: CreateTopic) -> None:
    """Three members get two partitions each and read everything once; two take over from one."""
    topic = create_topic(broker.bootstrap, partitions=6)
    CLIENTS[0].produce(broker.bootstrap, topic, numbered(RECORD_COUNT))
    read: list[bytes] = []
    with consumers(broker.bootstrap, f"group-of-{topic}", 3, topic) as members:
        settled(members, [2, 2, 2])

        def take() -> bool:
            for consumer in members:
                read.extend(message.value() for message in consumer.consume(100, 0.1))
            return len(read) >= RECORD_COUNT

        # What was polled while the group settled is not counted: ask for all of it again.
        for consumer in members:
            for one in consumer.assignment():
                consumer.seek(confluent_kafka.TopicPartition(topic, one.partition, 0))
        eventually(take, what="all records", seconds=SECONDS_MAX)
        assert {record.value for record in numbered(RECORD_COUNT)} <= set(read)
        members[0].close()
        settled(members[1:], [3, 3])


def test_what_the_tools_tell(
    broker: Broker, create_topic: CreateTopic, kafka_tool: RunTool
) -> None:
    """Java's tools list and describe such a group, its members and its offsets."""
    topic = create_topic(broker.bootstrap, partitions=4)
    group = f"group-of-{topic}"
    CLIENTS[0].produce(broker.bootstrap, topic, numbered(RECORD_COUNT))
    tool = ("ConsumerGroupCommand", "--bootstrap-server", broker.bootstrap)
    with consumers(broker.bootstrap, group, 2, topic, **{"enable.auto.commit": False}) as members:
        parts = settled(members, [2, 2])
        members[0].commit(
            offsets=[confluent_kafka.TopicPartition(topic, index, 1) for index in parts[0]],
            asynchronous=False,
        )
        listed = rows(kafka_tool(*tool, "--list", "--state", "--type").stdout)
        assert next(row for row in listed if row["GROUP"] == group) == {
            "GROUP": group, "TYPE": "Consumer", "STATE": "Stable",
        }  # fmt: skip
        described = kafka_tool(*tool, "--describe", "--group", group, "--offsets").stdout
        offsets = {row["PARTITION"]: row["CURRENT-OFFSET"] for row in rows(described)}
        assert offsets == {
            str(index): "1" if index in parts[0] else "-" for part in parts for index in part
        }
        table = kafka_tool(*tool, "--describe", "--group", group, "--members", "--verbose").stdout
        assert sorted(row["CLIENT-ID"] for row in rows(table)) == ["client-0", "client-1"]
        assert len(re.findall(rf"{topic}:[\d,]+", table)) == 4
        (state,) = rows(kafka_tool(*tool, "--describe", "--group", group, "--state").stdout)
        assert "Stable 2" in " ".join(state.values())
    deleted = kafka_tool(*tool, "--delete", "--group", group).stdout
    assert "successful" in deleted
    assert group not in kafka_tool(*tool, "--list").stdout.split()


@pytest.mark.parametrize("what", ["topic", "include"])
def test_the_java_consumer(
    broker: Broker, create_topic: CreateTopic, kafka_tool: RunTool, what: str
) -> None:
    """It reads a topic by its name, and topics by a pattern, and finds what it has committed."""
    topic = create_topic(broker.bootstrap, partitions=3)
    group = f"group-of-{topic}"
    CLIENTS[0].produce(broker.bootstrap, topic, numbered(RECORD_COUNT))
    wanted = (f"--{what}", topic if what == "topic" else f"{topic[:-1]}.")
    command = (
        *("ConsoleConsumer", "--bootstrap-server", broker.bootstrap, *wanted, "--group", group),
        *("--command-property", "group.protocol=consumer", "--from-beginning"),
        *("--command-property", "auto.commit.interval.ms=100"),
    )
    done = kafka_tool(*command, "--max-messages", "50", "--timeout-ms", "30000")
    first = done.stdout.splitlines()
    rest = kafka_tool(*command, "--max-messages", "70", "--timeout-ms", "30000").stdout.splitlines()
    values = sorted((record.value or b"").decode() for record in numbered(RECORD_COUNT))
    assert sorted(first + rest) == values


def rested(bootstrap: str, *members: RawMember) -> DescribedGroup:
    """Let members live until nothing moves any more; return their group as it is described."""
    with closing(GroupWire(bootstrap)) as wire:

        def is_at_rest() -> list[DescribedGroup]:
            for member in members:
                member.beat(wire)
            (group,) = wire.describe(members[0].group)
            has_all = sum(len(member.partitions) for member in members) == 6
            return [group] if has_all and group.group_state == "Stable" else []

        return eventually(is_at_rest, what="a stable group", seconds=SECONDS_MAX)[0]


def told_again(bootstrap: str, group: str) -> DescribedGroup:
    """Return a group as a broker that has just started describes it."""
    with closing(GroupWire(bootstrap)) as wire:

        def described() -> list[DescribedGroup]:
            (found,) = wire.describe(group)
            return [found] if found.error_code == 0 else []

        return eventually(described, what=f"{group} is loaded", seconds=SECONDS_MAX)[0]


def by_member(group: DescribedGroup) -> dict[str, Any]:
    """Return what does not depend on how often the target was worked out."""
    return {
        member.member_id: (
            member.instance_id,
            member.client_id,
            partitions(member.assignment.topic_partitions),
            partitions(member.target_assignment.topic_partitions),
        )
        for member in group.members
    }


def partitions(topics: Any) -> set[tuple[uuid.UUID, str, int]]:
    """Return described partitions without an order."""
    return {(one.topic_id, one.topic_name, index) for one in topics for index in one.partitions}


def unordered(group: DescribedGroup) -> DescribedGroup:
    """Return a group whose members are in the order of their ids."""
    members = tuple(sorted(group.members, key=lambda one: one.member_id))
    return attrs.evolve(group, members=members)


@pytest.mark.parametrize("is_killed", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_either_broker_goes_on_with_the_others_group(tmp_path: Path, is_killed: bool) -> None:
    """Members, epochs, partitions and offsets are there, and the members just go on living."""
    data, topic, group = tmp_path / "data", "shared", "g"
    members = [RawMember(group, name, topic) for name in ("A", "B")]
    ours = OurBroker(tmp_path / "ours", SETTINGS, data).start()
    new_topic(ours.bootstrap, topic, 6)
    before = rested(ours.bootstrap, *members)
    commit(ours.bootstrap, group, topic, members[0], 5)
    ours.stop(kill=is_killed)

    real = KafkaPeer("4", tmp_path / "real", settings=SETTINGS, as_is=data).start()
    try:
        assert unordered(told_again(real.bootstrap, group)) == unordered(before)
        assert by_member(rested(real.bootstrap, *members)) == by_member(before)
        assert committed(real.bootstrap, group, topic) == {5}
        third = RawMember(group, "C", topic)
        before = rested(real.bootstrap, *members, third)
        assert {len(member.partitions) for member in (*members, third)} == {2}
        commit(real.bootstrap, group, topic, third, 7)
    finally:
        real.stop(kill=is_killed)

    with ours:
        assert unordered(told_again(ours.bootstrap, group)) == unordered(before)
        assert by_member(rested(ours.bootstrap, *members, third)) == by_member(before)
        assert 7 in committed(ours.bootstrap, group, topic)


def commit(bootstrap: str, group: str, topic: str, member: RawMember, offset: int) -> None:
    """Commit an offset of all partitions of a member, in its name."""
    line = Line(bootstrap)
    asked = [
        {
            "partition_index": index,
            "committed_offset": offset,
            "committed_leader_epoch": -1,
            "committed_metadata": "",
        }
        for _, index in sorted(member.partitions)
    ]
    answer = line.ask(
        "OffsetCommit", 9, group_id=group, generation_id_or_member_epoch=member.epoch,
        member_id=member.member_id, group_instance_id=None,
        topics=[{"name": topic, "partitions": asked}],
    )  # fmt: skip
    codes = {one["error_code"] for part in answer["topics"] for one in part["partitions"]}
    assert codes == {0}


def committed(bootstrap: str, group: str, topic: str) -> set[int]:
    """Return the offsets that a group has in a topic of six partitions."""
    asked = {
        "group_id": group,
        "member_id": None,
        "member_epoch": -1,
        "topics": [{"name": topic, "partition_indexes": list(range(6))}],
    }
    answer = Line(bootstrap).ask("OffsetFetch", 9, groups=[asked], require_stable=False)
    (found,) = answer["groups"][0]["topics"]
    return {one["committed_offset"] for one in found["partitions"]} - {-1}
