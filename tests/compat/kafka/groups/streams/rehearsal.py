"""Streams groups on a stage: a coordinator with topics, and members that send heartbeats."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.groups.memory_offsets_log import MemoryOffsetsLog
from logstore.compat.kafka.groups.modern.member import JOINING
from logstore.compat.kafka.groups.streams.exchange import HeartbeatAnswer, StreamsHeartbeat
from logstore.compat.kafka.groups.streams.group import StreamsGroup
from logstore.compat.kafka.groups.streams.states import StatusCode
from logstore.compat.kafka.groups.streams.tasks import HeldTasks
from logstore.segments.kafka.internal_topics.streams_group import (
    CopartitionGroup,
    StreamsGroupTopologyValue,
    StreamsTopic,
    Subtopology,
)
from tests.compat.kafka.groups.consumer.rehearsal import ConsumerRehearsal
from tests.compat.kafka.groups.rehearsal import GROUP

SESSION_MS = 45_000
INTERVAL_MS = 5_000
REBALANCE_MS = 60_000
DELAY_MS = 3_000

NO_DELAY = {
    "group.streams.initial.rebalance.delay.ms": 0,
    "group.streams.assignment.interval.ms": 0,
}


def topology(*subtopologies: Subtopology, epoch: int = 0) -> StreamsGroupTopologyValue:
    """Return a topology."""
    return StreamsGroupTopologyValue(epoch=epoch, subtopologies=subtopologies)


def subtopology(name: str, *sources: str, **fields: Any) -> Subtopology:
    """Return a subtopology that reads some topics, and does nothing else that is not said."""
    plain: dict[str, Any] = {
        "source_topic_regex": (),
        "state_changelog_topics": (),
        "repartition_sink_topics": (),
        "repartition_source_topics": (),
        "copartition_groups": (),
    }
    return Subtopology(subtopology_id=name, source_topics=sources, **plain | fields)


def internal(name: str, partitions: int = 0, replication_factor: int = 0) -> StreamsTopic:
    """Return an internal topic without settings."""
    return StreamsTopic(
        name=name, partitions=partitions, replication_factor=replication_factor, topic_configs=()
    )


def together(*sources: int, repartition: tuple[int, ...] = ()) -> CopartitionGroup:
    """Return a group of topics that are joined, by their places."""
    return CopartitionGroup(
        source_topics=sources, source_topic_regex=(), repartition_source_topics=repartition
    )


PLAIN = topology(subtopology("0", "t"))


class StreamsRehearsal(ConsumerRehearsal):
    """One coordinator over topics that a test makes; heartbeats are in one group."""

    def __init__(
        self,
        topics: Mapping[str, int],
        settings: Mapping[str, int] | None = None,
        log: MemoryOffsetsLog | None = None,
    ) -> None:
        super().__init__(topics, log)
        self.cluster.broker_settings |= NO_DELAY if settings is None else settings

    @property
    def streams_group(self) -> StreamsGroup:
        """The group, which must exist."""
        return self.groups.streams.groups[GROUP]

    @property
    def content(self) -> dict[str, Any]:
        """All that the group is but its topology, and that a restart must not change."""
        group = self.streams_group
        return {
            "state": group.state,
            "epoch": group.epoch,
            "assignment_epoch": group.assignment_epoch,
            "members": list(group.members.values()),
            "targets": dict(group.targets),
        }

    def live(self, member_id: str, epoch: int, /, **changes: Any) -> HeartbeatAnswer:
        """Send a heartbeat that says nothing but that the member lives."""
        beat = StreamsHeartbeat(GROUP, member_id, epoch, "client", "/127.0.0.1")
        return self.groups.streams.heartbeat(attrs.evolve(beat, **changes))

    def joins(
        self,
        member_id: str,
        told: StreamsGroupTopologyValue = PLAIN,
        process: str | None = None,
        **changes: Any,
    ) -> HeartbeatAnswer:
        """Let a member say what it says first."""
        full: dict[str, Any] = {
            "rebalance_timeout_ms": REBALANCE_MS,
            "topology": told,
            "process_id": process or f"process of {member_id}",
            "client_tags": (),
            "active": {},
            "standby": {},
            "warmup": {},
        }
        return self.live(member_id, JOINING, **full | changes)

    def member(
        self,
        member_id: str,
        told: StreamsGroupTopologyValue = PLAIN,
        process: str | None = None,
    ) -> Member:
        """Let a member join, whatever it is told."""
        member = Member(self, member_id)
        member.take(self.joins(member_id, told, process))
        return member

    def rest(self, *members: Member) -> None:
        """Let every member send heartbeats until nothing changes any more."""
        for _ in range(20):
            before = [(one.epoch, one.tasks) for one in members]
            for member in members:
                member.live()
            if before == [(one.epoch, one.tasks) for one in members]:
                return
        raise AssertionError("the group does not come to rest")


class Member:
    """A well-behaved member: it has what it was told to have, and says so."""

    def __init__(self, stage: StreamsRehearsal, member_id: str) -> None:
        self.stage = stage
        self.member_id = member_id
        self.epoch = JOINING
        self.tasks = HeldTasks()
        self.answer = HeartbeatAnswer(ErrorCode.NONE)

    def live(self, **changes: Any) -> HeartbeatAnswer:
        """Say what the member has, and take what it is given."""
        owned = {
            "active": {name: frozenset(epochs) for name, epochs in self.tasks.active.items()},
            "standby": self.tasks.standby,
            "warmup": {},
        }
        return self.take(self.stage.live(self.member_id, self.epoch, **owned | changes))

    def take(self, answer: HeartbeatAnswer) -> HeartbeatAnswer:
        """Do what a member is told."""
        self.answer = answer
        if answer.error_code is ErrorCode.NONE:
            self.epoch = answer.member_epoch
            if answer.tasks is not None:
                self.tasks = answer.tasks
        return answer

    def leave(self, **changes: Any) -> HeartbeatAnswer:
        """Leave for good."""
        return self.stage.live(self.member_id, -1, **changes)

    @property
    def active(self) -> set[str]:
        """Its active tasks, as ``0_1``."""
        return {f"{name}_{index}" for name, epochs in self.tasks.active.items() for index in epochs}

    @property
    def standby(self) -> set[str]:
        """Its standby tasks, as ``0_1``."""
        return {f"{name}_{index}" for name, parts in self.tasks.standby.items() for index in parts}


def codes_of(answer: HeartbeatAnswer) -> list[StatusCode]:
    """Return what a member is told of its group, without the words."""
    return [status.code for status in answer.statuses]
