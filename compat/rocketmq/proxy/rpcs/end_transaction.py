"""EndTransaction: a half message is to be seen, or not; or its producer does not know yet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from logstore.compat.rocketmq.proxy.checks import topic_of
from logstore.compat.rocketmq.proxy.codes import SOURCE_SERVER_CHECK, Code, Resolution
from logstore.compat.rocketmq.proxy.failures import ProxyError, status
from logstore.compat.rocketmq.proxy.schema import MESSAGES
from logstore.compat.rocketmq.wire.codes import RequestCode
from logstore.compat.rocketmq.wire.fields import as_fields
from logstore.segments.rocketmq.messages.java_strings import is_java_blank
from logstore.segments.rocketmq.messages.system_flags import (
    TRANSACTION_COMMIT,
    TRANSACTION_ROLLBACK,
)

if TYPE_CHECKING:
    from logstore.compat.rocketmq.proxy.clients import ProxyClient
    from logstore.compat.rocketmq.proxy.proxy import Caller

_FLAGS = {Resolution.COMMIT: TRANSACTION_COMMIT, Resolution.ROLLBACK: TRANSACTION_ROLLBACK}


async def handle(client: ProxyClient, request: Any, caller: Caller) -> Any:
    """Serve one request."""
    del caller
    topic = topic_of(request.topic)
    if is_java_blank(request.transaction_id):
        raise ProxyError(Code.INVALID_TRANSACTION_ID, "transaction id cannot be empty")
    transaction = client.proxy.transactions.pop((topic, request.transaction_id), None)
    if transaction is None:
        raise ProxyError(Code.INTERNAL_SERVER_ERROR, "cannot found transaction data")
    fields = as_fields(
        topic=topic,
        producerGroup=topic,
        tranStateTableOffset=transaction.queue_offset,
        commitLogOffset=transaction.physical_offset,
        commitOrRollback=_FLAGS.get(request.resolution, 0),
        fromTransactionCheck=request.source == SOURCE_SERVER_CHECK,
        msgId=request.message_id,
        transactionId=request.transaction_id,
    )
    link = await client.link_of(transaction.broker_name)
    link.tell(RequestCode.END_TRANSACTION, fields)
    return MESSAGES["EndTransactionResponse"](status=status(Code.OK))
