"""A group coordinator on a stage: time that a test turns, a log in memory, members by name."""

from __future__ import annotations

import random
from typing import Any, TypeVar

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.groups.commit import Commit
from logstore.compat.kafka.groups.config import GroupConfig
from logstore.compat.kafka.groups.coordinator import GroupCoordinator
from logstore.compat.kafka.groups.exchange import (
    GroupProtocol,
    Join,
    Joined,
    Left,
    MemberIdentity,
    Sync,
    Synced,
)
from logstore.compat.kafka.groups.group import Group
from logstore.compat.kafka.groups.memory_offsets_log import MemoryOffsetsLog
from logstore.compat.kafka.groups.offset_table import TopicPartition
from logstore.compat.kafka.groups.offsets_log import CommittedOffset
from logstore.compat.kafka.groups.states import GroupState
from logstore.compat.waiting import Later, Timers
from logstore.testing.manual_clock import ManualClock

AnswerT = TypeVar("AnswerT")

SESSION_MS = 10_000
REBALANCE_MS = 60_000
DELAY_MS = 3_000
#: how long the first join takes if all come at once: the delay, extended because others came
COMPANY_MS = 2 * DELAY_MS
GROUP = "readers"


def subscription(*topics: str) -> bytes:
    """Return the subscription of a consumer, version 1 with nothing owned."""
    names = b"".join(len(topic).to_bytes(2, "big") + topic.encode() for topic in topics)
    return b"\0\1" + len(topics).to_bytes(4, "big") + names + b"\xff\xff\xff\xff" + b"\0\0\0\0"


def protocols(*names: str, topics: tuple[str, ...] = ("t",)) -> tuple[GroupProtocol, ...]:
    """Return protocols of these names over one subscription."""
    return tuple(GroupProtocol(name, subscription(*topics)) for name in names)


def answer_to(later: Later[AnswerT]) -> AnswerT:
    """Return an answer that must have been given by now; may be called once."""
    assert later.done, "not answered yet"
    answers: list[AnswerT] = []
    later.then(answers.append)
    return answers[0]


class Rehearsal:
    """One coordinator and shortcuts for what its members do; everything is in one group."""

    def __init__(self, log: MemoryOffsetsLog | None = None, **settings: Any) -> None:
        settings = {"group_initial_rebalance_delay_ms": DELAY_MS} | settings
        self.settings = settings
        self.clock = ManualClock()
        self.timers = Timers(self.clock)
        self.log = log or MemoryOffsetsLog()
        self.rng = random.Random(1)
        self.groups = self._coordinator()
        self.groups.load()

    def held(self) -> set[int]:
        """Return the kinds of records (by key version) that a compacted log would still hold."""
        last = dict(self.log.records)
        return {int.from_bytes(key[:2], "big") for key, value in last.items() if value is not None}

    def _coordinator(self) -> GroupCoordinator:
        config = GroupConfig(**self.settings)
        return GroupCoordinator(config, self.timers, self.rng, self.log)

    def restart(self) -> None:
        """Lose the coordinator as a crash would, and start another one over the same log."""
        self.timers = Timers(self.clock)
        self.groups = self._coordinator()
        self.groups.load()

    def wait(self, delay_ms: float) -> None:
        """Let time pass; every timer fires when it is due."""
        end_ms = self.clock.monotonic_ms() + delay_ms
        while (due_ms := self.timers.next_due_ms()) is not None and due_ms <= end_ms:
            self.clock.advance(max(due_ms - self.clock.monotonic_ms(), 0))
            self.timers.run()
        self.clock.advance(end_ms - self.clock.monotonic_ms())

    @property
    def group(self) -> Group:
        """The group, which must exist."""
        return self.groups.groups[GROUP]

    def state(self) -> GroupState:
        """The state of the group."""
        return self.group.state

    def asked_join(
        self,
        member_id: str = "",
        *,
        instance: str | None = None,
        names: tuple[str, ...] = ("range",),
        topics: tuple[str, ...] = ("t",),
        protocol_type: str = "consumer",
        must_know_member_id: bool = False,
        can_skip_assignment: bool = True,
        session_timeout_ms: int = SESSION_MS,
        rebalance_timeout_ms: int = REBALANCE_MS,
        group_id: str = GROUP,
    ) -> Join:
        """Return a join with everything that a test does not care about filled in."""
        return Join(
            group_id=group_id,
            member_id=member_id,
            group_instance_id=instance,
            protocol_type=protocol_type,
            protocols=protocols(*names, topics=topics),
            session_timeout_ms=session_timeout_ms,
            rebalance_timeout_ms=rebalance_timeout_ms,
            client_id="client",
            client_host="/127.0.0.1",
            must_know_member_id=must_know_member_id,
            can_skip_assignment=can_skip_assignment,
        )

    def join(self, member_id: str = "", **changes: Any) -> Later[Joined]:
        """Send a join; see :meth:`asked_join` for what can be changed."""
        return self.groups.join(self.asked_join(member_id, **changes))

    def sync(
        self, member: Joined, shares: dict[str, bytes] | None = None, **changes: Any
    ) -> Later[Synced]:
        """Send a sync of a member in the generation that it was told."""
        fields: dict[str, Any] = {
            "group_id": GROUP,
            "generation_id": member.generation_id,
            "member_id": member.member_id,
            "assignments": shares or {},
        }
        return self.groups.sync(Sync(**fields | changes))

    def heartbeat(self, member: Joined, instance: str | None = None) -> ErrorCode:
        """Send a heartbeat of a member in the generation that it was told."""
        return self.groups.heartbeat(GROUP, member.member_id, instance, member.generation_id)

    def leave(self, *member_ids: str) -> list[Left]:
        """Send a leave of several members by their ids."""
        error, left = self.groups.leave(GROUP, [MemberIdentity(one) for one in member_ids])
        assert error is ErrorCode.NONE
        return left

    def commit(
        self, *partitions: TopicPartition, offset: int = 7, metadata: str = "", **fields: Any
    ) -> set[ErrorCode]:
        """
        Commit one offset in all these partitions; return the distinct answers.

        With a `retention_ms` it expires so much later.
        """
        now_ms, retention_ms = self.clock.wall_ms(), fields.pop("retention_ms", None)
        expire_ms = -1 if retention_ms is None else now_ms + retention_ms
        committed = CommittedOffset(
            offset, now_ms, metadata=metadata, expire_timestamp_ms=expire_ms
        )
        offsets = dict.fromkeys(partitions or [("t", 0)], committed)
        commit = Commit(fields.pop("group_id", GROUP), offsets, **fields)
        return set(self.groups.commit_offsets(commit).values())

    def fetched(self, partition: TopicPartition = ("t", 0)) -> int | None:
        """Return the offset that the group has in a partition."""
        error, offsets = self.groups.fetch_offsets(GROUP, [partition])
        assert error is ErrorCode.NONE
        committed = offsets[partition]
        return None if committed is None else committed.offset

    def stable(self, count: int = 2, **changes: Any) -> list[Joined]:
        """Bring a new group of dynamic members to stability; the first one leads."""
        joins = [self.join(**changes) for _ in range(count)]
        self.wait(COMPANY_MS)
        members = [answer_to(join) for join in joins]
        shares = {one.member_id: one.member_id.encode() for one in members}
        for number, member in enumerate(members):
            self.sync(member, {} if number else shares)
        assert self.state() is GroupState.STABLE
        return members
