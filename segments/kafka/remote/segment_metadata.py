"""
What is known of one tiered segment: KIP-405's ``RemoteLogSegmentMetadata``, and its files' sums.

Kept as JSON beside the objects, one file a segment: first as COPY_SEGMENT_STARTED, then, when all
objects are there, as COPY_SEGMENT_FINISHED. Only then does the segment count; what is left of a
copy that was cut short is known by its state.

Source: ``RemoteLogSegmentMetadata``, ``RemoteLogSegmentState``.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Mapping
from enum import IntEnum
from typing import Any

import attrs

from logstore.errors import CorruptFileError
from logstore.segments.kafka.kafka_uuid import uuid_from_text, uuid_to_text
from logstore.segments.kafka.remote.object_names import ObjectKind, RemotePartition, SegmentId

_VERSION = 1
NO_BROKER = -1


class SegmentState(IntEnum):
    """Where a tiered segment is in its life."""

    COPY_SEGMENT_STARTED = 0
    COPY_SEGMENT_FINISHED = 1
    DELETE_SEGMENT_STARTED = 2
    DELETE_SEGMENT_FINISHED = 3


@attrs.frozen
class ObjectSum:
    """Length and CRC-32C of one object."""

    size_bytes: int
    crc32c: int


@attrs.frozen
class SegmentMetadata:
    """
    One tiered segment.

    `end_offset` is the last offset that it covers. `leader_epochs` are (epoch, start offset) of
    the epochs in it, the first from the segment's start on. `sums` are there of what we copied
    ourselves; Kafka keeps none.
    """

    partition: RemotePartition
    segment: SegmentId
    end_offset: int
    max_timestamp_ms: int
    size_bytes: int
    leader_epochs: tuple[tuple[int, int], ...]
    state: SegmentState = SegmentState.COPY_SEGMENT_FINISHED
    broker_id: int = NO_BROKER
    event_timestamp_ms: int = -1
    is_transaction_index_empty: bool = False
    custom_metadata: bytes | None = None
    sums: Mapping[ObjectKind, ObjectSum] = attrs.field(factory=dict[ObjectKind, ObjectSum])

    @property
    def start_offset(self) -> int:
        """The first offset that the segment covers."""
        return self.segment.start_offset

    @property
    def next_offset(self) -> int:
        """The offset behind the segment."""
        return self.end_offset + 1

    @property
    def is_readable(self) -> bool:
        """Tell whether all of it was copied and nothing removed."""
        return self.state is SegmentState.COPY_SEGMENT_FINISHED

    def to_json(self) -> bytes:
        """Return the text of a manifest."""
        custom = self.custom_metadata
        content = {
            "version": _VERSION,
            "topic": self.partition.topic,
            "partition": self.partition.partition,
            "topic_id": uuid_to_text(self.partition.topic_id),
            "segment_id": uuid_to_text(self.segment.uuid),
            "start_offset": self.start_offset,
            "end_offset": self.end_offset,
            "max_timestamp_ms": self.max_timestamp_ms,
            "size_bytes": self.size_bytes,
            "leader_epochs": [list(entry) for entry in self.leader_epochs],
            "state": self.state.name,
            "broker_id": self.broker_id,
            "event_timestamp_ms": self.event_timestamp_ms,
            "is_transaction_index_empty": self.is_transaction_index_empty,
            "custom_metadata": None if custom is None else b64encode(custom).decode(),
            "objects": {
                kind.value: {"size_bytes": found.size_bytes, "crc32c": f"{found.crc32c:#010x}"}
                for kind, found in self.sums.items()
            },
        }
        return (json.dumps(content, indent=1) + "\n").encode()

    @classmethod
    def from_json(cls, data: bytes, path: str) -> SegmentMetadata:
        """Return what a manifest says. Raises CorruptFileError, which names `path`."""
        try:
            content: Any = json.loads(data)
            if content["version"] != _VERSION:
                raise CorruptFileError(
                    path, f"version {content['version']!r}, this program reads {_VERSION}"
                )
            found = _from_content(content)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise CorruptFileError(path, f"is no manifest: {error!r}") from None
        if not 0 <= found.start_offset <= found.end_offset:
            raise CorruptFileError(
                path, f"says that the segment ends at {found.end_offset}, before it starts"
            )
        return found


def _from_content(content: Any) -> SegmentMetadata:
    topic_id, uuid = uuid_from_text(content["topic_id"]), uuid_from_text(content["segment_id"])
    custom: str | None = content["custom_metadata"]
    return SegmentMetadata(
        partition=RemotePartition(str(content["topic"]), int(content["partition"]), topic_id),
        segment=SegmentId(int(content["start_offset"]), uuid),
        end_offset=int(content["end_offset"]),
        max_timestamp_ms=int(content["max_timestamp_ms"]),
        size_bytes=int(content["size_bytes"]),
        leader_epochs=tuple(
            (int(epoch), int(offset)) for epoch, offset in content["leader_epochs"]
        ),
        state=SegmentState[content["state"]],
        broker_id=int(content["broker_id"]),
        event_timestamp_ms=int(content["event_timestamp_ms"]),
        is_transaction_index_empty=bool(content["is_transaction_index_empty"]),
        custom_metadata=None if custom is None else b64decode(custom, validate=True),
        sums={
            ObjectKind(name): ObjectSum(int(one["size_bytes"]), int(one["crc32c"], 16))
            for name, one in content["objects"].items()
        },
    )
