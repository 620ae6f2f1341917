"""
What a request to end a transaction is answered, in every state.

Two tables: before version 2 of transactions an end leaves the epoch as it is, and asking for the
same end again is fine as long as nothing new has begun. From version 2 on every end raises the
epoch; the epoch that a request names tells whether it is that request again or the next one.

Source: ``TransactionCoordinator.endTransactionWithTV1`` and ``endTransaction``.
"""

from __future__ import annotations

from collections.abc import Callable

import attrs

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.transactions.states import IDLE
from logstore.compat.kafka.transactions.transaction import (
    EPOCH_MAX,
    EPOCH_PER_TRANSACTION,
    NO_EPOCH,
    NO_PRODUCER_ID,
    Transaction,
)
from logstore.segments.kafka.internal_topics.transaction_log import TransactionStatus

_LAST_USABLE_EPOCH = EPOCH_MAX - 1
_COMPLETE = {True: TransactionStatus.COMPLETE_COMMIT, False: TransactionStatus.COMPLETE_ABORT}


@attrs.frozen
class End:
    """A producer's wish to commit (or abort), in a version of transactions."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    is_commit: bool
    transaction_version: int = 0


@attrs.frozen
class Ended:
    """What it is told; id and epoch are for its next transaction, from version 2 on."""

    error_code: ErrorCode
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_EPOCH


def decide(
    transaction: Transaction,
    end: End,
    now_ms: int,
    new_producer_id: Callable[[], int],
    *,
    is_pending: bool,
) -> Transaction | Ended:
    """
    Return the transaction as it is to be prepared, or what to answer without a change.

    `is_pending` says that a decision is being carried out already.
    """
    if end.transaction_version < EPOCH_PER_TRANSACTION:
        return _decide_v1(transaction, end, now_ms, is_pending=is_pending)
    return _decide_v2(transaction, end, now_ms, new_producer_id, is_pending=is_pending)


def _decide_v1(
    transaction: Transaction, end: End, now_ms: int, *, is_pending: bool
) -> Transaction | Ended:
    if transaction.producer_id != end.producer_id:
        return Ended(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if transaction.producer_epoch != end.producer_epoch:
        return Ended(ErrorCode.PRODUCER_FENCED)
    if is_pending:
        return Ended(ErrorCode.CONCURRENT_TRANSACTIONS)
    if transaction.state is TransactionStatus.ONGOING:
        return transaction.decided(now_ms, is_commit=end.is_commit, transaction_version=0)
    is_repeated = transaction.state is _COMPLETE[end.is_commit]
    return Ended(ErrorCode.NONE if is_repeated else ErrorCode.INVALID_TXN_STATE)


def _decide_v2(
    transaction: Transaction,
    end: End,
    now_ms: int,
    new_producer_id: Callable[[], int],
    *,
    is_pending: bool,
) -> Transaction | Ended:
    # First of all: what is pending may bring the id and the epoch that the request names.
    if is_pending:
        return Ended(ErrorCode.CONCURRENT_TRANSACTIONS)
    is_retry_of_last_epoch = (
        transaction.previous_producer_id == end.producer_id
        and end.producer_epoch == _LAST_USABLE_EPOCH
        and transaction.producer_epoch == 0
    )
    is_retry = is_retry_of_last_epoch or transaction.producer_epoch == end.producer_epoch + 1
    is_current = transaction.producer_epoch == end.producer_epoch
    state = transaction.state
    if transaction.producer_id != end.producer_id and not is_retry_of_last_epoch:
        return Ended(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if not (is_current or (is_retry and state in _COMPLETE.values())):
        return Ended(ErrorCode.PRODUCER_FENCED)
    if state is TransactionStatus.ONGOING or (
        state in IDLE and is_current and not is_retry and not end.is_commit
    ):
        return prepared_v2(transaction, now_ms, new_producer_id, is_commit=end.is_commit)
    if is_retry and state is _COMPLETE[end.is_commit]:
        return Ended(ErrorCode.NONE, transaction.producer_id, transaction.producer_epoch)
    return Ended(ErrorCode.INVALID_TXN_STATE)


def prepared_v2(
    transaction: Transaction, now_ms: int, new_producer_id: Callable[[], int], *, is_commit: bool
) -> Transaction:
    """Return the transaction as it is to end in version 2; its producer may need a new id."""
    next_id = new_producer_id() if transaction.is_epoch_exhausted else NO_PRODUCER_ID
    return transaction.decided(
        now_ms,
        is_commit=is_commit,
        transaction_version=EPOCH_PER_TRANSACTION,
        next_producer_id=next_id,
    )
