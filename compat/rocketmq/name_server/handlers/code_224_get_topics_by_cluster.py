"""GET_TOPICS_BY_CLUSTER: the topics that any broker of a cluster serves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.rocketmq.name_server.route_bodies import topic_list_body
from logstore.compat.rocketmq.wire.codes import ResponseCode
from logstore.compat.rocketmq.wire.fields import read_text
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
    topics = server.routes.topics_of_cluster(read_text(request.ext_fields, "cluster"))
    return Response(ResponseCode.SUCCESS, body=topic_list_body(topics))
