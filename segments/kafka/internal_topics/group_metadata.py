"""
Classic groups: records of type 2 in ``__consumer_offsets``.

A group is written after each rebalance, with its members, and when it has lost them all. Releases
since 2.3 write version 3.

Source: ``GroupMetadataKey.json``, ``GroupMetadataValue.json``.
"""

from __future__ import annotations

from typing import Annotated

import attrs

from logstore.segments.kafka.internal_topics.schema import Held, Int32, Int64, Message


@attrs.frozen(kw_only=True)
class GroupMetadataKey(Message):
    """Which group."""

    group: str


@attrs.frozen(kw_only=True)
class MemberMetadata(Message):
    """A member: `subscription` is what it sent for the chosen protocol."""

    member_id: str
    group_instance_id: Annotated[str | None, Held(3, is_ignorable=True)] = None
    client_id: str
    client_host: str
    rebalance_timeout: Annotated[Int32, Held(1, is_ignorable=True)] = -1
    session_timeout: Int32
    subscription: bytes
    assignment: bytes


@attrs.frozen(kw_only=True)
class GroupMetadataValue(Message):
    """A generation of a group."""

    VERSIONS = range(5)
    FLEXIBLE_FROM = 4

    protocol_type: str
    generation: Int32
    protocol: str | None
    leader: str | None
    current_state_timestamp: Annotated[Int64, Held(2, is_ignorable=True)] = -1
    members: tuple[MemberMetadata, ...]
