"""QUERY_CONSUME_QUEUE: units of a queue as they stand in its files."""

from __future__ import annotations

import json
import re
import struct
from typing import TYPE_CHECKING

from logstore.compat.rocketmq.wire.bodies import object_body
from logstore.compat.rocketmq.wire.codes import ResponseCode
from logstore.compat.rocketmq.wire.fields import read_int, read_long, read_text
from logstore.compat.rocketmq.wire.refusals import RefusedError
from logstore.compat.rocketmq.wire.remoting import Response
from logstore.segments.rocketmq.filters.sql_filter import SqlFilter
from logstore.segments.rocketmq.messages.java_int import as_java_long
from logstore.segments.rocketmq.queues.batch_consume_queue import BatchConsumeQueue, BatchUnit
from logstore.segments.rocketmq.queues.consume_queue_ext import (
    ConsumeQueueExtUnit,
    is_ext_address,
)
from logstore.segments.rocketmq.queues.consume_queue_unit import UNIT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.connection import Channel
    from logstore.compat.rocketmq.wire.remoting import Command
    from logstore.segments.rocketmq.reading.get_message import ReadableQueue
    from logstore.segments.rocketmq.reading.message_filter import MessageFilter

#: an array of numbers over several lines
_NUMBERS = re.compile(r"\[[-\d,\s]+\]")


def handle(broker: Broker, channel: Channel, request: Command) -> Response:
    """Serve one request."""
    broker.catch_up()
    fields = request.ext_fields
    topic, queue_id = read_text(fields, "topic"), read_int(fields, "queueId")
    queue = broker.store.consume_queues.get(topic, queue_id)
    if queue is None:
        raise RefusedError(ResponseCode.SYSTEM_ERROR, f"{queue_id}@{topic} is not exist!")
    index, count = read_long(fields, "index"), read_int(fields, "count")
    start = index
    if not isinstance(queue, BatchConsumeQueue):
        start = as_java_long(index * queue.unit_size_bytes) // queue.unit_size_bytes
        count -= as_java_long(start - index)
    if not queue.min_queue_offset <= start < queue.max_queue_offset:
        remark = f"Index {index} of {queue_id}@{topic} is not exist!"
        return Response(ResponseCode.SUCCESS, remark)
    members: dict[str, object] = {}
    message_filter: MessageFilter | None = None
    group = fields.get("consumerGroup")
    if group is not None:
        subscription = broker.consumers.subscription(group, topic)
        if subscription is None:
            members["filterData"] = f"{group}@{topic} is not online!"
        else:
            members["subscriptionData"] = subscription.to_json()
            found = broker.store.consumer_filters.get(topic, group)
            members["filterData"] = _pretty(None if found is None else found.to_json())
            message_filter = subscription.tag_filter
            if not subscription.is_by_tag:
                message_filter = SqlFilter(found, broker.bloom_filter)
    members["queueData"] = [
        _row(queue, unit, message_filter, is_for_group="subscriptionData" in members)
        for unit in _units(queue, start, count)
    ]
    body = object_body(
        maxQueueIndex=queue.max_queue_offset, minQueueIndex=queue.min_queue_offset, **members
    )
    return Response(ResponseCode.SUCCESS, "not set any response code", body=body)


def _pretty(content: object) -> str:
    """Return what fastjson prints of it for people to read: with arrays of numbers in a line."""
    text = json.dumps(content, ensure_ascii=False, indent="\t", separators=(",", ":"))
    return _NUMBERS.sub(lambda found: re.sub(r"\s", "", found[0]), text)


def _units(queue: ReadableQueue, start: int, count: int) -> Iterator[tuple[int, int, int]]:
    """Yield place, size and tags code of every unit; of batches a few have many offsets."""
    is_batch = isinstance(queue, BatchConsumeQueue)
    data = queue.units(start, max(count, 0) + is_batch)
    for position in range(0, len(data), queue.unit_size_bytes):
        if is_batch and BatchUnit.decode(data, position).queue_offset - start >= count:
            return
        yield UNIT.unpack_from(data, position)


def _row(
    queue: ReadableQueue,
    unit: tuple[int, int, int],
    message_filter: MessageFilter | None,
    *,
    is_for_group: bool,
) -> dict[str, object]:
    physical_offset, size_bytes, tags_code = unit
    row: dict[str, object] = {
        "eval": False,
        "physicOffset": physical_offset,
        "physicSize": size_bytes,
        "tagsCode": tags_code,
    }
    if not is_ext_address(tags_code):
        return row
    found = queue.ext_unit(tags_code)
    if found is None:
        row["msg"] = f"Cq extend not exist!addr: {tags_code}"
        return row
    ext = ConsumeQueueExtUnit(found.tags_code, found.store_timestamp_ms, found.filter_bit_map)
    row["tagsCode"] = ext.tags_code
    row["extendDataJson"] = _ext_json(ext)
    if ext.bit_map:
        row["bitMap"] = _bits(ext.bit_map)
    if is_for_group:
        row["eval"] = message_filter is None or message_filter.matches_unit(ext.tags_code, ext)
    return row


def _bits(bit_map: bytes) -> str:
    """Return bits from the last one on, with lines between groups of eight bytes (BitsArray)."""
    rows = [f"{byte:08b}" + "\n" * (not number % 8) for number, byte in enumerate(bit_map)]
    return "".join(reversed(rows))


def _ext_json(ext: ConsumeQueueExtUnit) -> str:
    """Return what the extension holds as fastjson prints it: bytes are numbers with a sign."""
    content: dict[str, object] = {
        "msgStoreTime": ext.store_timestamp_ms,
        "size": ext.size_bytes,
        "tagsCode": ext.tags_code,
    }
    if ext.bit_map:
        signed = list(struct.unpack(f"{len(ext.bit_map)}b", ext.bit_map))
        content = {"filterBitMap": signed, **content}
    return json.dumps(content, separators=(",", ":"))
