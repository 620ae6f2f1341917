"""AckMessage: messages were consumed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from logstore.compat.rocketmq.proxy.checks import group_of, topic_of
from logstore.compat.rocketmq.proxy.codes import Code
from logstore.compat.rocketmq.proxy.failures import ProxyError, joint_status, status
from logstore.compat.rocketmq.proxy.renewals import Renewals
from logstore.compat.rocketmq.proxy.schema import MESSAGES
from logstore.compat.rocketmq.steps import Step
from logstore.compat.rocketmq.wire.codes import RequestCode, ResponseCode

if TYPE_CHECKING:
    from logstore.compat.rocketmq.proxy.clients import ProxyClient
    from logstore.compat.rocketmq.proxy.proxy import Caller

_OK = status(Code.OK)
_ALL_WELL = {Code.OK}


async def handle(client: ProxyClient, request: Any, caller: Caller) -> Any:
    """Serve one request."""
    del caller
    topic, group = topic_of(request.topic), group_of(request.group)
    response = MESSAGES["AckMessageResponse"]()
    codes: set[int] = set()
    for entry in request.entries:
        try:
            told = await _acknowledge(client, entry, topic, group)
        except ProxyError as error:
            told = status(error.code, str(error))
        codes.add(told.code)
        answered = response.entries.add()
        answered.message_id = entry.message_id
        answered.receipt_handle = entry.receipt_handle
        answered.status.CopyFrom(told)
    why = _OK if codes == _ALL_WELL else joint_status(codes, "ack message result is empty")
    response.status.CopyFrom(why)
    return response


async def _acknowledge(client: ProxyClient, entry: Any, topic: str, group: str) -> Any:
    handle = Renewals.end(client, entry.receipt_handle)
    handle.require_valid(client.proxy.now_ms())
    link = await client.link_named(handle.broker_name, Code.INVALID_RECEIPT_HANDLE)
    answer = await Step(
        link.ask(RequestCode.ACK_MESSAGE, handle.fields(topic, group, entry.lite_topic))
    )
    if answer.code == ResponseCode.SUCCESS:
        return _OK
    return status(Code.INTERNAL_SERVER_ERROR, "ack failed: status is abnormal")
