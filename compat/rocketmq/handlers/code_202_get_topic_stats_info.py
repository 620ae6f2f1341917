"""GET_TOPIC_STATS_INFO: first and last queue offsets of a topic's queues."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.rocketmq.broker_stats import TOPIC_PUT_NUMS
from logstore.compat.rocketmq.wire.bodies import object_body, queue_table
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
    topic = read_text(request.ext_fields, "topic")
    config = broker.topics.get(topic)
    if config is None:
        raise RefusedError(ResponseCode.TOPIC_NOT_EXIST, f"topic[{topic}] not exist")
    table: dict[MessageQueue, dict[str, int]] = {}
    store = broker.store
    for queue_id in range(max(config.write_queue_count, config.read_queue_count)):
        low = max(store.min_queue_offset(topic, queue_id), 0)
        high = max(store.max_queue_offset(topic, queue_id), 0)
        stored_ms = store.store_timestamp_at(topic, queue_id, high - 1) if high else 0
        table[MessageQueue(topic, broker.settings.broker_name, queue_id)] = {
            "lastUpdateTimestamp": stored_ms,
            "maxOffset": high,
            "minOffset": low,
        }
    body = object_body(
        offsetTable=queue_table(table), topicPutTps=broker.stats.rate(TOPIC_PUT_NUMS, topic)
    )
    return Response(ResponseCode.SUCCESS, body=body)
