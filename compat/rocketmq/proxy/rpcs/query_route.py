"""QueryRoute: the queues of a topic, what may be done with them, and where."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from logstore.compat.rocketmq.proxy.checks import topic_of
from logstore.compat.rocketmq.proxy.codes import Code
from logstore.compat.rocketmq.proxy.failures import status
from logstore.compat.rocketmq.proxy.routes import message_types
from logstore.compat.rocketmq.proxy.schema import MESSAGES
from logstore.compat.rocketmq.proxy.told_queues import check_endpoints, told_broker, told_queues

if TYPE_CHECKING:
    from logstore.compat.rocketmq.proxy.clients import ProxyClient
    from logstore.compat.rocketmq.proxy.proxy import Caller


async def handle(client: ProxyClient, request: Any, caller: Caller) -> Any:
    """Serve one request."""
    del caller
    proxy, topic = client.proxy, topic_of(request.topic)
    check_endpoints(request.endpoints)
    route = await proxy.routes.of(topic)
    accepted = [int(kind) for kind in message_types(await proxy.routes.type_name(client, topic))]
    queues = [
        {**queue, "topic": request.topic, "accept_message_types": accepted}
        for data in route.queues
        for broker_id in route.broker_ids.get(data.broker_name, ())
        for queue in told_queues(
            data, told_broker(proxy, data.broker_name, broker_id, request.endpoints)
        )
    ]
    return MESSAGES["QueryRouteResponse"](status=status(Code.OK), message_queues=queues)
