"""QueryRoute: the queues of a topic, what may be done with them, and where."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from logstore.compat.rocketmq.proxy.checks import topic_of
from logstore.compat.rocketmq.proxy.codes import Code
from logstore.compat.rocketmq.proxy.failures import status
from logstore.compat.rocketmq.proxy.routes import message_types, require_topic, route_queues
from logstore.compat.rocketmq.proxy.schema import MESSAGES

if TYPE_CHECKING:
    from logstore.compat.rocketmq.proxy.clients import ProxyClient
    from logstore.compat.rocketmq.proxy.proxy import Caller


async def handle(client: ProxyClient, request: Any, caller: Caller) -> Any:
    """Serve one request."""
    del caller
    config = require_topic(client.proxy, topic_of(request.topic))
    accepted = [int(kind) for kind in message_types(config)]
    queues = [
        {**queue, "topic": request.topic, "accept_message_types": accepted}
        for queue in route_queues(client.proxy, config, request.endpoints)
    ]
    return MESSAGES["QueryRouteResponse"](status=status(Code.OK), message_queues=queues)
