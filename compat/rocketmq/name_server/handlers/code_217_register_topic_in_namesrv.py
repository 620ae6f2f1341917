"""REGISTER_TOPIC_IN_NAMESRV: a broker of 5.x adds one topic to what it serves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.rocketmq.name_server.routes import QueueData
from logstore.compat.rocketmq.wire.bodies import read_object
from logstore.compat.rocketmq.wire.codes import ResponseCode
from logstore.compat.rocketmq.wire.fields import read_text
from logstore.compat.rocketmq.wire.remoting import Response

if TYPE_CHECKING:
    from logstore.compat.rocketmq.connection import Channel
    from logstore.compat.rocketmq.name_server.name_server import NameServer
    from logstore.compat.rocketmq.wire.remoting import Command


def handle(server: NameServer, channel: Channel, request: Command) -> Response:
    """Serve one request."""
    topic = read_text(request.ext_fields, "topic")
    if request.body:
        queues = [
            QueueData(
                data["brokerName"],
                int(data["readQueueNums"]),
                int(data["writeQueueNums"]),
                int(data["perm"]),
                int(data.get("topicSysFlag") or 0),
            )
            for data in read_object(request.body).get("queueDatas") or ()
        ]
        if queues:
            server.routes.add_topic(topic, queues)
    return Response(ResponseCode.SUCCESS)
