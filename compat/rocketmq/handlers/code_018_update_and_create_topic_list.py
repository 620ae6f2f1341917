"""UPDATE_AND_CREATE_TOPIC_LIST: many topics, made or changed at once (5.x)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.rocketmq.topics.names import check_topic
from logstore.compat.rocketmq.topics.topic_changes import check_change, put_topic
from logstore.compat.rocketmq.wire.bodies import objects_in, read_object
from logstore.compat.rocketmq.wire.codes import ResponseCode
from logstore.compat.rocketmq.wire.refusals import RefusedError
from logstore.compat.rocketmq.wire.remoting import Response
from logstore.errors import LogStoreError
from logstore.segments.rocketmq.tables.topics import TopicConfig

if TYPE_CHECKING:
    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.connection import Channel
    from logstore.compat.rocketmq.wire.remoting import Command


def handle(broker: Broker, channel: Channel, request: Command) -> Response:
    """Serve one request."""
    try:
        listed = objects_in(read_object(request.body), "topicConfigList")
        topics = [TopicConfig.from_json(fields) for fields in listed]
    except (ValueError, LogStoreError) as error:
        raise RefusedError(ResponseCode.SYSTEM_ERROR, str(error)) from error
    for topic in topics:
        check_topic(topic.topic_name)
        check_change(broker, topic)
        if topic == broker.topics.get(topic.topic_name):
            # In Java, too: of a list in which one topic is as it was, nothing is looked at more.
            return Response(ResponseCode.SUCCESS, "not set any response code")
    for topic in topics:
        put_topic(broker, topic)
    return Response(ResponseCode.SUCCESS, "not set any response code")
