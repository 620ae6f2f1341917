"""ChangeInvisibleDuration: a message is to be seen again sooner, or later."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from logstore.compat.rocketmq.proxy.checks import group_of, invisible_ms, topic_of
from logstore.compat.rocketmq.proxy.codes import Code
from logstore.compat.rocketmq.proxy.failures import ProxyError, status
from logstore.compat.rocketmq.proxy.renewals import Renewals
from logstore.compat.rocketmq.proxy.schema import MESSAGES
from logstore.compat.rocketmq.steps import Step
from logstore.compat.rocketmq.wire.codes import RequestCode, ResponseCode

if TYPE_CHECKING:
    from logstore.compat.rocketmq.proxy.clients import ProxyClient
    from logstore.compat.rocketmq.proxy.proxy import Caller


async def handle(client: ProxyClient, request: Any, caller: Caller) -> Any:
    """Serve one request."""
    del caller
    topic, group = topic_of(request.topic), group_of(request.group)
    hidden_ms = invisible_ms(request.invisible_duration, 0, client.proxy.settings.invisible_ms_max)
    found = Renewals.end(client, request.receipt_handle)
    found.require_valid(client.proxy.now_ms())
    fields = {
        **found.fields(topic, group, request.lite_topic),
        "invisibleTime": str(hidden_ms),
        "suspend": "true" if request.suspend else "false",
    }
    link = await client.link_named(found.broker_name, Code.INVALID_RECEIPT_HANDLE)
    answer = await Step(link.ask(RequestCode.CHANGE_MESSAGE_INVISIBLETIME, fields))
    if answer.code != ResponseCode.SUCCESS:
        text = "changeInvisibleDuration failed: status is abnormal"
        raise ProxyError(Code.INTERNAL_SERVER_ERROR, text)
    return MESSAGES["ChangeInvisibleDurationResponse"](
        status=status(Code.OK), receipt_handle=found.renewed(answer.ext_fields)
    )
