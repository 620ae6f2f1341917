"""CONSUME_MESSAGE_DIRECTLY: have one consumer consume one message now, and say how it went."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.rocketmq.clients.client_calls import call_consumer
from logstore.compat.rocketmq.wire.codes import RequestCode, ResponseCode
from logstore.compat.rocketmq.wire.fields import read_text
from logstore.compat.rocketmq.wire.refusals import RefusedError
from logstore.segments.rocketmq.messages.message_id import MessageIdError, java_offset_in

if TYPE_CHECKING:
    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.connection import Channel
    from logstore.compat.rocketmq.wire.remoting import Command, Response
    from logstore.compat.waiting import Later


def handle(
    broker: Broker,
    channel: Channel,
    request: Command,
) -> Later[Response]:
    """Serve one request."""
    fields = dict(request.ext_fields)
    group, client_id = read_text(fields, "consumerGroup"), fields.get("clientId")
    fields["brokerName"] = broker.settings.broker_name
    topic = broker.topics.get(fields.get("topic") or "")
    if topic is not None:
        fields["topicSysFlag"] = str(topic.topic_sys_flag)
    config = broker.groups.find(group)
    if config is not None:
        fields["groupSysFlag"] = str(config.group_sys_flag)
    try:
        physical_offset = java_offset_in(read_text(fields, "msgId"))
    except MessageIdError as error:
        raise RefusedError(ResponseCode.SYSTEM_ERROR, str(error)) from error
    found = broker.store.message_extent(physical_offset)
    if found is None:
        raise RefusedError(
            ResponseCode.SYSTEM_ERROR, f"can not find message by the offset, {physical_offset}"
        )
    code = RequestCode.CONSUME_MESSAGE_DIRECTLY
    return call_consumer(broker, code, group, client_id, fields, found.read())
