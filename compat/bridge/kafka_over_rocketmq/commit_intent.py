"""
What is written among the held records of a queue right before a transaction's go into it.

A record batch that belongs to no producer, with one record without a key. Its value::

    producer id i64 | epoch of the marker i16 | coordinator epoch i32 | end of the queue i64

So a start after a crash knows that the transaction is to be committed, and from which queue offset
on its messages may be found.
"""

from __future__ import annotations

import struct

import attrs

from logstore.segments.kafka.record import Record, decode_records, encode_batch
from logstore.segments.kafka.record_batch import RecordBatch

_VALUE = struct.Struct(">qhiq")


@attrs.frozen
class CommitIntent:
    """A commit that has begun; `queue_offset` is where the queue ended."""

    producer_id: int
    epoch: int
    coordinator_epoch: int
    queue_offset: int

    def encoded(self, now_ms: int) -> bytearray:
        """Return the batch."""
        value = _VALUE.pack(*attrs.astuple(self))
        return encode_batch([Record(offset=0, timestamp_ms=now_ms, key=None, value=value)])


def intent_of(batch: RecordBatch) -> CommitIntent | None:
    """Return the intent that a batch is; None if it is a producer's, or a marker."""
    if batch.producer_id >= 0 or batch.is_transactional:
        return None
    (record,) = decode_records(batch.data)
    return CommitIntent(*_VALUE.unpack(record.value or b""))
