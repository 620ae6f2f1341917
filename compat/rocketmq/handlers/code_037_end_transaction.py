"""
END_TRANSACTION: a producer says what became of a transaction, or that it does not know yet.

Mostly one-way; a half message that is not found is asked about again by the check.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.rocketmq.transactions.transactions import EndTransaction, end_transaction
from logstore.compat.rocketmq.wire.codes import ResponseCode
from logstore.compat.rocketmq.wire.fields import read_flag, read_int, read_long, read_text
from logstore.compat.rocketmq.wire.refusals import RefusedError
from logstore.compat.rocketmq.wire.remoting import Response

if TYPE_CHECKING:
    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.connection import Channel
    from logstore.compat.rocketmq.wire.remoting import Command

#: undecided, committed, rolled back: bits of a message's flags
_UNDECIDED, _COMMITTED, _ROLLED_BACK = _OUTCOMES = (0, 8, 12)


def handle(
    broker: Broker,
    channel: Channel,
    request: Command,
) -> Response | None:
    """Serve one request."""
    if broker.settings.is_slave:
        raise RefusedError(ResponseCode.SLAVE_NOT_AVAILABLE, "a slave ends no transactions")
    fields = request.ext_fields
    outcome = read_int(fields, "commitOrRollback")
    if outcome not in _OUTCOMES:
        raise RefusedError(ResponseCode.SYSTEM_ERROR, "commitOrRollback field wrong")
    end = EndTransaction(
        producer_group=read_text(fields, "producerGroup"),
        half_queue_offset=read_long(fields, "tranStateTableOffset"),
        half_physical_offset=read_long(fields, "commitLogOffset"),
        outcome=outcome,
        is_checked=read_flag(fields, "fromTransactionCheck", default=False),
    )
    if not end_transaction(broker, end):
        return None
    # Java's answer to a rollback is the one of its check, of which it says no more.
    remark = "not set any response code" if outcome == _ROLLED_BACK else None
    return Response(ResponseCode.SUCCESS, remark)
