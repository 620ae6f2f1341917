"""
What classic consumers tell each other in a group: subscription and assignment.

The broker keeps them unread in a group's record, version in front; tools may look into them.

Source: ``ConsumerProtocolSubscription.json``, ``ConsumerProtocolAssignment.json``.
"""

from __future__ import annotations

from typing import Annotated

import attrs

from logstore.segments.kafka.internal_topics.schema import Held, Int32, Message

#: the protocol type of groups whose members speak so
PROTOCOL_TYPE = "consumer"


@attrs.frozen(kw_only=True)
class ConsumerPartitions(Message):
    """Partitions of one topic."""

    topic: str
    partitions: tuple[Int32, ...]


@attrs.frozen(kw_only=True)
class ConsumerProtocolSubscription(Message):
    """What a member wants, and what it has had so far."""

    VERSIONS = range(4)

    topics: tuple[str, ...]
    user_data: bytes | None = None
    owned_partitions: Annotated[tuple[ConsumerPartitions, ...], Held(1, is_ignorable=True)] = ()
    generation_id: Annotated[Int32, Held(2, is_ignorable=True)] = -1
    rack_id: Annotated[str | None, Held(3, is_ignorable=True)] = None


@attrs.frozen(kw_only=True)
class ConsumerProtocolAssignment(Message):
    """What the leader gives a member."""

    VERSIONS = range(4)

    assigned_partitions: tuple[ConsumerPartitions, ...]
    user_data: bytes | None = None
