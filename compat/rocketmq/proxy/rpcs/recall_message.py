"""RecallMessage: a message for later is not to come."""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING, Any

from logstore.compat.rocketmq.proxy.checks import topic_of
from logstore.compat.rocketmq.proxy.codes import Code, MessageType
from logstore.compat.rocketmq.proxy.failures import status, status_of
from logstore.compat.rocketmq.proxy.rpcs.send_message import require_type
from logstore.compat.rocketmq.proxy.schema import MESSAGES
from logstore.compat.rocketmq.steps import Step
from logstore.compat.rocketmq.wire.codes import RequestCode, ResponseCode

if TYPE_CHECKING:
    from logstore.compat.rocketmq.proxy.clients import ProxyClient
    from logstore.compat.rocketmq.proxy.proxy import Caller

#: version, topic, broker, time, unique key
_WORD_COUNT = 5


async def handle(client: ProxyClient, request: Any, caller: Caller) -> Any:
    """Serve one request."""
    del caller
    topic = topic_of(request.topic)
    if client.proxy.settings.checks_message_types:
        await require_type(client, topic, MessageType.DELAY.name)
    fields = {"topic": topic, "recallHandle": request.recall_handle}
    broker_name = _broker_of(request.recall_handle, client.own_name)
    link = await client.link_named(broker_name, Code.BAD_REQUEST)
    answer = await Step(link.ask(RequestCode.RECALL_MESSAGE, fields))
    if answer.code != ResponseCode.SUCCESS:
        return MESSAGES["RecallMessageResponse"](status=status_of(answer.code, answer.remark))
    message_id = answer.ext_fields.get("msgId", "")
    return MESSAGES["RecallMessageResponse"](status=status(Code.OK), message_id=message_id)


def _broker_of(handle: str, own_name: str) -> str:
    """Return the broker that a handle names; what is none is for the one here to refuse."""
    try:
        words = base64.urlsafe_b64decode(handle).decode().split(" ")
    except (binascii.Error, ValueError):
        return own_name
    return words[2] if len(words) == _WORD_COUNT else own_name
