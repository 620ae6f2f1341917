"""QUERY_CONSUME_TIME_SPAN: how old the messages are that a group consumes now."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from logstore.compat.rocketmq.wire.bodies import object_body
from logstore.compat.rocketmq.wire.codes import ResponseCode
from logstore.compat.rocketmq.wire.fields import read_text
from logstore.compat.rocketmq.wire.message_queue import MessageQueue
from logstore.compat.rocketmq.wire.refusals import RefusedError
from logstore.compat.rocketmq.wire.remoting import Response

if TYPE_CHECKING:
    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.connection import Channel
    from logstore.compat.rocketmq.wire.remoting import Command


def handle(broker: Broker, channel: Channel, request: Command) -> Response:
    """Serve one request."""
    broker.catch_up()
    fields = request.ext_fields
    topic, group = read_text(fields, "topic"), read_text(fields, "group")
    config = broker.topics.get(topic)
    if config is None:
        raise RefusedError(ResponseCode.TOPIC_NOT_EXIST, f"topic[{topic}] not exist")
    spans = [_span(broker, group, topic, q) for q in range(config.write_queue_count)]
    return Response(ResponseCode.SUCCESS, body=object_body(consumeTimeSpanSet=spans))


def _span(broker: Broker, group: str, topic: str, queue_id: int) -> dict[str, object]:
    store = broker.store
    high = store.max_queue_offset(topic, queue_id)
    committed = store.consumer_offsets.query(group, topic, queue_id)
    first_ms = store.earliest_store_timestamp_ms(topic, queue_id)
    consumed_ms = first_ms
    if committed > 0:
        consumed_ms = store.store_timestamp_at(topic, queue_id, committed - 1)
    delay_ms = 0
    if committed < high:
        next_ms = store.store_timestamp_at(topic, queue_id, max(committed, 0))
        delay_ms = broker.host.clock.wall_ms() - next_ms
    last_ms = store.store_timestamp_at(topic, queue_id, high - 1)
    return {
        "consumeTimeStamp": consumed_ms,
        "consumeTimeStampStr": _time_text(consumed_ms),
        "delayTime": delay_ms,
        "maxTimeStamp": last_ms,
        "maxTimeStampStr": _time_text(last_ms),
        "messageQueue": MessageQueue(topic, broker.settings.broker_name, queue_id).to_json(),
        "minTimeStamp": first_ms,
        "minTimeStampStr": _time_text(first_ms),
    }


def _time_text(time_ms: int) -> str:
    """Return a time as the broker's clock on the wall shows it (``YYYY_MM_DD_HH_MM_SS_SSS``)."""
    seconds, millis = divmod(time_ms, 1000)
    return f"{datetime.fromtimestamp(seconds):%Y-%m-%d#%H:%M:%S}:{millis:03}"
