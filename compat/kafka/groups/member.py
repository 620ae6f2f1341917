"""One member of a group."""

from __future__ import annotations

from collections.abc import Set

import attrs

from logstore.compat.kafka.groups.exchange import (
    DescribedMember,
    GroupProtocol,
    Joined,
    JoinedMember,
    Synced,
)
from logstore.compat.kafka.groups.offsets_log import MemberMetadata
from logstore.compat.waiting import Later, Timer


@attrs.define(eq=False)
class Member:
    """
    Who takes part, what it can do, and which of its requests still waits.

    Source: ``ClassicGroupMember``.
    """

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    #: what it can follow, favourite first; after a restart only what the group had chosen
    protocols: tuple[GroupProtocol, ...]
    assignment: bytes = b""
    #: it has not been in any generation yet, so it cannot send heartbeats
    is_new: bool = False
    awaiting_join: Later[Joined] | None = None
    awaiting_sync: Later[Synced] | None = None
    #: by when a sign of life must come, on the monotonic clock; the timer may fire before
    session_end_ms: float = 0
    session_timer: Timer | None = None

    @property
    def is_static(self) -> bool:
        """Tell whether it keeps its place over restarts."""
        return self.group_instance_id is not None

    @property
    def is_excused(self) -> bool:
        """
        Tell whether no heartbeat is expected: it waits for the others.

        New members are not excused: a client that gave up and joined once more would otherwise
        leave its first self behind for good.
        """
        is_waiting = self.awaiting_join is not None or self.awaiting_sync is not None
        return is_waiting and not self.is_new

    def metadata_for(self, protocol_name: str) -> bytes:
        """Return what it says about itself under a protocol that it supports."""
        for protocol in self.protocols:
            if protocol.name == protocol_name:
                return protocol.metadata
        raise AssertionError(f"member {self.member_id} does not support {protocol_name!r}")

    def vote(self, candidates: Set[str]) -> str:
        """Return its favourite among the protocols that all support."""
        for protocol in self.protocols:
            if protocol.name in candidates:
                return protocol.name
        raise AssertionError(f"member {self.member_id} supports none of {sorted(candidates)}")

    def joined(self, protocol_name: str) -> JoinedMember:
        """Return what the leader is told about it."""
        metadata = self.metadata_for(protocol_name)
        return JoinedMember(self.member_id, self.group_instance_id, metadata)

    def described(self, protocol_name: str | None) -> DescribedMember:
        """Return what administrators see; metadata only if a protocol is chosen."""
        return DescribedMember(
            member_id=self.member_id,
            group_instance_id=self.group_instance_id,
            client_id=self.client_id,
            client_host=self.client_host,
            metadata=b"" if protocol_name is None else self.metadata_for(protocol_name),
            assignment=self.assignment,
        )

    def kept(self, protocol_name: str, assignment: bytes) -> MemberMetadata:
        """Return what of it goes to disk."""
        return MemberMetadata(
            member_id=self.member_id,
            group_instance_id=self.group_instance_id,
            client_id=self.client_id,
            client_host=self.client_host,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            session_timeout_ms=self.session_timeout_ms,
            subscription=self.metadata_for(protocol_name),
            assignment=assignment,
        )

    @classmethod
    def restored(cls, kept: MemberMetadata, protocol_name: str) -> Member:
        """Return a member as it was kept. Version 0 had one timeout for both purposes."""
        timeout_ms = kept.rebalance_timeout_ms
        return cls(
            member_id=kept.member_id,
            group_instance_id=kept.group_instance_id,
            client_id=kept.client_id,
            client_host=kept.client_host,
            session_timeout_ms=kept.session_timeout_ms,
            rebalance_timeout_ms=kept.session_timeout_ms if timeout_ms == -1 else timeout_ms,
            protocols=(GroupProtocol(protocol_name, kept.subscription),),
            assignment=kept.assignment,
        )
