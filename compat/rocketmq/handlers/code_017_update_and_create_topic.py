"""
UPDATE_AND_CREATE_TOPIC: a new topic, or other settings of one that is there.

`attributes` are changes: ``+name=value`` sets one, ``-name`` removes it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.rocketmq.topics.names import check_topic
from logstore.compat.rocketmq.topics.topic_changes import (
    check_not_system,
    parse_attributes,
    put_topic,
)
from logstore.compat.rocketmq.wire.codes import ResponseCode
from logstore.compat.rocketmq.wire.fields import read_flag, read_int, read_text
from logstore.compat.rocketmq.wire.refusals import RefusedError
from logstore.compat.rocketmq.wire.remoting import Response
from logstore.segments.rocketmq.tables.topics import TopicConfig

if TYPE_CHECKING:
    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.connection import Channel
    from logstore.compat.rocketmq.wire.remoting import Command

_FILTER_TYPES = ("SINGLE_TAG", "MULTI_TAG")


def handle(broker: Broker, channel: Channel, request: Command) -> Response:
    """Serve one request."""
    put_topic(broker, _read(broker, request))
    # Java forgets to take back what it says of an answer before it is one.
    return Response(ResponseCode.SUCCESS, "not set any response code")


def _read(broker: Broker, request: Command) -> TopicConfig:
    fields = request.ext_fields
    filter_type = read_text(fields, "topicFilterType")
    if filter_type not in _FILTER_TYPES:
        remark = f"topicFilterType = [{filter_type}] value invalid"
        raise RefusedError(ResponseCode.SYSTEM_ERROR, remark)
    topic = read_text(fields, "topic")
    check_topic(topic)
    check_not_system(broker, topic)
    return TopicConfig(
        topic,
        read_int(fields, "readQueueNums"),
        read_int(fields, "writeQueueNums"),
        read_int(fields, "perm"),
        filter_type,
        read_int(fields, "topicSysFlag", 0),
        read_flag(fields, "order"),
        parse_attributes(fields.get("attributes") or ""),
    )
