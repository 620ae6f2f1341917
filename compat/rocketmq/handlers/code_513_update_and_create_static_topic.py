"""
UPDATE_AND_CREATE_STATIC_TOPIC: a topic whose logic queues are told in the body (5.x).

A mapping that is refused leaves everything as it was, where Java has changed the topic by then.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import attrs

from logstore.compat.rocketmq.static_topics.mapping_checks import MappingRefusedError
from logstore.compat.rocketmq.topics.topic_changes import read_topic
from logstore.compat.rocketmq.wire.codes import ResponseCode
from logstore.compat.rocketmq.wire.fields import read_flag
from logstore.compat.rocketmq.wire.remoting import Response
from logstore.segments.rocketmq.tables.java_json import JsonError, parse_json
from logstore.segments.rocketmq.tables.json_fields import JsonTypeError, as_object
from logstore.segments.rocketmq.tables.queue_mappings import TopicQueueMappingDetail

if TYPE_CHECKING:
    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.connection import Channel
    from logstore.compat.rocketmq.wire.remoting import Command


def handle(broker: Broker, channel: Channel, request: Command) -> Response:
    """Serve one request."""
    wanted = read_topic(broker, request.ext_fields)
    if request.body:
        detail = _read(bytes(request.body))
        is_forced = read_flag(request.ext_fields, "force", default=False)
        broker.static_topics.put(detail, is_forced=is_forced)
    known = broker.topics.get(wanted.topic_name)
    attributes: Mapping[str, str] = {} if known is None else known.attributes
    # Order is not asked for, nor are attributes: those that a topic has it keeps.
    broker.topics.put(attrs.evolve(wanted, is_order=False, attributes=attributes))
    # Java forgets to take back what it says of an answer before it is one.
    return Response(ResponseCode.SUCCESS, "not set any response code")


def _read(body: bytes) -> TopicQueueMappingDetail:
    try:
        return TopicQueueMappingDetail.from_json(as_object(parse_json(body.decode())))
    except (JsonError, JsonTypeError, UnicodeDecodeError) as error:
        raise MappingRefusedError(f"the mapping cannot be read: {error}") from error
