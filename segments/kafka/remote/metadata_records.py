"""
The records of Kafka's own metadata topic of tiered segments, ``__remote_log_metadata``.

A value is: frame version uv = 1 | api key uv | version uv = 0 | the message, in the compact form of
flexible versions (*uv* unsigned varint, a string or array with its length + 1 before it, tagged
fields at the end)::

    key 0   a segment   topic, topic id, partition, tags | segment id, tags | start i64 | end i64 |
                        broker i32 | largest timestamp i64 | time i64 | epochs [epoch i32,
                        offset i64, tags] | size i32 | custom metadata, or null | state i8 | tags
                        (0: transaction index is empty)
    key 1   an update   topic, ... segment id, tags | broker i32 | time i64 | custom metadata |
                        state i8 | tags
    key 2   a deletion  of a partition; key 3 is not written to the topic

Source: ``RemoteLogMetadataSerde``, ``RemoteLogSegmentMetadataRecord.json``.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

import attrs

from logstore.errors import LogStoreError
from logstore.segments.kafka.remote.object_names import RemotePartition, SegmentId
from logstore.segments.kafka.remote.segment_metadata import SegmentMetadata, SegmentState
from logstore.segments.kafka.varint import (
    VarintError,
    decode_unsigned_varint,
    encode_unsigned_varint,
)

TOPIC = "__remote_log_metadata"

_FRAME = b"\x01"
_SEGMENT, _UPDATE = 0, 1
_TXN_INDEX_EMPTY_TAG = 0


class MetadataRecordError(LogStoreError):
    """A value of the metadata topic cannot be read."""


@attrs.frozen
class SegmentUpdate:
    """A change of a segment's state."""

    partition: RemotePartition
    segment_uuid: bytes
    broker_id: int
    event_timestamp_ms: int
    custom_metadata: bytes | None
    state: SegmentState


def encode_metadata(metadata: SegmentMetadata) -> bytes:
    """Return the value that Kafka writes for a segment."""
    epochs = metadata.leader_epochs
    tags = b"\x01\x00\x01\x01" if metadata.is_transaction_index_empty else b"\x00"
    return b"".join(
        (
            _FRAME,
            encode_unsigned_varint(_SEGMENT),
            b"\x00",
            _encode_segment_id(metadata.partition, metadata.segment.uuid),
            struct.pack(
                ">qqiqq",
                metadata.start_offset,
                metadata.end_offset,
                metadata.broker_id,
                metadata.max_timestamp_ms,
                metadata.event_timestamp_ms,
            ),
            encode_unsigned_varint(len(epochs) + 1),
            *(struct.pack(">iqx", epoch, offset) for epoch, offset in epochs),
            struct.pack(">i", metadata.size_bytes),
            _encode_bytes(metadata.custom_metadata),
            struct.pack(">b", metadata.state),
            tags,
        )
    )


def encode_update(update: SegmentUpdate) -> bytes:
    """Return the value that Kafka writes for a change of state."""
    return b"".join(
        (
            _FRAME,
            encode_unsigned_varint(_UPDATE),
            b"\x00",
            _encode_segment_id(update.partition, update.segment_uuid),
            struct.pack(">iq", update.broker_id, update.event_timestamp_ms),
            _encode_bytes(update.custom_metadata),
            struct.pack(">b", update.state),
            b"\x00",
        )
    )


def decode_value(value: bytes) -> SegmentMetadata | SegmentUpdate | None:
    """
    Return what a value says, None for kinds that tell nothing of a single segment.

    Raises:
        MetadataRecordError: it is cut short or of another version.

    """
    reader = _Reader(value)
    try:
        frame, key, version = reader.unsigned(), reader.unsigned(), reader.unsigned()
        if frame != _FRAME[0]:
            raise MetadataRecordError(f"frame version {frame}, expected {_FRAME[0]}")
        if key > _UPDATE:
            return None
        if version:
            raise MetadataRecordError(f"version {version} of record {key} is not known")
        return reader.segment() if key == _SEGMENT else reader.update()
    except (struct.error, VarintError, ValueError) as error:
        raise MetadataRecordError(f"at byte {reader.position}: {error}") from None


def fold(values: Iterable[bytes]) -> list[SegmentMetadata]:
    """Return the segments that are readable when all values, in order, have had their effect."""
    found: dict[bytes, SegmentMetadata] = {}
    for value in values:
        said = decode_value(value)
        if isinstance(said, SegmentMetadata):
            found[said.segment.uuid] = said
        elif said is not None and said.segment_uuid in found:
            found[said.segment_uuid] = attrs.evolve(
                found[said.segment_uuid],
                state=said.state,
                broker_id=said.broker_id,
                event_timestamp_ms=said.event_timestamp_ms,
                custom_metadata=said.custom_metadata,
            )
    return [metadata for metadata in found.values() if metadata.is_readable]


def _encode_segment_id(partition: RemotePartition, uuid: bytes) -> bytes:
    name = partition.topic.encode()
    return b"".join(
        (
            encode_unsigned_varint(len(name) + 1),
            name,
            partition.topic_id,
            struct.pack(">ix", partition.partition),
            uuid,
            b"\x00",
        )
    )


def _encode_bytes(data: bytes | None) -> bytes:
    return b"\x00" if data is None else encode_unsigned_varint(len(data) + 1) + data


class _Reader:
    """Reads one value front to back."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.position = 0

    def segment(self) -> SegmentMetadata:
        partition, uuid = self._segment_id()
        start_offset, end_offset, broker_id, max_timestamp_ms, time_ms = self._take(">qqiqq")
        epochs: list[tuple[int, int]] = []
        for _ in range(self.unsigned() - 1):
            epoch, offset = self._take(">iq")
            self._tags()
            epochs.append((epoch, offset))
        (size_bytes,) = self._take(">i")
        custom_metadata = self._nullable_bytes()
        (state,) = self._take(">b")
        tags = self._tags()
        return SegmentMetadata(
            partition=partition,
            segment=SegmentId(start_offset, uuid),
            end_offset=end_offset,
            max_timestamp_ms=max_timestamp_ms,
            size_bytes=size_bytes,
            leader_epochs=tuple(sorted(epochs)),
            state=SegmentState(state),
            broker_id=broker_id,
            event_timestamp_ms=time_ms,
            is_transaction_index_empty=tags.get(_TXN_INDEX_EMPTY_TAG) == b"\x01",
            custom_metadata=custom_metadata,
        )

    def update(self) -> SegmentUpdate:
        partition, uuid = self._segment_id()
        broker_id, time_ms = self._take(">iq")
        custom_metadata = self._nullable_bytes()
        (state,) = self._take(">b")
        self._tags()
        return SegmentUpdate(
            partition, uuid, broker_id, time_ms, custom_metadata, SegmentState(state)
        )

    def unsigned(self) -> int:
        value, self.position = decode_unsigned_varint(self._data, self.position)
        return value

    def _segment_id(self) -> tuple[RemotePartition, bytes]:
        topic = self._bytes(self.unsigned() - 1).decode()
        topic_id = self._bytes(16)
        (partition,) = self._take(">i")
        self._tags()
        uuid = self._bytes(16)
        self._tags()
        return RemotePartition(topic, partition, topic_id), uuid

    def _nullable_bytes(self) -> bytes | None:
        size_bytes = self.unsigned() - 1
        return None if size_bytes < 0 else self._bytes(size_bytes)

    def _tags(self) -> dict[int, bytes]:
        found: dict[int, bytes] = {}
        for _ in range(self.unsigned()):
            tag = self.unsigned()
            found[tag] = self._bytes(self.unsigned())
        return found

    def _take(self, form: str) -> tuple[int, ...]:
        fields: tuple[int, ...] = struct.unpack_from(form, self._data, self.position)
        self.position += struct.calcsize(form)
        return fields

    def _bytes(self, size_bytes: int) -> bytes:
        data = self._data[self.position : self.position + size_bytes]
        if size_bytes < 0 or len(data) < size_bytes:
            raise ValueError(f"{size_bytes} bytes are asked for, {len(data)} are left")
        self.position += size_bytes
        return data
