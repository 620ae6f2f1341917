"""A transactional id with its producer and its transaction: a value, and what can become of it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import attrs

from logstore.compat.kafka.transactions.states import IDLE, PREVIOUS_STATES
from logstore.segments.kafka.internal_topics.transaction_log import TransactionStatus

#: A topic's name and the index of one of its partitions.
TopicPartition = tuple[str, int]

NO_PRODUCER_ID = -1
NO_EPOCH = -1
NO_TIMESTAMP_MS = -1
EPOCH_MAX = 0x7FFF
#: the last epoch that a client gets; one more is left for shutting it out
_EPOCH_USABLE_MAX = EPOCH_MAX - 1
#: with transactions of this version every transaction has an epoch of its own (KIP-890)
EPOCH_PER_TRANSACTION = 2
#: the timeout of a transaction that an outside coordinator decides on: none
NO_TIMEOUT_MS = 0x7FFF_FFFF


def is_exhausted(epoch: int) -> bool:
    """Tell whether a producer id has no epoch left after this one."""
    return epoch >= _EPOCH_USABLE_MAX


@attrs.frozen(kw_only=True)
class Transaction:
    """
    What is known, and written, of one transactional id.

    `previous_producer_id` is that of the transition before, `next_producer_id` the one that the
    end of this transaction brings, `last_producer_epoch` the epoch that a retry may still name (it
    is not written to the log). Timestamps are wall clock in ms. Source: ``TransactionMetadata``,
    ``TxnTransitMetadata``.
    """

    transactional_id: str
    producer_id: int
    timeout_ms: int
    last_update_ms: int
    producer_epoch: int = NO_EPOCH
    state: TransactionStatus = TransactionStatus.EMPTY
    previous_producer_id: int = NO_PRODUCER_ID
    next_producer_id: int = NO_PRODUCER_ID
    last_producer_epoch: int = NO_EPOCH
    partitions: frozenset[TopicPartition] = frozenset()
    start_ms: int = NO_TIMESTAMP_MS
    client_transaction_version: int = 0

    @property
    def is_epoch_exhausted(self) -> bool:
        """Tell whether the producer needs another id before its next epoch."""
        return is_exhausted(self.producer_epoch)

    def is_timed_out(self, now_ms: int) -> bool:
        """Tell whether the transaction has been open for longer than its producer said."""
        is_open = self.state is TransactionStatus.ONGOING and self.timeout_ms != NO_TIMEOUT_MS
        return is_open and self.start_ms + self.timeout_ms < now_ms

    def is_expired(self, now_ms: int, expiration_ms: int) -> bool:
        """Tell whether nobody has used the id for that long."""
        return self.state in IDLE and self.last_update_ms <= now_ms - expiration_ms

    # transitions

    def _moved(self, state: TransactionStatus, **changes: Any) -> Transaction:
        allowed = PREVIOUS_STATES[state]
        assert self.state in allowed, f"{self.transactional_id}: {self.state.name} to {state.name}"
        moved = attrs.evolve(self, state=state, previous_producer_id=self.producer_id, **changes)
        assert moved.producer_id >= 0
        assert moved.producer_epoch >= 0
        return moved

    def with_next_epoch(
        self, timeout_ms: int, expected_epoch: int | None, now_ms: int
    ) -> Transaction | None:
        """
        Return the producer in its next epoch; None if `expected_epoch` tells that it is fenced.

        A producer that says its epoch goes on after an error; if it says the one before, it was
        not told of its last bump, which then holds (KIP-360).
        """
        epoch, last_epoch = self.producer_epoch + 1, NO_EPOCH
        if expected_epoch is not None:
            if expected_epoch == self.producer_epoch or self.producer_epoch == NO_EPOCH:
                last_epoch = self.producer_epoch
            elif expected_epoch == self.last_producer_epoch:
                epoch, last_epoch = self.producer_epoch, self.last_producer_epoch
            else:
                return None
        assert epoch <= _EPOCH_USABLE_MAX, "a producer without epochs left needs another id"
        return self._initialised(timeout_ms, now_ms, epoch=epoch, last_epoch=last_epoch)

    def with_new_producer_id(
        self, producer_id: int, timeout_ms: int, now_ms: int, *, keeps_last_epoch: bool
    ) -> Transaction:
        """Return the producer under another id, with epoch 0."""
        last_epoch = self.producer_epoch if keeps_last_epoch else NO_EPOCH
        return self._initialised(
            timeout_ms, now_ms, epoch=0, last_epoch=last_epoch, producer_id=producer_id
        )

    def _initialised(
        self, timeout_ms: int, now_ms: int, *, epoch: int, last_epoch: int, **changes: int
    ) -> Transaction:
        return self._moved(
            TransactionStatus.EMPTY,
            producer_epoch=epoch,
            last_producer_epoch=last_epoch,
            timeout_ms=timeout_ms,
            partitions=frozenset[TopicPartition](),
            start_ms=NO_TIMESTAMP_MS,
            last_update_ms=now_ms,
            **changes,
        )

    def with_partitions(
        self, added: Iterable[TopicPartition], now_ms: int, client_transaction_version: int
    ) -> Transaction:
        """Return the transaction, begun by now, with these partitions in it."""
        return self._moved(
            TransactionStatus.ONGOING,
            partitions=self.partitions.union(added),
            start_ms=now_ms if self.state in IDLE else self.start_ms,
            last_update_ms=now_ms,
            client_transaction_version=client_transaction_version,
        )

    def fenced(self, epoch: int) -> Transaction:
        """Return the transaction in an epoch that its producer does not have (before version 2)."""
        return attrs.evolve(self, producer_epoch=epoch, last_producer_epoch=NO_EPOCH)

    def decided(
        self,
        now_ms: int,
        *,
        is_commit: bool,
        transaction_version: int,
        next_producer_id: int = NO_PRODUCER_ID,
    ) -> Transaction:
        """Return the transaction as it is to end; version 2 raises the epoch by that."""
        state = TransactionStatus.PREPARE_COMMIT if is_commit else TransactionStatus.PREPARE_ABORT
        epoch, last_epoch = self.producer_epoch, self.last_producer_epoch
        if transaction_version >= EPOCH_PER_TRANSACTION:
            last_epoch, epoch = epoch, min(epoch + 1, EPOCH_MAX)
        return self._moved(
            state,
            producer_epoch=epoch,
            last_producer_epoch=last_epoch,
            # An abort of what never began has a start all the same.
            start_ms=now_ms if self.state in IDLE else self.start_ms,
            next_producer_id=next_producer_id,
            last_update_ms=now_ms,
            client_transaction_version=transaction_version,
        )

    def completed(self, now_ms: int) -> Transaction:
        """Return the transaction after all markers are written; the new producer id counts now."""
        is_commit = self.state is TransactionStatus.PREPARE_COMMIT
        changes: dict[str, int] = {}
        if (
            self.client_transaction_version >= EPOCH_PER_TRANSACTION
            and self.next_producer_id != NO_PRODUCER_ID
        ):
            changes = {"producer_id": self.next_producer_id, "producer_epoch": 0}
        return self._moved(
            TransactionStatus.COMPLETE_COMMIT if is_commit else TransactionStatus.COMPLETE_ABORT,
            next_producer_id=NO_PRODUCER_ID,
            partitions=frozenset[TopicPartition](),
            last_update_ms=now_ms,
            **changes,
        )

    def without_partition(self, partition: TopicPartition) -> Transaction:
        """Return the transaction with one partition less that waits for its marker."""
        return attrs.evolve(self, partitions=self.partitions - {partition})
