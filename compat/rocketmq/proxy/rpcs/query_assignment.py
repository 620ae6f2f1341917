"""QueryAssignment: which queues a push consumer is to receive from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from logstore.compat.rocketmq.proxy.checks import group_of, topic_of
from logstore.compat.rocketmq.proxy.codes import Code
from logstore.compat.rocketmq.proxy.failures import ProxyError, status
from logstore.compat.rocketmq.proxy.routes import broker_of, permission_of, require_topic
from logstore.compat.rocketmq.proxy.schema import MESSAGES

if TYPE_CHECKING:
    from logstore.compat.rocketmq.proxy.clients import ProxyClient
    from logstore.compat.rocketmq.proxy.proxy import Caller

#: the broker chooses the queue
_ANY_QUEUE = -1


async def handle(client: ProxyClient, request: Any, caller: Caller) -> Any:
    """Serve one request."""
    del caller
    topic, group = topic_of(request.topic), group_of(request.group)
    config = require_topic(client.proxy, topic)
    if not config.is_readable or not config.read_queue_count:
        raise ProxyError(Code.FORBIDDEN, "no readable queue")
    known = client.proxy.broker.groups.find(group)
    in_order = known is not None and known.is_consume_message_orderly
    queue_ids = range(config.read_queue_count) if in_order else (_ANY_QUEUE,)
    about = {"topic": request.topic, "permission": int(permission_of(config)),
             "broker": broker_of(client.proxy, request.endpoints)}  # fmt: skip
    assignments = [{"message_queue": {**about, "id": queue_id}} for queue_id in queue_ids]
    return MESSAGES["QueryAssignmentResponse"](status=status(Code.OK), assignments=assignments)
