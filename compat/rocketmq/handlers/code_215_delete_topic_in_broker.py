"""DELETE_TOPIC_IN_BROKER: a topic goes, with its queues and what groups have committed there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.rocketmq.topics.topic_changes import check_not_system, delete_topic
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
    if not topic.strip():
        raise RefusedError(ResponseCode.INVALID_PARAMETER, "The specified topic is blank.")
    check_not_system(broker, topic)
    if broker.settings.clears_retry_topics:
        for group in broker.store.consumer_offsets.groups_of(topic):
            for pop_retry in (f"%RETRY%{group}_{topic}", f"%RETRY%{group}+{topic}"):
                if broker.topics.get(pop_retry) is not None:
                    delete_topic(broker, pop_retry)
    delete_topic(broker, topic)
    return Response(ResponseCode.SUCCESS)
