"""
Batches of the metadata log and of its snapshots.

Records carry no key and no producer. What KRaft says itself stands in control batches::

    LeaderChange    version i16 | leader i32 | voters | voters that granted | tags
    SnapshotHeader  version i16 | last contained log time i64 | tags
    SnapshotFooter  version i16 | tags

each voter ``i32 | tags``. Their key is that of all control records.

Source: ``LeaderChangeMessage.json``, ``SnapshotHeaderRecord.json``, ``BatchAccumulator``.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from logstore.errors import CorruptFileError
from logstore.segments.kafka.cluster_metadata.records import (
    AnyRecord,
    decode_record,
)
from logstore.segments.kafka.cluster_metadata.wire import WireError
from logstore.segments.kafka.control_record import ControlType
from logstore.segments.kafka.record import (
    CorruptRecordError,
    Record,
    decode_records,
    encode_batch,
)
from logstore.segments.kafka.record_batch import RecordBatch

_CONTROL_KEY = struct.Struct(">hh")
_LEADER = struct.Struct(">hi")
_VOTERS = struct.Struct(">BiB")
_HEADER = struct.Struct(">hqB")
_FOOTER = struct.Struct(">hB")
_NO_TAGS = b"\x00"


class Entry(NamedTuple):
    """A record of the log at its offset. `version` is that of its message."""

    offset: int
    record: AnyRecord
    version: int


def encode_values(
    values: Iterable[bytes], base_offset: int, *, epoch: int, timestamp_ms: int
) -> bytearray:
    """Return the batch of these values, from `base_offset` on."""
    records = [
        Record(offset=base_offset + index, timestamp_ms=timestamp_ms, value=value)
        for index, value in enumerate(values)
    ]
    return encode_batch(records, base_offset=base_offset, leader_epoch=epoch)


def _encode_control(
    kind: ControlType, value: bytes, base_offset: int, *, epoch: int, timestamp_ms: int
) -> bytearray:
    record = Record(
        offset=base_offset,
        timestamp_ms=timestamp_ms,
        key=_CONTROL_KEY.pack(0, kind),
        value=value,
    )
    return encode_batch([record], base_offset=base_offset, leader_epoch=epoch, is_control=True)


def encode_leader_change(
    leader_id: int, base_offset: int, *, epoch: int, timestamp_ms: int
) -> bytearray:
    """Return the batch with which a lone voter says that it leads in `epoch`."""
    voters = _VOTERS.pack(2, leader_id, 0)
    return _encode_control(
        ControlType.LEADER_CHANGE,
        _LEADER.pack(0, leader_id) + voters + voters + _NO_TAGS,
        base_offset,
        epoch=epoch,
        timestamp_ms=timestamp_ms,
    )


def encode_snapshot_header(base_offset: int, *, epoch: int, timestamp_ms: int) -> bytearray:
    """Return the first batch of a snapshot that stands for no log yet."""
    return _encode_control(
        ControlType.SNAPSHOT_HEADER,
        _HEADER.pack(0, 0, 0),
        base_offset,
        epoch=epoch,
        timestamp_ms=timestamp_ms,
    )


def encode_snapshot_footer(base_offset: int, *, epoch: int, timestamp_ms: int) -> bytearray:
    """Return the last batch of a snapshot, without which it is not whole."""
    return _encode_control(
        ControlType.SNAPSHOT_FOOTER,
        _FOOTER.pack(0, 0),
        base_offset,
        epoch=epoch,
        timestamp_ms=timestamp_ms,
    )


def decode_entries(batch: RecordBatch, path: str) -> Iterator[Entry]:
    """
    Yield the metadata records of a batch; a control batch has none.

    Raises:
        CorruptFileError: one of them cannot be read; `path` is where it stands.

    """
    if batch.is_control:
        return
    offset = batch.base_offset
    try:
        for found in decode_records(batch.data):
            offset = found.offset
            if found.value is None:
                raise WireError("a metadata record has no value")
            record, version = decode_record(found.value)
            yield Entry(offset, record, version)
    except (WireError, CorruptRecordError) as error:
        raise CorruptFileError(path, f"offset {offset}: {error}") from error
