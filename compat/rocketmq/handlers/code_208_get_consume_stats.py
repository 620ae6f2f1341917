"""GET_CONSUME_STATS: how far a group is behind, in one topic or in all of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.rocketmq.groups.consume_stats import ConsumeStats, topics_of_group
from logstore.compat.rocketmq.wire.codes import ResponseCode
from logstore.compat.rocketmq.wire.fields import read_text
from logstore.compat.rocketmq.wire.remoting import Response

if TYPE_CHECKING:
    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.connection import Channel
    from logstore.compat.rocketmq.wire.remoting import Command


def handle(broker: Broker, channel: Channel, request: Command) -> Response:
    """Serve one request."""
    broker.catch_up()
    fields = request.ext_fields
    group = read_text(fields, "consumerGroup")
    listed = [topic for topic in (fields.get("topicList") or "").split(";") if topic.strip()]
    topics = listed or topics_of_group(broker, group, fields.get("topic"))
    return Response(ResponseCode.SUCCESS, body=ConsumeStats(broker, group, topics).body())
