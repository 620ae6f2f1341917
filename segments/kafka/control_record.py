"""
Control records: what the broker itself writes into a partition, first of all transaction markers.

A control batch holds one record a marker. Its key says what it is, its value what there is to
know::

    key    version i16 = 0 | type i16                  0 ABORT, 1 COMMIT, 2.. of KRaft
    value  version i16 = 0 | coordinator epoch i32     of ABORT and COMMIT

Longer keys and values, and newer versions, are read as far as version 0 goes. A marker batch is
transactional, carries the producer's id and epoch, no sequence, and has 78 bytes.

Source: ``ControlRecordType``, ``EndTransactionMarker``.
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import NamedTuple

from logstore.segments.kafka.record import CorruptRecordError, Record, encode_batch

_KEY = struct.Struct(">hh")
_VALUE = struct.Struct(">hi")


class ControlType(IntEnum):
    """What a control record says."""

    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6
    UNKNOWN = -1


class EndTransactionMarker(NamedTuple):
    """The end of a producer's transaction in one partition."""

    type: ControlType
    coordinator_epoch: int

    @property
    def is_abort(self) -> bool:
        """Tell whether the transaction's records are to be left out by read_committed readers."""
        return self.type is ControlType.ABORT


def control_type(record: Record) -> ControlType:
    """Return what a control record says; UNKNOWN for types of the future. Checks the key."""
    if record.key is None or len(record.key) < _KEY.size:
        raise CorruptRecordError("the key of a control record is cut short")
    version, number = _KEY.unpack_from(record.key)
    if version < 0:
        raise CorruptRecordError(f"version {version} of a control record's key")
    try:
        return ControlType(number)
    except ValueError:
        return ControlType.UNKNOWN


def decode_marker(record: Record) -> EndTransactionMarker | None:
    """Return the transaction marker in a control record, None if it is something else."""
    kind = control_type(record)
    if kind not in (ControlType.ABORT, ControlType.COMMIT):
        return None
    if record.value is None or len(record.value) < _VALUE.size:
        raise CorruptRecordError("the value of a transaction marker is cut short")
    version, coordinator_epoch = _VALUE.unpack_from(record.value)
    if version < 0:
        raise CorruptRecordError(f"version {version} of a transaction marker")
    return EndTransactionMarker(kind, coordinator_epoch)


def encode_control(
    kind: ControlType,
    *,
    timestamp_ms: int,
    producer_id: int,
    producer_epoch: int,
    coordinator_epoch: int,
    base_offset: int = 0,
    leader_epoch: int = -1,
) -> bytearray:
    """Return the batch with the COMMIT or ABORT marker of a producer's transaction."""
    assert kind in (ControlType.ABORT, ControlType.COMMIT), f"{kind.name} ends no transaction"
    record = Record(
        offset=base_offset,
        timestamp_ms=timestamp_ms,
        key=_KEY.pack(0, kind),
        value=_VALUE.pack(0, coordinator_epoch),
    )
    return encode_batch(
        [record],
        base_offset=base_offset,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        leader_epoch=leader_epoch,
        is_transactional=True,
        is_control=True,
    )
