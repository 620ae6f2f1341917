"""
UPDATE_CONSUMER_OFFSET: where a group will go on in a queue; mostly without an answer.

While a reset on the server waits to be told to the group, its clients know nothing that counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.rocketmq.wire.codes import ResponseCode
from logstore.compat.rocketmq.wire.fields import read_int, read_long, read_text
from logstore.compat.rocketmq.wire.remoting import Response

if TYPE_CHECKING:
    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.connection import Channel
    from logstore.compat.rocketmq.wire.remoting import Command


def handle(broker: Broker, channel: Channel, request: Command) -> Response:
    """Serve one request."""
    fields = request.ext_fields
    group, topic = read_text(fields, "consumerGroup"), read_text(fields, "topic")
    if not broker.groups.contains(group):
        remark = f"Group {group} not exist!"
        return Response(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, remark, {})
    if broker.topics.get(topic) is None:
        return Response(ResponseCode.TOPIC_NOT_EXIST, f"Topic {topic} not exist!", {})
    if "queueId" not in fields:
        remark = f"QueueId is null, topic is {topic}"
        return Response(ResponseCode.INVALID_PARAMETER, remark, {})
    if "commitOffset" not in fields:
        remark = f"Offset is null, topic is {topic}"
        return Response(ResponseCode.INVALID_PARAMETER, remark, {})
    queue_id, queue_offset = read_int(fields, "queueId"), read_long(fields, "commitOffset")
    offsets = broker.store.consumer_offsets
    if broker.settings.resets_on_server and offsets.has_reset(topic, group, queue_id):
        return Response(ResponseCode.SUCCESS, "Offset has been previously reset", {})
    offsets.commit(group, topic, queue_id, queue_offset)
    return Response(ResponseCode.SUCCESS, None, {})
