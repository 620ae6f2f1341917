"""REGISTER_TOPIC_IN_NAMESRV: a broker of 5.x adds one topic to what it serves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from logstore.compat.rocketmq.name_server.routes import QueueData
from logstore.compat.rocketmq.wire.bodies import object_in, objects_in, read_object
from logstore.compat.rocketmq.wire.codes import ResponseCode
from logstore.compat.rocketmq.wire.fields import read_text
from logstore.compat.rocketmq.wire.refusals import RefusedError
from logstore.compat.rocketmq.wire.remoting import Response
from logstore.segments.rocketmq.tables.json_fields import JsonTypeError, as_int32, as_text

if TYPE_CHECKING:
    from logstore.compat.rocketmq.connection import Channel
    from logstore.compat.rocketmq.name_server.name_server import NameServer
    from logstore.compat.rocketmq.wire.remoting import Command


def handle(server: NameServer, channel: Channel, request: Command) -> Response:
    """Serve one request."""
    topic = read_text(request.ext_fields, "topic")
    if request.body and bytes(request.body) != b"null":
        route = read_object(request.body)
        try:
            queues = [_queue_of(fields) for fields in objects_in(route, "queueDatas")]
        except JsonTypeError as error:
            raise RefusedError(ResponseCode.SYSTEM_ERROR, f"queueDatas: {error}") from error
        # What nothing is taken from must be what it is called all the same.
        objects_in(route, "brokerDatas")
        object_in(route, "filterServerTable")
        if queues:
            server.routes.add_topic(topic, queues)
    return Response(ResponseCode.SUCCESS)


def _queue_of(fields: dict[str, Any]) -> QueueData:
    """Return a queue; numbers that it lacks are 0, and without a name it is of no broker."""
    return QueueData(
        as_text(fields.get("brokerName") or ""),
        *(
            as_int32(fields.get(name) or 0)
            for name in ("readQueueNums", "writeQueueNums", "perm", "topicSysFlag")
        ),
    )
