"""
Control records as ``DumpLogSegments`` prints them: transaction markers and those of KRaft's logs.

Source: ``DumpLogSegments.printControlRecord``, ``ControlRecordUtils``, the messages' JSON schemas.
"""

from __future__ import annotations

import uuid
from typing import Annotated

import attrs

from logstore.segments.kafka.control_record import ControlType, control_type, decode_marker
from logstore.segments.kafka.internal_topics.codec import decode_message, decode_version
from logstore.segments.kafka.internal_topics.schema import (
    NO_ID,
    Held,
    Int16,
    Int32,
    Int64,
    Message,
    UInt16,
)
from logstore.segments.kafka.record import Record
from logstore.tools.inspection.java_json import json_text, message_node
from logstore.tools.inspection.writer_release import ToolRelease

CONTROL_KEY_BYTES = 4


@attrs.frozen(kw_only=True)
class Voter(Message):
    """A voter by id, and by directory since version 1."""

    voter_id: Int32
    voter_directory_id: Annotated[uuid.UUID, Held(1)] = NO_ID


@attrs.frozen(kw_only=True)
class LeaderChangeMessage(Message):
    """Who leads the metadata quorum from here on."""

    FLEXIBLE_FROM = 0

    version: Int16
    leader_id: Int32
    voters: tuple[Voter, ...]
    granting_voters: tuple[Voter, ...]


@attrs.frozen(kw_only=True)
class SnapshotHeaderRecord(Message):
    """The first record of a snapshot."""

    FLEXIBLE_FROM = 0

    version: Int16
    last_contained_log_timestamp: Int64


@attrs.frozen(kw_only=True)
class SnapshotFooterRecord(Message):
    """The last record of a snapshot."""

    FLEXIBLE_FROM = 0

    version: Int16


@attrs.frozen(kw_only=True)
class KRaftVersionRecord(Message):
    """Which version of KRaft the quorum speaks."""

    FLEXIBLE_FROM = 0

    version: Int16
    k_raft_version: Int16


@attrs.frozen(kw_only=True)
class VoterEndpoint(Message):
    """Where a voter listens."""

    name: str
    host: str
    port: UInt16


@attrs.frozen(kw_only=True)
class KRaftVersionFeature(Message):
    """Which versions of KRaft a voter can speak."""

    min_supported_version: Int16
    max_supported_version: Int16


@attrs.frozen(kw_only=True)
class FullVoter(Message):
    """A voter with all that is known of it."""

    voter_id: Int32
    voter_directory_id: uuid.UUID
    endpoints: tuple[VoterEndpoint, ...]
    k_raft_version_feature: KRaftVersionFeature


@attrs.frozen(kw_only=True)
class VotersRecord(Message):
    """The quorum's voters."""

    FLEXIBLE_FROM = 0

    version: Int16
    voters: tuple[FullVoter, ...]


#: type -> (what stands in front of the JSON, the message)
_MESSAGES: dict[ControlType, tuple[str, type[Message]]] = {
    ControlType.LEADER_CHANGE: ("LeaderChange:", LeaderChangeMessage),
    ControlType.SNAPSHOT_HEADER: ("SnapshotHeader", SnapshotHeaderRecord),
    ControlType.SNAPSHOT_FOOTER: ("SnapshotFooter", SnapshotFooterRecord),
    ControlType.KRAFT_VERSION: ("KRaftVersion", KRaftVersionRecord),
    ControlType.KRAFT_VOTERS: ("KRaftVoters", VotersRecord),
}


def control_fault(record: Record) -> str | None:
    """Return what Kafka says of a version that there is none of, None where that is not it."""
    versions = ((record.key, "control record"), (record.value, "end transaction marker"))
    for data, kind in versions:
        version = int.from_bytes((data or b"")[:2], "big", signed=True)
        if version < 0:
            return f"Invalid version found for {kind}: {version}. May indicate data corruption"
    return None


def control_text(record: Record, release: ToolRelease) -> str:
    """
    Return what stands behind a control record's own fields.

    Raises:
        CorruptRecordError: key or marker cannot be read.
        MessageError: a message cannot be read.

    """
    marker = decode_marker(record)
    if marker is not None:
        return f"endTxnMarker: {marker.type.name} coordinatorEpoch: {marker.coordinator_epoch}"
    kind = control_type(record)
    is_named = kind in _MESSAGES and not (
        kind is ControlType.LEADER_CHANGE and release is ToolRelease.V3_9
    )
    if not is_named:
        number = int.from_bytes((record.key or b"")[2:4], "big", signed=True)
        return f"controlType: {kind.name}({number})"
    name, kind_of_message = _MESSAGES[kind]
    # Kafka's tool reads all of them as version 0, but shows the fields of the version they name.
    message = decode_message(kind_of_message, record.value or b"", 0)
    return f"{name} {json_text(message_node(message, decode_version(record.value or b'')))}"
