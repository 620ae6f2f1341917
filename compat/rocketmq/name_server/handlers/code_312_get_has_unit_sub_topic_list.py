"""GET_HAS_UNIT_SUB_TOPIC_LIST: topics that unit consumers subscribe to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.rocketmq.name_server.route_bodies import topic_list_body
from logstore.compat.rocketmq.name_server.routes import UNIT_SUB_FLAG
from logstore.compat.rocketmq.wire.codes import ResponseCode
from logstore.compat.rocketmq.wire.refusals import RefusedError
from logstore.compat.rocketmq.wire.remoting import Response

if TYPE_CHECKING:
    from logstore.compat.rocketmq.connection import Channel
    from logstore.compat.rocketmq.name_server.name_server import NameServer
    from logstore.compat.rocketmq.wire.remoting import Command


def handle(server: NameServer, channel: Channel, request: Command) -> Response:
    """Serve one request."""
    if not server.config.is_on("enableTopicList"):
        raise RefusedError(ResponseCode.SYSTEM_ERROR, "disable")
    topics = server.routes.topics_with(lambda flags: bool(flags & UNIT_SUB_FLAG))
    return Response(ResponseCode.SUCCESS, body=topic_list_body(topics))
