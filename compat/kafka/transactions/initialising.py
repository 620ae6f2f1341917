"""
What becomes of a transactional id when a producer begins with it, in every state.

Source: ``TransactionCoordinator.prepareInitProducerIdTransit`` (KIP-360).
"""

from __future__ import annotations

from collections.abc import Callable

import attrs

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.transactions.transaction import (
    NO_EPOCH,
    NO_PRODUCER_ID,
    Transaction,
    is_exhausted,
)
from logstore.segments.kafka.internal_topics.transaction_log import TransactionStatus


@attrs.frozen
class Initialising:
    """
    A producer that begins.

    `expected` is the (producer id, epoch) that it had, if it goes on after an error.
    """

    transactional_id: str
    timeout_ms: int
    expected: tuple[int, int] | None = None


@attrs.frozen
class Initialised:
    """What it is told."""

    error_code: ErrorCode
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_EPOCH


def next_of(
    transaction: Transaction,
    wanted: Initialising,
    now_ms: int,
    new_producer_id: Callable[[], int],
) -> Transaction | None:
    """
    Return the producer's next epoch; None if it was shut out.

    A transaction that is open is returned as it is: it must be aborted first.
    """
    if wanted.expected is not None and not _is_valid(transaction, *wanted.expected):
        return None
    if transaction.state is TransactionStatus.ONGOING:
        return transaction
    expected_epoch = None if wanted.expected is None else wanted.expected[1]
    if transaction.is_epoch_exhausted and expected_epoch in (None, transaction.producer_epoch):
        return transaction.with_new_producer_id(
            new_producer_id(),
            wanted.timeout_ms,
            now_ms,
            keeps_last_epoch=wanted.expected is not None,
        )
    return transaction.with_next_epoch(wanted.timeout_ms, expected_epoch, now_ms)


def _is_valid(transaction: Transaction, producer_id: int, epoch: int) -> bool:
    """
    Tell whether the id that a producer had is that of the transactional id.

    The id before counts, too, if it has no epoch left: the producer was not told of the new one.
    """
    return (
        transaction.producer_epoch == NO_EPOCH
        or producer_id == transaction.producer_id
        or (producer_id == transaction.previous_producer_id and is_exhausted(epoch))
    )
