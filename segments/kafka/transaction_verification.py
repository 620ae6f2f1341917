"""
The guard against hanging transactions: a client's first write is verified with the coordinator.

A transactional batch whose transaction the coordinator does not know would never get a marker, and
hold the last stable offset for good. So before the first batch of a transaction enters a partition
its leader asks the coordinator. What was asked is remembered here until the batch is appended; a
marker that comes in between takes it away, and an answer that is too late then opens nothing.

Source: ``VerificationStateEntry``, ``VerificationGuard`` (KIP-890).
"""

from __future__ import annotations

import attrs


@attrs.define(eq=False)
class Verification:
    """
    One question to the coordinator; the object itself is the guard that an append must show.

    `supports_epoch_bump` says that the client speaks transactions of version 2, where every
    transaction has an epoch of its own. A batch above `lowest_sequence` has to wait for the one
    that asked first.
    """

    producer_id: int
    epoch: int
    lowest_sequence: int
    supports_epoch_bump: bool
    started_ms: int

    def lower(self, sequence: int, epoch: int) -> None:
        """Take note of another batch that asks: the lowest of the newest epoch goes first."""
        if epoch > self.epoch:
            self.epoch, self.lowest_sequence = epoch, sequence
        elif epoch == self.epoch:
            self.lowest_sequence = min(self.lowest_sequence, sequence)


class TransactionVerifications:
    """The open questions of one partition, one a producer."""

    def __init__(self) -> None:
        self._by_producer: dict[int, Verification] = {}

    def __len__(self) -> int:
        return len(self._by_producer)

    def get(self, producer_id: int) -> Verification | None:
        """Return the open question about a producer."""
        return self._by_producer.get(producer_id)

    def start(
        self, producer_id: int, epoch: int, sequence: int, *, supports_epoch_bump: bool, now_ms: int
    ) -> Verification:
        """Return the open question about a producer, a new one if there is none."""
        found = self._by_producer.get(producer_id)
        if found is None:
            found = Verification(producer_id, epoch, sequence, supports_epoch_bump, now_ms)
            self._by_producer[producer_id] = found
        found.lower(sequence, epoch)
        return found

    def end(self, producer_id: int) -> None:
        """Forget the question: the transaction has a batch now."""
        self._by_producer.pop(producer_id, None)

    def end_at_marker(self, producer_id: int, epoch: int) -> None:
        """
        Forget the question: a marker has ended the transaction.

        But not where the question is about the next one already: with version 2 the marker of the
        transaction before has the epoch in which the next one writes.
        """
        found = self._by_producer.get(producer_id)
        if found is not None and not (found.supports_epoch_bump and found.epoch == epoch):
            del self._by_producer[producer_id]

    def expire(self, now_ms: int, expiration_ms: int) -> None:
        """Forget questions that were never answered."""
        self._by_producer = {
            producer_id: found
            for producer_id, found in self._by_producer.items()
            if now_ms - found.started_ms < expiration_ms
        }

    def clear(self) -> None:
        """Forget all."""
        self._by_producer.clear()
