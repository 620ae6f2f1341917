"""GET_TOPIC_CONFIG: the settings of one topic, with its mapping if it is static (5.x)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.rocketmq.wire.codes import ResponseCode
from logstore.compat.rocketmq.wire.fields import read_flag, read_text
from logstore.compat.rocketmq.wire.refusals import RefusedError
from logstore.compat.rocketmq.wire.remoting import Response
from logstore.segments.rocketmq.tables.java_json import format_json

if TYPE_CHECKING:
    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.connection import Channel
    from logstore.compat.rocketmq.wire.remoting import Command


def handle(broker: Broker, channel: Channel, request: Command) -> Response:
    """Serve one request."""
    topic = read_text(request.ext_fields, "topic")
    config = broker.topics.get(topic)
    if config is None:
        raise RefusedError(ResponseCode.TOPIC_NOT_EXIST, f"No topic in this broker. topic: {topic}")
    content = config.to_json()
    detail = broker.static_topics.details.get(topic)
    if detail is not None and read_flag(request.ext_fields, "lo", default=False):
        content["mappingDetail"] = detail.to_json()
    body = format_json(dict(sorted(content.items())))
    return Response(ResponseCode.SUCCESS, body=body)
