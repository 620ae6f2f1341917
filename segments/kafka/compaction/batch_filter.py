"""
What of a batch a compaction keeps: all of it, some of its records, its header alone, or nothing.

================ ==================================================================================
superseded       the map knows a later offset of the same key
tombstone        a key with null value: goes once the delete horizon of its batch is over (KIP-534)
marker           goes once no data of its transaction is left and the batch's horizon is over
aborted          data of an aborted transaction goes at once
header alone     of the last batch of an active producer, and of the last one that was cleaned
================ ==================================================================================

The horizon is set by the first pass that meets a tombstone, or a marker without data: from then
on readers have ``delete.retention.ms`` to see it.

Source: ``Cleaner.cleanInto``, ``MemoryRecords.filterTo``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import attrs

from logstore.segments.kafka.compaction.cleaned_transactions import CleanedTransactions
from logstore.segments.kafka.compaction.record_spans import (
    RecordSpan,
    batch_body,
    emptied_batch,
    find_records,
    rebuilt_batch,
)
from logstore.segments.kafka.compression import Codec
from logstore.segments.kafka.producer_state import ProducerStates
from logstore.segments.kafka.record import Record, TimestampType, decode_records, encode_batch
from logstore.segments.kafka.record_batch import LOG_APPEND_TIME_BIT, MAGIC, RecordBatch


class KeyOffsets(Protocol):
    """What is known of the last offset of each key."""

    latest_offset: int

    def get(self, key: bytes) -> int:
        """Return the last offset of `key`, -1 if it is not known."""
        ...


@attrs.frozen
class LastRecord:
    """The last a log knows of a producer: the last offset of its data, -1 for none; its epoch."""

    data_offset: int
    epoch: int


def last_records(producers: ProducerStates) -> dict[int, LastRecord]:
    """Return by producer id what must stay known (``UnifiedLog.lastRecordsOfActiveProducers``)."""
    return {
        entry.producer_id: LastRecord(entry.recent[-1][2] if entry.recent else -1, entry.epoch)
        for entry in producers
    }


@attrs.frozen
class CleaningRound:
    """
    What holds for one pass over one log.

    Records are judged by `offsets`; the batch that ends at `end_offset` keeps at least its header.
    """

    offsets: KeyOffsets
    last_records: Mapping[int, LastRecord]
    end_offset: int
    now_ms: int
    delete_retention_ms: int


@attrs.define
class Tally:
    """What went in, and what came out."""

    records_read: int = 0
    records_kept: int = 0
    bytes_read: int = 0
    bytes_kept: int = 0
    #: records without a key, which have no place in a compacted log
    keyless_records: int = 0


class BatchFilter:
    """
    Filters the batches of one segment after the other.

    `keeps_old_tombstones` says whether the tombstones of magic 0 and 1, which have no horizon,
    stay in the present segment.
    """

    def __init__(self, cleaning: CleaningRound, transactions: CleanedTransactions) -> None:
        self.cleaning = cleaning
        self.transactions = transactions
        self.keeps_old_tombstones = True
        self.tally = Tally()

    def filtered(self, batch: RecordBatch) -> RecordBatch | None:
        """
        Return what stays of `batch`: itself, a smaller one, or None.

        Raises CorruptRecordError.
        """
        tally = self.tally
        tally.bytes_read += batch.size_bytes
        kept = self._filtered(batch)
        if kept is not None:
            tally.bytes_kept += kept.size_bytes
            tally.records_kept += max(kept.record_count, 0)
        return kept

    def _filtered(self, batch: RecordBatch) -> RecordBatch | None:
        is_discardable = self.transactions.is_discarded(batch)
        is_discarded = is_discardable
        if batch.is_control:
            horizon_ms = batch.delete_horizon_ms
            is_over = horizon_ms is not None and horizon_ms <= self.cleaning.now_ms
            is_discarded = is_discardable and is_over
        must_stay = self.must_stay(batch)
        if batch.magic < MAGIC:
            return self._filtered_legacy(batch, must_stay=must_stay)
        if is_discarded:
            self.tally.records_read += batch.record_count
            return emptied_batch(batch) if must_stay else None
        body = batch_body(batch)
        spans = find_records(batch, body)
        self.tally.records_read += len(spans)
        kept = spans if batch.is_control else self._kept(batch, spans)
        if not kept:
            return emptied_batch(batch) if must_stay else None
        horizon_ms = batch.delete_horizon_ms
        is_marked = horizon_ms is not None
        if not is_marked and (
            (batch.is_control and is_discardable) or any(not span.has_value for span in kept)
        ):
            horizon_ms = self.cleaning.now_ms + self.cleaning.delete_retention_ms
        elif len(kept) == len(spans):
            return batch
        return rebuilt_batch(batch, body, kept, horizon_ms)

    def must_stay(self, batch: RecordBatch) -> bool:
        """Tell whether at least the header of the batch stays."""
        cleaning = self.cleaning
        if batch.next_offset == cleaning.end_offset:
            return True
        last = cleaning.last_records.get(batch.producer_id) if batch.producer_id >= 0 else None
        if last is None:
            return False
        if last.data_offset >= 0:
            return batch.last_offset == last.data_offset
        return batch.is_control and batch.producer_epoch == last.epoch

    def _kept(self, batch: RecordBatch, spans: list[RecordSpan]) -> list[RecordSpan]:
        """Return the records that stay (``Cleaner.shouldRetainRecord``)."""
        cleaning = self.cleaning
        horizon_ms = batch.delete_horizon_ms
        keeps_tombstones = horizon_ms is None or cleaning.now_ms < horizon_ms
        latest_offset, last_offset_of = cleaning.offsets.latest_offset, cleaning.offsets.get
        if batch.base_offset > latest_offset:
            return spans
        kept: list[RecordSpan] = []
        for span in spans:
            offset, key = span.offset, span.key
            if offset > latest_offset:
                kept.append(span)
            elif key is None:
                self.tally.keyless_records += 1
            elif offset >= last_offset_of(key) and (span.has_value or keeps_tombstones):
                kept.append(span)
        return kept

    def _filtered_legacy(self, batch: RecordBatch, *, must_stay: bool) -> RecordBatch | None:
        """Return the batch of magic 2 that a message, or the messages in a wrapper, become."""
        records = decode_records(batch.data)
        self.tally.records_read += len(records)
        kept = [record for record in records if self._keeps_legacy(record)]
        if kept:
            data = encode_batch(
                kept,
                base_offset=kept[0].offset,
                codec=Codec(batch.codec),
                timestamp_type=_timestamp_type(batch),
                max_timestamp_ms=batch.max_timestamp_ms if batch.is_log_append_time else None,
            )
        elif must_stay:  # Kafka gives up here; an empty batch keeps the end known as well
            data = encode_batch([], base_offset=batch.last_offset, last_offset=batch.last_offset)
        else:
            return None
        return RecordBatch(data, len(data))

    def _keeps_legacy(self, record: Record) -> bool:
        offsets = self.cleaning.offsets
        if record.offset > offsets.latest_offset:
            return True
        if record.key is None:
            self.tally.keyless_records += 1
            return False
        has_value = record.value is not None or self.keeps_old_tombstones
        return has_value and record.offset >= offsets.get(record.key)


def _timestamp_type(batch: RecordBatch) -> TimestampType:
    is_append_time = batch.attributes & LOG_APPEND_TIME_BIT
    return TimestampType.LOG_APPEND_TIME if is_append_time else TimestampType.CREATE_TIME
