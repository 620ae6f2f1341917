"""QueryAssignment: which queues a push consumer is to receive from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from logstore.compat.rocketmq.lite.lite_rules import bind_topic
from logstore.compat.rocketmq.name_server.routes import MASTER_ID
from logstore.compat.rocketmq.proxy.checks import group_of, topic_of
from logstore.compat.rocketmq.proxy.codes import Code
from logstore.compat.rocketmq.proxy.failures import ProxyError, status
from logstore.compat.rocketmq.proxy.schema import MESSAGES
from logstore.compat.rocketmq.proxy.told_queues import check_endpoints, permission_of, told_broker
from logstore.segments.rocketmq.tables.topics import PERM_READ

if TYPE_CHECKING:
    from logstore.compat.rocketmq.proxy.clients import ProxyClient
    from logstore.compat.rocketmq.proxy.proxy import Caller

#: the broker chooses the queue
_ANY_QUEUE = -1


async def handle(client: ProxyClient, request: Any, caller: Caller) -> Any:
    """Serve one request."""
    del caller
    topic, group = topic_of(request.topic), group_of(request.group)
    check_endpoints(request.endpoints)
    proxy = client.proxy
    route = await proxy.routes.of(topic)
    known = proxy.broker.groups.find(group)
    in_order = known is not None and known.is_consume_message_orderly and not bind_topic(known)
    assignments: list[dict[str, Any]] = []
    for data in route.queues:
        is_there = MASTER_ID in route.broker_ids.get(data.broker_name, ())
        if not (data.perm & PERM_READ and data.read_queue_count and is_there):
            continue
        about = {
            "topic": request.topic,
            "permission": int(permission_of(data.perm)),
            "broker": told_broker(proxy, data.broker_name, MASTER_ID, request.endpoints),
        }
        queue_ids = range(data.read_queue_count) if in_order else (_ANY_QUEUE,)
        assignments += [{"message_queue": {**about, "id": queue_id}} for queue_id in queue_ids]
    if not assignments:
        raise ProxyError(Code.FORBIDDEN, "no readable queue")
    return MESSAGES["QueryAssignmentResponse"](status=status(Code.OK), assignments=assignments)
