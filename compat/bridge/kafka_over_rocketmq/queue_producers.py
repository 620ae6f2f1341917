"""
What idempotent producers sent to one queue, by queue offsets, before the last start too.

Their sequences outside of transactions; a :mod:`journal
<logstore.compat.bridge.kafka_over_rocketmq.producer_journal>` keeps what is noted here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from logstore.compat.bridge.kafka_over_rocketmq.producer_journal import SentBatch
from logstore.segments.kafka.appended import Appended
from logstore.segments.kafka.producer_state import OutOfOrderSequenceError, ProducerStates

if TYPE_CHECKING:
    from logstore.segments.kafka.record_batch import RecordBatch


class QueueProducers:
    """The producers of queue `index` of `topic`."""

    def __init__(self, topic: str, index: int) -> None:
        self.topic = topic
        self.index = index
        self.states = ProducerStates()
        #: producers whose state is one of before the last start
        self._restored: set[int] = set()

    def check(self, batch: RecordBatch) -> Appended | None:
        """
        Return the offsets of the first time if the batch is a duplicate.

        What a producer sent before the last start may be known in part only, if the power was
        lost: a gap behind that is no fault of the producer's.

        Raises:
            InvalidProducerEpochError, OutOfOrderSequenceError: and what else states refuse.

        """
        try:
            original = self.states.check(
                producer_id=batch.producer_id,
                epoch=batch.producer_epoch,
                first_sequence=batch.base_sequence,
                last_sequence=batch.last_sequence,
            )
        except OutOfOrderSequenceError:
            if batch.producer_id not in self._restored:
                raise
            return None
        if original is None:
            return None
        return Appended(
            original.base_offset, original.last_offset, original.timestamp_ms, is_duplicate=True
        )

    def note(self, batch: RecordBatch, last_offset: int) -> SentBatch:
        """Remember a batch that was put, so that its repetition is known; return what to keep."""
        self._restored.discard(batch.producer_id)
        sent = SentBatch(
            self.topic,
            self.index,
            batch.producer_id,
            batch.producer_epoch,
            batch.base_sequence,
            batch.last_sequence,
            last_offset,
            batch.last_offset_delta,
            batch.max_timestamp_ms,
        )
        self._add(sent)
        return sent

    def restore(self, sent: SentBatch) -> None:
        """Remember a batch of before the last start."""
        self._restored.add(sent.producer_id)
        self._add(sent)

    def _add(self, sent: SentBatch) -> None:
        self.states.append(
            producer_id=sent.producer_id,
            epoch=sent.epoch,
            first_sequence=sent.first_sequence,
            last_sequence=sent.last_sequence,
            last_offset=sent.last_offset,
            offset_delta=sent.offset_delta,
            timestamp_ms=sent.timestamp_ms,
        )

    def sent_batches(self) -> Iterator[SentBatch]:
        """Yield the last batches of every producer, in an order in which they can be restored."""
        for entry in self.states:
            for one in entry.batches:
                yield SentBatch(
                    self.topic,
                    self.index,
                    entry.producer_id,
                    entry.epoch,
                    one.first_sequence,
                    one.last_sequence,
                    one.last_offset,
                    one.offset_delta,
                    one.timestamp_ms,
                )
