"""
ListTransactions (66): versions 0-2.

* every transactional id with its producer and state; filters narrow it down
* names of states that do not exist are told back
* v1: only those that last longer than so many ms; one that never began has lasted for ever
* v2: only ids that fit a regular expression as a whole; 128 if it is none
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.re2_pattern import PatternError, compiled
from logstore.segments.kafka.internal_topics.transaction_log import TransactionStatus

if TYPE_CHECKING:
    from kafka.protocol.admin.transactions import ListTransactionsRequest, ListTransactionsResponse

    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client
    from logstore.compat.kafka.re2_machine import Machine

_FIRST_WITH_DURATION = 1
_FIRST_WITH_PATTERN = 2
_BY_NAME = {status.java_name: status for status in TransactionStatus}


def handle(
    broker: Broker, client: Client, request: ListTransactionsRequest
) -> ListTransactionsResponse:
    """Return the transactions that fit."""
    from kafka.protocol.admin.transactions import ListTransactionsResponse

    del client
    version = request.API_VERSION
    unknown = dict.fromkeys(name for name in request.state_filters if name not in _BY_NAME)
    known = {_BY_NAME[name] for name in request.state_filters if name in _BY_NAME}
    pattern: Machine | None = None
    if version >= _FIRST_WITH_PATTERN and request.transactional_id_pattern:
        try:
            pattern = compiled(request.transactional_id_pattern)
        except PatternError:
            return ListTransactionsResponse(
                version=version,
                error_code=ErrorCode.INVALID_REGULAR_EXPRESSION,
                unknown_state_filters=[],
                transaction_states=[],
            )
    error, found = broker.transactions.list_transactions(
        known if request.state_filters else None,
        frozenset(request.producer_id_filters),
        request.duration_filter if version >= _FIRST_WITH_DURATION else -1,
        pattern,
    )
    return ListTransactionsResponse(
        version=version,
        error_code=error,
        unknown_state_filters=list(unknown),
        transaction_states=[
            ListTransactionsResponse.TransactionState(
                transactional_id=one.transactional_id,
                producer_id=one.producer_id,
                transaction_state=one.state.java_name,
            )
            for one in found
        ],
    )
