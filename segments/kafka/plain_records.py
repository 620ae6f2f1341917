"""Between batches and the plain records that every layout has in common."""

from __future__ import annotations

from collections.abc import Iterable

from logstore.partition import Header
from logstore.partition import Record as PlainRecord
from logstore.segments.kafka.record import Record, decode_records, encode_batch
from logstore.segments.kafka.record_batch import RecordBatch


def to_batch(records: Iterable[PlainRecord]) -> bytearray:
    """Return one batch with the records in order, as a producer would send it."""
    return encode_batch(
        Record(
            offset=index,
            timestamp_ms=record.timestamp_ms,
            key=record.key,
            value=record.value,
            headers=tuple((header.name, header.value) for header in record.headers),
        )
        for index, record in enumerate(records)
    )


def from_batches(
    batches: Iterable[RecordBatch], start_offset: int, count_max: int
) -> list[PlainRecord]:
    """Return up to `count_max` records from `start_offset` on; markers are left out."""
    found: list[PlainRecord] = []
    for batch in batches:
        if batch.is_control:
            continue
        for record in decode_records(batch.data):
            if record.offset < start_offset:
                continue
            headers = tuple(Header(name, value) for name, value in record.headers)
            found.append(
                PlainRecord(record.key, record.value, record.timestamp_ms, headers, record.offset)
            )
            if len(found) == count_max:
                return found
    return found
