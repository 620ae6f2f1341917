"""
The reading side of a Kafka partition: by offset, by time, and without aborted transactions.

A read_committed reader stops at the last stable offset, where the oldest open transaction starts.
Below it every transaction is decided; which were aborted the transaction indexes say.

Source: ``LocalLog.read``, ``addAbortedTransactions``, ``UnifiedLog.collectAbortedTransactions``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from logstore.errors import OffsetOutOfRangeError
from logstore.partition import Record as PlainRecord
from logstore.segment import Extent
from logstore.segmented_log import SegmentedLog
from logstore.segments.kafka.plain_records import from_batches
from logstore.segments.kafka.producer_state import ProducerEntry, ProducerStates
from logstore.segments.kafka.record_batch import RecordBatch
from logstore.segments.kafka.segment import KafkaSegment
from logstore.segments.kafka.time_index import TimestampedOffset
from logstore.segments.kafka.transaction_index import AbortedTransaction
from logstore.span import Span


class CommittedRead(NamedTuple):
    """
    What a read_committed fetch gets: stored bytes, and which transactions in them to skip.

    A reader skips a producer's transactional batches from `first_offset` of an aborted transaction
    up to that producer's next ABORT marker.
    """

    extent: Extent | None
    aborted: list[AbortedTransaction]


class ReadablePartition:
    """What can be asked of an open log; :class:`~logstore.segments.kafka.partition` fills it."""

    #: whether what is read has the batches of whoever produced it
    keeps_batches = True

    log: SegmentedLog[RecordBatch, KafkaSegment]
    producers: ProducerStates
    start_offset: int

    @property
    def end_offset(self) -> int:
        """Offset that the next record gets (log end offset; high watermark of a lone replica)."""
        return self.log.active.next_offset

    @property
    def last_stable_offset(self) -> int:
        """Where a read_committed reader must stop; never below the log start."""
        end_offset = self.end_offset
        first_unstable = self.producers.first_unstable_offset(end_offset)
        if first_unstable == end_offset:
            return end_offset
        return min(max(first_unstable, self.start_offset), end_offset)

    @property
    def span(self) -> Span:
        """The offsets that can be read."""
        return Span(self.start_offset, self.end_offset)

    @property
    def size_bytes(self) -> int:
        """Bytes that the batches take."""
        return self.log.size_bytes

    @property
    def flush_position(self) -> int:
        """What a flush must have reached to cover all that was appended so far."""
        return self.end_offset

    # producers

    def known_producers(self) -> list[ProducerEntry]:
        """Return what is known of every producer."""
        return list(self.producers)

    def expire_producers(self, now_ms: int, expiration_ms: int) -> None:
        """Forget the producers that have been silent for too long."""
        self.producers.expire(now_ms, expiration_ms)

    # stored bytes

    def read(
        self,
        offset: int,
        size_bytes_max: int,
        *,
        end_offset: int | None = None,
        is_first_whole: bool = True,
    ) -> Extent | None:
        """
        Return stored bytes from the batch that holds `offset` on; None where there are none yet.

        They may start below `offset` and end inside a batch, as in Kafka. `end_offset` (a batch
        boundary, such as the last stable offset) is where they stop.

        Raises:
            OffsetOutOfRangeError: below the log start or above the log end.

        """
        end = self.end_offset if end_offset is None else min(end_offset, self.end_offset)
        found = self._read(offset, end, size_bytes_max, is_first_whole=is_first_whole)
        return None if found is None else found[1]

    def read_committed(
        self, offset: int, size_bytes_max: int, *, is_first_whole: bool = True
    ) -> CommittedRead:
        """
        Return stored bytes as :meth:`read` does, up to the last stable offset.

        With them come the aborted transactions that reach into them; as in Kafka, those up to the
        next entry of the offset index behind the bytes.

        Raises:
            OffsetOutOfRangeError: below the log start or above the log end.

        """
        end = self.last_stable_offset
        found = self._read(offset, end, size_bytes_max, is_first_whole=is_first_whole)
        if found is None:
            return CommittedRead(None, [])
        segment, extent = found
        behind = segment.offset_index.first_from_position(extent.position + extent.size_bytes)
        if behind is not None:
            end_offset = behind[0]
        else:
            following = self.log.after(segment)
            end_offset = self.end_offset if following is None else following.base_offset
        return CommittedRead(extent, self._aborted(segment, offset, end_offset))

    def _read(
        self, offset: int, end: int, size_bytes_max: int, *, is_first_whole: bool
    ) -> tuple[KafkaSegment, Extent] | None:
        log = self.log
        active = log.active
        if offset < self.start_offset or offset > active.next_offset:
            raise OffsetOutOfRangeError(offset, self.span)
        if offset >= end:
            return None
        segment: KafkaSegment | None = active
        if offset < active.base_offset:
            segment = self._segment_of(offset)
        while segment is not None and segment.base_offset < end:
            position = segment.end_position
            if end < segment.next_offset:
                position = segment.locate(end)
            extent = segment.read_batches(
                offset, size_bytes_max, end_position=position, is_first_whole=is_first_whole
            )
            if extent.size_bytes or segment is active or not is_first_whole:
                return segment, extent
            segment = log.after(segment)
        return None

    def _segment_of(self, offset: int) -> KafkaSegment:
        """Return where `offset` lies; a truncation may have left a hole in front of all."""
        found = self.log.find(offset)
        if found is not None:
            return found
        first: KafkaSegment = self.log.segments.peekitem(0)[1]
        return first

    # transactions

    def aborted_transactions(self, offset: int, end_offset: int) -> list[AbortedTransaction]:
        """Return the aborted transactions that reach into ``[offset, end_offset)``, in order."""
        return self._aborted(self._segment_of(offset), offset, end_offset)

    def _aborted(
        self, segment: KafkaSegment, offset: int, end_offset: int
    ) -> list[AbortedTransaction]:
        """Collect from `segment` on until an index says that later ones have no more."""
        aborted: list[AbortedTransaction] = []
        following: KafkaSegment | None = segment
        while following is not None:
            found, is_complete = following.transaction_index.collect(offset, end_offset)
            aborted += found
            if is_complete:
                break
            following = self.log.after(following)
        return aborted

    # batches and records

    def batches(self, offset: int | None = None) -> Iterable[RecordBatch]:
        """Yield every batch from `offset` (default: the log start) on."""
        for segment, position in self._segments_from(offset):
            yield from segment.entries(position)

    def _segments_from(self, offset: int | None) -> Iterator[tuple[KafkaSegment, int]]:
        """Yield the segments from `offset` on, each with the position to read from."""
        start = self.start_offset if offset is None else offset
        first = self.log.find(start)
        for segment in list(self.log.segments.values()):
            if first is None or segment.base_offset >= first.base_offset:
                yield segment, segment.locate(start) if segment is first else 0

    def committed_batches(self, offset: int | None = None) -> Iterator[RecordBatch]:
        """
        Yield every batch from `offset` on that a read_committed reader gets: no aborted data.

        Markers are among them. Ends at the last stable offset of when it began.
        """
        end = self.last_stable_offset
        for segment, start in self._segments_from(offset):
            is_last = end < segment.next_offset
            position, stop = start, segment.locate(end) if is_last else segment.end_position
            aborted: dict[int, list[tuple[int, int]]] | None = None
            for batch in segment.entries(start):
                if position >= stop:
                    break
                position += batch.size_bytes
                if batch.is_transactional and not batch.is_control:
                    if aborted is None:
                        aborted = self._aborted_spans(segment, batch.base_offset)
                    spans = aborted.get(batch.producer_id, ())
                    if any(first <= batch.base_offset <= last for first, last in spans):
                        continue
                yield batch
            if is_last:
                return

    def _aborted_spans(
        self, segment: KafkaSegment, offset: int
    ) -> dict[int, list[tuple[int, int]]]:
        """Return by producer where aborted data lies in a segment, from `offset` on."""
        spans: dict[int, list[tuple[int, int]]] = {}
        for entry in self._aborted(segment, offset, segment.next_offset):
            spans.setdefault(entry.producer_id, []).append((entry.first_offset, entry.last_offset))
        return spans

    def read_records(
        self, offset: int, count_max: int, *, is_committed_only: bool = False
    ) -> list[PlainRecord]:
        """
        Return up to `count_max` records from `offset` on; markers are left out.

        With `is_committed_only` also what was aborted, and what is not decided yet.
        """
        if not self.start_offset <= offset <= self.end_offset:
            raise OffsetOutOfRangeError(offset, self.span)
        batches = self.committed_batches(offset) if is_committed_only else self.batches(offset)
        return from_batches(batches, offset, count_max)

    # time

    def find_timestamp(self, timestamp_ms: int) -> TimestampedOffset | None:
        """Return the first readable record that is at least that young."""
        for segment in list(self.log.segments.values()):
            if segment.largest_timestamp_ms() >= timestamp_ms:
                found = segment.find_timestamp(timestamp_ms, self.start_offset)
                if found is not None:
                    return found
        return None

    def find_max_timestamp(self) -> TimestampedOffset | None:
        """
        Return the record with the largest timestamp (ListOffsets timestamp -3).

        As in Kafka it may be one that was deleted while its segment is still there.
        """
        segments: list[KafkaSegment] = list(self.log.segments.values())
        newest = max(segments, key=lambda segment: segment.max_timestamp_ms)
        if newest.max_timestamp_ms < 0:
            return None
        return newest.find_timestamp(newest.max_timestamp_ms, newest.base_offset)

    def offset_for_timestamp(self, timestamp_ms: int) -> int | None:
        """Return the offset of the first readable record that is at least that young."""
        found = self.find_timestamp(timestamp_ms)
        return None if found is None else found.offset
