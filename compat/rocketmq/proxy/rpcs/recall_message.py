"""RecallMessage: a message for later is not to come."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from logstore.compat.rocketmq.proxy.checks import topic_of
from logstore.compat.rocketmq.proxy.codes import Code, MessageType
from logstore.compat.rocketmq.proxy.failures import ProxyError, status, status_of
from logstore.compat.rocketmq.proxy.rpcs.send_message import require_type
from logstore.compat.rocketmq.proxy.schema import MESSAGES
from logstore.compat.rocketmq.sending.recall_handles import handle_parts
from logstore.compat.rocketmq.steps import Step
from logstore.compat.rocketmq.wire.codes import RequestCode, ResponseCode

if TYPE_CHECKING:
    from logstore.compat.rocketmq.proxy.clients import ProxyClient
    from logstore.compat.rocketmq.proxy.proxy import Caller


async def handle(client: ProxyClient, request: Any, caller: Caller) -> Any:
    """Serve one request."""
    del caller
    topic = topic_of(request.topic)
    if client.proxy.settings.checks_message_types:
        await require_type(client, topic, MessageType.DELAY.name)
    fields = {"topic": topic, "recallHandle": request.recall_handle}
    parts = handle_parts(request.recall_handle)
    if not parts:
        raise ProxyError(Code.INTERNAL_SERVER_ERROR, "recall handle is invalid")
    link = await client.link_named(parts[2], Code.BAD_REQUEST)
    answer = await Step(link.ask(RequestCode.RECALL_MESSAGE, fields))
    if answer.code != ResponseCode.SUCCESS:
        return MESSAGES["RecallMessageResponse"](status=status_of(answer.code, answer.remark))
    message_id = answer.ext_fields.get("msgId", "")
    return MESSAGES["RecallMessageResponse"](status=status(Code.OK), message_id=message_id)
