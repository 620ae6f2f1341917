"""
The messages about which brokers and voters there are, APIs 64, 80 and 81.

The library that has the other messages does not know these. Source: ``UnregisterBroker*.json``,
``*RaftVoter*.json``.
"""

from __future__ import annotations

import uuid
from typing import Annotated

import attrs

from logstore.segments.kafka.internal_topics.schema import Held, Int8, Int16, Int32, Message, UInt16


@attrs.frozen(kw_only=True)
class UnregisterBrokerRequest(Message):
    """Which broker is gone for good."""

    FLEXIBLE_FROM = 0

    broker_id: Int32


@attrs.frozen(kw_only=True)
class OutcomeResponse(Message):
    """What became of a request that asks for one thing."""

    VERSIONS = range(2)
    FLEXIBLE_FROM = 0

    throttle_time_ms: Int32 = 0
    error_code: Int16
    error_message: str | None = None


@attrs.frozen(kw_only=True)
class VoterListener(Message):
    """Where a voter is."""

    name: str
    host: str
    port: UInt16


@attrs.frozen(kw_only=True)
class AddRaftVoterRequest(Message):
    """Who shall vote, too."""

    VERSIONS = range(2)
    FLEXIBLE_FROM = 0

    cluster_id: str | None
    timeout_ms: Int32
    voter_id: Int32
    voter_directory_id: uuid.UUID
    listeners: tuple[VoterListener, ...]
    ack_when_committed: Annotated[Int8, Held(1)] = 1


@attrs.frozen(kw_only=True)
class RemoveRaftVoterRequest(Message):
    """Who shall vote no more."""

    FLEXIBLE_FROM = 0

    cluster_id: str | None
    voter_id: Int32
    voter_directory_id: uuid.UUID
