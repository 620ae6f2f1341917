"""ForwardMessageToDeadLetterQueue: a message that no attempt is to be made with any more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from logstore.compat.rocketmq.proxy.checks import group_of, topic_of
from logstore.compat.rocketmq.proxy.codes import Code
from logstore.compat.rocketmq.proxy.failures import ProxyError, status_of
from logstore.compat.rocketmq.proxy.renewals import Renewals
from logstore.compat.rocketmq.proxy.schema import MESSAGES
from logstore.compat.rocketmq.steps import Step
from logstore.compat.rocketmq.wire.codes import RequestCode, ResponseCode
from logstore.compat.rocketmq.wire.fields import as_fields
from logstore.compat.waiting import Later

if TYPE_CHECKING:
    from logstore.compat.rocketmq.proxy.clients import Link, ProxyClient
    from logstore.compat.rocketmq.proxy.proxy import Caller
    from logstore.compat.rocketmq.proxy.receipt_handles import ReceiptHandle
    from logstore.compat.rocketmq.wire.remoting import Command


async def handle(client: ProxyClient, request: Any, caller: Caller) -> Any:
    """Serve one request."""
    del caller
    topic, group = topic_of(request.topic), group_of(request.group)
    found = Renewals.end(client, request.receipt_handle)
    link = await client.link_named(found.broker_name, Code.INVALID_RECEIPT_HANDLE)
    answer = await Step(bury(link, found, request.message_id, topic, group, request.lite_topic))
    return MESSAGES["ForwardMessageToDeadLetterQueueResponse"](
        status=status_of(answer.code, answer.remark)
    )


def bury(
    link: Link,
    handle: ReceiptHandle,
    message_id: str,
    topic: str,
    group: str,
    lite_topic: str = "",
) -> Later[Command]:
    """Put a message into the group's dead letter queue, and acknowledge it there where it was."""
    if handle.physical_offset < 0:
        raise ProxyError(Code.INVALID_RECEIPT_HANDLE, "commit log offset is empty")
    fields = as_fields(
        offset=handle.physical_offset,
        group=group,
        delayLevel=-1,
        originMsgId=message_id,
        originTopic=handle.stored_topic(topic, group),
        unitMode=False,
        maxReconsumeTimes=0,
    )
    outcome: Later[Command] = Later()

    def sent(answer: Command) -> None:
        if answer.code == ResponseCode.SUCCESS:
            link.ask(RequestCode.ACK_MESSAGE, handle.fields(topic, group, lite_topic))
        outcome.answer(answer)

    link.ask(RequestCode.CONSUMER_SEND_MSG_BACK, fields).then(sent, outcome.fail)
    return outcome
