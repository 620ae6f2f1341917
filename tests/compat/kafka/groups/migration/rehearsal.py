"""Groups in which both protocols meet on a stage: consumers of the classic one that know topics."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.groups.exchange import (
    NO_GENERATION,
    GroupProtocol,
    Join,
    Joined,
    Left,
    MemberIdentity,
    Sync,
    Synced,
)
from logstore.compat.kafka.groups.states import GroupState
from logstore.segments.kafka.internal_topics.codec import decode_versioned, encode_versioned
from logstore.segments.kafka.internal_topics.consumer_protocol import (
    ConsumerPartitions,
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)
from tests.compat.kafka.groups.consumer.rehearsal import Consumer, ConsumerRehearsal
from tests.compat.kafka.groups.rehearsal import (
    COMPANY_MS,
    GROUP,
    REBALANCE_MS,
    SESSION_MS,
)

REBALANCING = ErrorCode.REBALANCE_IN_PROGRESS
TOPIC = "t"


def entries(indexes: Collection[int], topic: str = TOPIC) -> tuple[ConsumerPartitions, ...]:
    """Return partitions of one topic as the consumers' protocol has them."""
    if not indexes:
        return ()
    return (ConsumerPartitions(topic=topic, partitions=tuple(sorted(indexes))),)


def subscription(
    *topics: str, owned: Collection[int] = (), rack: str | None = None, version: int = 3
) -> bytes:
    """Return what a consumer says about itself."""
    message = ConsumerProtocolSubscription(
        topics=topics, owned_partitions=entries(owned), rack_id=rack
    )
    return encode_versioned(message, version)


def assignment(
    indexes: Collection[int], topic: str = TOPIC, user_data: bytes | None = None
) -> bytes:
    """Return what a leader gives a consumer."""
    message = ConsumerProtocolAssignment(
        assigned_partitions=entries(indexes, topic), user_data=user_data
    )
    return encode_versioned(message, 3)


class ClassicConsumer:
    """A well-behaved consumer of the classic protocol; a cooperative one keeps what it has."""

    def __init__(self, stage: MigrationRehearsal, **changes: Any) -> None:
        self.stage = stage
        self.topics: tuple[str, ...] = (TOPIC,)
        self.instance: str | None = None
        self.names: tuple[str, ...] = ("range",)
        self.is_cooperative = False
        self.member_id = ""
        self.generation = NO_GENERATION
        self.owned: set[int] = set()
        #: what it was answered
        self.joins: list[Joined] = []
        self.syncs: list[Synced] = []
        vars(self).update(changes)

    def asked(self, **changes: Any) -> Join:
        """Return its next join."""
        owned = self.owned if self.is_cooperative else ()
        fields: dict[str, Any] = {
            "group_id": GROUP,
            "member_id": self.member_id,
            "group_instance_id": self.instance,
            "protocol_type": "consumer",
            "protocols": tuple(
                GroupProtocol(name, subscription(*self.topics, owned=owned)) for name in self.names
            ),
            "session_timeout_ms": SESSION_MS,
            "rebalance_timeout_ms": REBALANCE_MS,
            "client_id": "client",
            "client_host": "/127.0.0.1",
            "must_know_member_id": False,
        }
        return Join(**fields | changes)

    def send_join(self, **changes: Any) -> None:
        """Ask to join, and take what comes for its own."""
        if not self.is_cooperative:
            self.owned = set()
        self.stage.groups.join(self.asked(**changes)).then(self._take)

    def join(self, **changes: Any) -> Joined:
        """Join a group that answers at once."""
        count = len(self.joins)
        self.send_join(**changes)
        assert len(self.joins) == count + 1, "not answered yet"
        return self.joins[-1]

    def _take(self, joined: Joined) -> None:
        self.joins.append(joined)
        if joined.error_code is ErrorCode.NONE:
            self.member_id, self.generation = joined.member_id, joined.generation_id

    def send_sync(self, shares: dict[str, bytes] | None = None, **changes: Any) -> None:
        """Ask for what it shall have."""
        fields: dict[str, Any] = {
            "group_id": GROUP,
            "generation_id": self.generation,
            "member_id": self.member_id,
            "group_instance_id": self.instance,
            "protocol_type": "consumer",
            "protocol_name": self.names[0],
            "assignments": shares or {},
        }
        self.stage.groups.sync(Sync(**fields | changes)).then(self._use)

    def sync(self, **changes: Any) -> Synced:
        """Ask for what it shall have, and use it; answered at once."""
        count = len(self.syncs)
        self.send_sync(**changes)
        assert len(self.syncs) == count + 1, "not answered yet"
        return self.syncs[-1]

    def _use(self, synced: Synced) -> None:
        self.syncs.append(synced)
        if synced.error_code is ErrorCode.NONE:
            given = decode_versioned(ConsumerProtocolAssignment, synced.assignment)[1]
            self.owned = {index for one in given.assigned_partitions for index in one.partitions}

    def beat(self) -> ErrorCode:
        """Say that it lives."""
        return self.stage.groups.heartbeat(GROUP, self.member_id, self.instance, self.generation)

    def go_on(self) -> ErrorCode:
        """Say that it lives, and join again if it is told to."""
        told = self.beat()
        if told is REBALANCING:
            self.join()
            self.sync()
        return told

    def leave(self) -> Left:
        """Leave for good."""
        identity = MemberIdentity(self.member_id, self.instance)
        error, (left,) = self.stage.groups.leave(GROUP, [identity])
        assert error is ErrorCode.NONE
        return left


class MigrationRehearsal(ConsumerRehearsal):
    """One coordinator; classic groups in it are shared out over the topic ``t``."""

    def classic(self, *shares: Collection[int], **changes: Any) -> list[ClassicConsumer]:
        """Bring a classic group to stability, one member with each of these partitions."""
        members = [ClassicConsumer(self, **changes) for _ in shares]
        self.share_out(members, shares)
        return members

    def share_out(
        self, members: Sequence[ClassicConsumer], shares: Sequence[Collection[int]]
    ) -> None:
        """Let members join a classic group; the leader gives each its share."""
        for member in members:
            member.send_join()
        self.wait(COMPANY_MS)
        given = {
            member.member_id: assignment(share)
            for member, share in zip(members, shares, strict=True)
        }
        leader_id = self.group.roster.leader_id
        for member in sorted(members, key=lambda one: one.member_id != leader_id):
            member.send_sync(given if member.member_id == leader_id else None)
        assert self.state() is GroupState.STABLE

    def calm(self, *members: ClassicConsumer | Consumer) -> None:
        """Let members of either protocol speak until nothing changes any more."""
        for _ in range(20):
            before = [(vars(one).get("generation"), set(one.owned)) for one in members]
            told = [
                one.go_on() if isinstance(one, ClassicConsumer) else one.beat().error_code
                for one in members
            ]
            after = [(vars(one).get("generation"), set(one.owned)) for one in members]
            if before == after and set(told) == {ErrorCode.NONE}:
                return
        raise AssertionError("the group does not come to rest")
