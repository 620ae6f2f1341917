"""GET_ROUTEINFO_BY_TOPIC: where a topic is served, in the shape that the client can read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.rocketmq.name_server.kv_config import ORDER_NAMESPACE
from logstore.compat.rocketmq.name_server.route_bodies import route_body
from logstore.compat.rocketmq.topics.names import SEE_FAQ
from logstore.compat.rocketmq.wire.codes import ResponseCode
from logstore.compat.rocketmq.wire.fields import read_flag, read_text
from logstore.compat.rocketmq.wire.refusals import RefusedError
from logstore.compat.rocketmq.wire.remoting import Response

if TYPE_CHECKING:
    from logstore.compat.rocketmq.connection import Channel
    from logstore.compat.rocketmq.name_server.name_server import NameServer
    from logstore.compat.rocketmq.wire.remoting import Command


def handle(server: NameServer, channel: Channel, request: Command) -> Response:
    """Serve one request."""
    fields = request.ext_fields
    config = server.config
    if config.is_on("needWaitForService"):
        waited_ms = server.host.clock.monotonic_ms() - server.started_ms
        if waited_ms < config.number("waitSecondsForService") * 1000:
            raise RefusedError(ResponseCode.SYSTEM_ERROR, "name server not ready")
    topic = read_text(fields, "topic")
    route = server.routes.route(topic)
    if route is None:
        raise RefusedError(
            ResponseCode.TOPIC_NOT_EXIST,
            f"No topic route info in name server for the topic: {topic}{SEE_FAQ}",
        )
    zone = fields.get("__ZONE_NAME", "")
    if zone.strip() and read_flag(fields, "__ZONE_MODE", default=False):
        route = route.near(zone)
    order_config = None
    if config.is_on("orderMessageEnable"):
        order_config = server.kv_config.get(ORDER_NAMESPACE, topic)
    body = route_body(
        route,
        request.version,
        is_standard=read_flag(fields, "acceptStandardJsonOnly", default=False),
        order_config=order_config,
    )
    return Response(ResponseCode.SUCCESS, body=body)
