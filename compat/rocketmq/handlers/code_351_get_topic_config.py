"""GET_TOPIC_CONFIG: the settings of one topic (5.x)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.rocketmq.wire.bodies import json_body
from logstore.compat.rocketmq.wire.codes import ResponseCode
from logstore.compat.rocketmq.wire.fields import read_text
from logstore.compat.rocketmq.wire.refusals import RefusedError
from logstore.compat.rocketmq.wire.remoting import Response

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
    return Response(ResponseCode.SUCCESS, body=json_body(config.to_json()))
