"""Streams groups on disk, and for Kafka's tools: ours and a real one, side by side."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import attrs
import pytest

from logstore.compat.kafka.groups.streams.messages import DescribedGroup
from logstore.segments.kafka.batch_walk import iterate_entries
from logstore.segments.kafka.internal_topics.codec import encode_message
from logstore.segments.kafka.internal_topics.consumer_group import (
    GroupTargetAssignmentMetadataValue,
)
from logstore.segments.kafka.internal_topics.record_types import (
    GROUP_RECORDS,
    decode_internal_record,
)
from logstore.segments.kafka.internal_topics.streams_group import Endpoint, KeyValue
from logstore.segments.kafka.record import decode_records
from tests.compat.kafka.groups.questioner import Line, commit_fields, fetch_fields
from tests.interop.clients import CLIENTS
from tests.interop.conftest import Broker, CreateTopic, RunTool, new_topic, start_real
from tests.interop.eventually import eventually
from tests.interop.our_broker import OurBroker
from tests.interop.samples import numbered
from tests.interop.streams_member import RawStreamsMember, rested
from tests.interop.streams_wire import (
    StreamsWire,
    internal,
    joining,
    owned,
    subtopology,
    tasks,
    together,
    topology,
)
from tests.interop.test_same_heartbeats import is_loaded

pytestmark = pytest.mark.interop

SETTINGS: dict[str, object] = {
    "group.streams.assignment.interval.ms": 0,
    "group.streams.initial.rebalance.delay.ms": 0,
    "group.streams.num.standby.replicas": 1,
    "offsets.topic.num.partitions": 1,
}
SECONDS_MAX = 60
FOUR, COPIED, REPARTITION = "four", "copied", "repartition"
FULL = topology(
    subtopology("0", FOUR, repartition_sink_topics=(REPARTITION,)),
    subtopology(
        "1", FOUR, repartition_source_topics=(internal(REPARTITION, retention_ms="-1"),),
        state_changelog_topics=(internal(COPIED, b_b="1", a_a="2"),),
        copartition_groups=(together([0], [0]),),
    ),
    epoch=2,
)  # fmt: skip


def life(wire: StreamsWire) -> None:
    """Lead a group through everything that writes records of some kind."""
    tags = (KeyValue(key="zone", value="z"), KeyValue(key="cluster", value="c"))
    endpoint = Endpoint(host="here", port=50_000)
    wire.live("g", "A", 0, **joining(FULL, "p1", client_tags=tags, user_endpoint=endpoint))
    wire.live("g", "A", 2)
    wire.live("g", "B", 0, **joining(FULL, "p2", rack_id="r"))
    both = [0, 1, 2, 3]
    wire.live("g", "A", 2, **owned(tasks(s0=both, s1=both)))
    wire.live("g", "A", 2, **owned(tasks(s0=[0, 1], s1=[0, 1])))
    wire.live("g", "B", 3)
    wire.live("g", "B", 3, **owned(tasks(s0=[2, 3], s1=[2, 3])))
    wire.live("g", "A", 3, **owned(tasks(s0=[0, 1], s1=[0, 1])))
    wire.live("g", "C", 0, **joining(FULL, "p2"))
    wire.live("g", "B", -1)
    wire.live("g", "A", 3, **owned(tasks(s0=[0, 1], s1=[0, 1])))
    wire.live("g", "C", 5, **owned())
    wire.live("missing", "A", 0, **joining(topology(subtopology("0", "nowhere"))))
    for member in ("A", "C"):
        wire.live("g", member, -1)


def written(data: Path) -> Iterator[tuple[bytes, bytes | None]]:
    """Yield the records of streams groups in a data directory; when a target was made is 1."""
    for path in sorted((data / "__consumer_offsets-0").glob("*.log")):
        for batch in iterate_entries(memoryview(path.read_bytes())):
            for key, value in ((one.key, one.value) for one in decode_records(batch.data)):
                assert key is not None
                if key[1] < 17:  # of a group of another kind, or an offset
                    continue
                record = decode_internal_record(GROUP_RECORDS, key, value)
                if isinstance(record.value, GroupTargetAssignmentMetadataValue):
                    stopped = attrs.evolve(record.value, assignment_timestamp=1)
                    yield key, b"\0\0" + encode_message(stopped, 0)
                else:
                    yield key, value


def prepared(tmp_path: Path) -> tuple[Path, Path]:
    """Return two data directories with the same topics, of the same ids."""
    ours, theirs = tmp_path / "data", tmp_path / "copy"
    with OurBroker(tmp_path / "first", SETTINGS, ours) as broker:
        for name in (FOUR, COPIED, REPARTITION):
            new_topic(broker.bootstrap, name, 4)
    shutil.copytree(ours, theirs)
    return ours, theirs


def test_the_same_records(tmp_path: Path) -> None:
    """Every record of a group's life is byte for byte, and in its place, that of a real Kafka."""
    data, copy = prepared(tmp_path)
    with OurBroker(tmp_path / "ours", SETTINGS, data) as ours:
        is_loaded(ours.bootstrap)
        with closing(StreamsWire(ours.bootstrap)) as wire:
            life(wire)
    real = start_real(tmp_path / "real", settings=SETTINGS, as_is=copy)
    try:
        is_loaded(real.bootstrap)
        with closing(StreamsWire(real.bootstrap)) as wire:
            life(wire)
    finally:
        real.stop()
    mine, others = list(written(data)), list(written(copy))
    for number, (one, other) in enumerate(zip(mine, others, strict=False)):
        assert one == other, (number, shown(one), shown(other))
    assert len(mine) == len(others)
    assert {key[1] for key, _ in mine} == {17, 19, 20, 21, 22, 23}
    assert None in {value for _, value in mine}


def shown(record: tuple[bytes, bytes | None]) -> object:
    """Return what a record says."""
    return decode_internal_record(GROUP_RECORDS, *record)


def told_again(wire: StreamsWire, group: str) -> DescribedGroup:
    """Return a group as a broker that has just started describes it."""

    def described() -> list[DescribedGroup]:
        (found,) = wire.describe_streams(group)
        return [found] if found.error_code == 0 else []

    return eventually(described, what=f"{group} is loaded", seconds=SECONDS_MAX)[0]


def without_counts(group: DescribedGroup) -> DescribedGroup:
    """Return a group without what a broker knows only once a member has spoken to it."""
    members = tuple(sorted(group.members, key=lambda one: one.member_id))
    return attrs.evolve(group, topology=None, members=members)


@pytest.mark.parametrize("is_killed", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_either_broker_goes_on_with_the_others_group(tmp_path: Path, is_killed: bool) -> None:
    """Members, epochs and tasks are there, nothing is worked out anew, and members live on."""
    data, _ = prepared(tmp_path)
    members = [RawStreamsMember("g", name, FULL) for name in ("A", "B")]
    ours = OurBroker(tmp_path / "ours", SETTINGS, data).start()
    is_loaded(ours.bootstrap)
    with closing(StreamsWire(ours.bootstrap)) as wire:
        before = rested(wire, *members)
    ours.stop(kill=is_killed)

    real = start_real(tmp_path / "real", settings=SETTINGS, as_is=data)
    try:
        with closing(StreamsWire(real.bootstrap)) as wire:
            assert without_counts(told_again(wire, "g")) == without_counts(before)
            assert without_counts(rested(wire, *members)) == without_counts(before)
            members.append(RawStreamsMember("g", "C", FULL))
            before = rested(wire, *members)
            sizes = [sum(len(one.partitions) for one in member.active) for member in members]
            assert sorted(sizes) == [2, 3, 3]
    finally:
        real.stop(kill=is_killed)

    with ours, closing(StreamsWire(ours.bootstrap)) as wire:
        assert without_counts(told_again(wire, "g")) == without_counts(before)
        assert without_counts(rested(wire, *members)) == without_counts(before)


class Tools:
    """What Kafka's tools say of one group of a broker."""

    def __init__(self, broker: Broker, kafka_tool: RunTool, create_topic: CreateTopic) -> None:
        self.bootstrap = broker.bootstrap
        self.topic = create_topic(broker.bootstrap, partitions=4)
        self.group = f"app-{self.topic}"
        self._run = kafka_tool

    def commit(self, members: list[RawStreamsMember], offset: int) -> None:
        """Let members commit an offset in every partition that they read."""
        for member in members:
            indexes = member.active[0].partitions
            fields = commit_fields(
                self.group, *indexes, name=self.topic, member_id=member.member_id,
                generation_id_or_member_epoch=member.epoch,
            )  # fmt: skip
            for partition in fields["topics"][0]["partitions"]:
                partition["committed_offset"] = offset
            told = Line(self.bootstrap).ask("OffsetCommit", 9, **fields)["topics"][0]
            assert {one["error_code"] for one in told["partitions"]} == {0}

    def committed(self) -> set[int]:
        """Return the offsets that the group has."""
        told = Line(self.bootstrap).ask("OffsetFetch", 7, **fetch_fields(7, self.group, None))
        return {one["committed_offset"] for part in told["topics"] for one in part["partitions"]}

    def ask(self, *args: str, check: bool = True) -> str:
        """Run the tool for streams groups; return what it prints, without names and ports."""
        done = self._run(
            "StreamsGroupCommand", "--bootstrap-server", self.bootstrap, *args, check=check
        )
        text = (done.stdout + ("" if check else done.stderr)).replace(self.group, "GROUP")
        text = text.replace(self.topic, "TOPIC").replace(self.bootstrap, "BROKER")
        return "\n".join(" ".join(line.split()) for line in text.splitlines() if line.strip())


@pytest.mark.either_layout
def test_what_the_tools_tell(
    broker: Broker, create_topic: CreateTopic, kafka_tool: RunTool
) -> None:
    """``kafka-streams-groups`` lists, describes, moves, forgets and deletes a group."""
    tools = Tools(broker, kafka_tool, create_topic)
    group = ("--group", tools.group)
    changelog = f"{tools.group}-store-changelog"
    told = topology(
        subtopology("0", tools.topic, state_changelog_topics=(internal(changelog),)), epoch=1
    )
    CLIENTS[0].produce(tools.bootstrap, tools.topic, numbered(40))
    is_loaded(tools.bootstrap)
    with closing(StreamsWire(tools.bootstrap)) as wire:
        members = [RawStreamsMember(tools.group, name, told) for name in ("one", "two")]
        rested(wire, *members)
        assert "GROUP" in tools.ask("--list").split()
        listed = tools.ask("--list", "--state", "stable").splitlines()
        assert listed[0] == "GROUP STATE"
        assert "GROUP Stable" in listed
        assert tools.ask("--describe", *group, "--state").splitlines() == [
            "GROUP COORDINATOR (ID) STATE #MEMBERS", "GROUP BROKER (1) Stable 2",
        ]  # fmt: skip
        assert sorted(tools.ask("--describe", *group, "--members").splitlines()) == MEMBERS
        verbose = tools.ask("--describe", *group, "--members", "--verbose")
        assert set(re.findall(r"process-\w+", verbose)) == {"process-one", "process-two"}
        assert "is not EMPTY" in tools.ask("--delete", *group, check=False)
        tools.commit(members, 3)
        offsets = tools.ask("--describe", *group, "--offsets").splitlines()
        assert offsets[0] == "GROUP TOPIC PARTITION OFFSET-LAG"
        assert len(offsets) == 5, offsets
        for member in members:
            member.leave(wire)
    reset = ("--reset-offsets", *group, "--input-topic", tools.topic, "--to-earliest")
    moved = [f"GROUP TOPIC {index} 0" for index in range(4)]
    assert sorted(tools.ask(*reset, "--dry-run").splitlines())[:4] == moved
    assert tools.committed() == {3}
    assert sorted(tools.ask(*reset, "--execute").splitlines())[:4] == moved
    assert tools.committed() == {0}
    forgotten = tools.ask("--delete-offsets", *group, "--input-topic", tools.topic)
    assert forgotten.count("Successful") == 4
    assert tools.committed() == set()
    assert "successful" in tools.ask("--delete", *group)
    assert "GROUP" not in tools.ask("--list").split()


MEMBERS = [
    "GROUP MEMBER PROCESS CLIENT-ID ASSIGNMENTS",
    "GROUP one process-one test ACTIVE: 0:[0,2];",
    "GROUP two process-two test ACTIVE: 0:[1,3];",
]
