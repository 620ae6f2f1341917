"""RecallMessage: a message for later is not to come."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from logstore.compat.rocketmq.proxy.checks import topic_of
from logstore.compat.rocketmq.proxy.codes import Code
from logstore.compat.rocketmq.proxy.failures import ProxyError, status, status_of
from logstore.compat.rocketmq.proxy.routes import require_topic, type_name
from logstore.compat.rocketmq.proxy.schema import MESSAGES
from logstore.compat.rocketmq.steps import Step
from logstore.compat.rocketmq.wire.codes import RequestCode, ResponseCode

if TYPE_CHECKING:
    from logstore.compat.rocketmq.proxy.clients import ProxyClient
    from logstore.compat.rocketmq.proxy.proxy import Caller


async def handle(client: ProxyClient, request: Any, caller: Caller) -> Any:
    """Serve one request."""
    del caller
    topic = topic_of(request.topic)
    expected = type_name(require_topic(client.proxy, topic))
    if expected not in ("DELAY", "MIXED"):
        text = (
            f"TopicMessageType validate failed, the expected type is {expected}, but actual type "
            "is DELAY"
        )
        raise ProxyError(Code.MESSAGE_PROPERTY_CONFLICT_WITH_TYPE, text)
    fields = {"topic": topic, "recallHandle": request.recall_handle}
    answer = await Step(client.link.ask(RequestCode.RECALL_MESSAGE, fields))
    if answer.code != ResponseCode.SUCCESS:
        return MESSAGES["RecallMessageResponse"](status=status_of(answer.code, answer.remark))
    message_id = answer.ext_fields.get("msgId", "")
    return MESSAGES["RecallMessageResponse"](status=status(Code.OK), message_id=message_id)
