"""DELETE_TOPIC_IN_NAMESRV: forgets a topic, in one cluster or in all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.rocketmq.wire.codes import ResponseCode
from logstore.compat.rocketmq.wire.fields import read_text
from logstore.compat.rocketmq.wire.remoting import Response

if TYPE_CHECKING:
    from logstore.compat.rocketmq.connection import Channel
    from logstore.compat.rocketmq.name_server.name_server import NameServer
    from logstore.compat.rocketmq.wire.remoting import Command


def handle(server: NameServer, channel: Channel, request: Command) -> Response:
    """Serve one request."""
    fields = request.ext_fields
    server.routes.delete_topic(read_text(fields, "topic"), fields.get("clusterName"))
    return Response(ResponseCode.SUCCESS)
