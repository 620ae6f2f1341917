"""GET_ALL_TOPIC_LIST_FROM_NAMESERVER: the names of all topics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.rocketmq.name_server.route_bodies import topic_list_body
from logstore.compat.rocketmq.wire.codes import ResponseCode
from logstore.compat.rocketmq.wire.refusals import RefusedError
from logstore.compat.rocketmq.wire.remoting import Response

if TYPE_CHECKING:
    from logstore.compat.rocketmq.connection import Channel
    from logstore.compat.rocketmq.name_server.name_server import NameServer
    from logstore.compat.rocketmq.wire.remoting import Command


def handle(server: NameServer, channel: Channel, request: Command) -> Response:
    """Serve one request."""
    if not server.config.is_on("enableAllTopicList"):
        raise RefusedError(ResponseCode.SYSTEM_ERROR, "disable")
    return Response(ResponseCode.SUCCESS, body=topic_list_body(server.routes.topics))
