"""
Where a logic queue begins and ends, and what stands there at a time.

Source: ``AdminBrokerProcessor``. Where Java asks for the queue of the newest stretch or for the
logic queue's id on a broker that has another stretch, its own queue is asked for here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.rocketmq.static_topics.broker_calls import CallError
from logstore.compat.rocketmq.wire.codes import RequestCode, ResponseCode
from logstore.compat.rocketmq.wire.fields import read_int, read_long
from logstore.compat.rocketmq.wire.refusals import RefusedError
from logstore.compat.rocketmq.wire.remoting import Response
from logstore.segments.rocketmq.reading.time_lookup import BoundaryType
from logstore.segments.rocketmq.tables.queue_mappings import find_item

if TYPE_CHECKING:
    from logstore.compat.rocketmq.static_topics.mapped_request import MappedRequest
    from logstore.segments.rocketmq.tables.queue_mappings import Items, LogicQueueMappingItem

_LONG_MAX = 2**63 - 1


async def max_offset(request: MappedRequest) -> Response:
    """Return the offset after the last message of a logic queue."""
    item = _item_at(_items_of(request), _LONG_MAX)
    if request.is_here(item):
        store = request.broker.store
        request.broker.catch_up()
        found = store.max_queue_offset(request.detail.topic, item.queue_id)
    else:
        found = await _offset_at(request, RequestCode.GET_MAX_OFFSET, item)
    return _offset_response(item.logic_of(found))


async def min_offset(request: MappedRequest) -> Response:
    """Return the first offset of a logic queue whose message is still there."""
    queue_id = read_int(request.command.ext_fields, "queueId")
    detail = request.detail
    if not detail.leads(queue_id):
        raise RefusedError(
            ResponseCode.NOT_LEADER_FOR_QUEUE,
            f"{detail.topic}-{queue_id} is not leader in broker {detail.broker_name}, "
            f"request code {request.command.code}",
        )
    item = _item_at(detail.hosted_queues[queue_id], 0)
    if request.is_here(item):
        found = request.broker.store.min_queue_offset(detail.topic, item.queue_id)
    else:
        found = await _offset_at(request, RequestCode.GET_MIN_OFFSET, item)
    return _offset_response(item.logic_within(found), "")


async def offset_for_time(request: MappedRequest) -> Response:
    """Return the offset for a time of storage: that of the newest stretch that has one."""
    fields = request.command.ext_fields
    timestamp_ms = read_long(fields, "timestamp")
    offset = -1
    for item in _items_of(request):
        if not item.has_beginning:
            continue
        if request.is_here(item):
            request.broker.catch_up()
            offset = request.broker.store.queue_offset_for_time(
                request.detail.topic,
                item.queue_id,
                timestamp_ms,
                BoundaryType.named(fields.get("boundaryType")),
            )
            if offset > 0:
                offset = item.logic_of(offset)
                break
        else:
            found = await _offset_at(request, RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, item)
            if found >= 0 and not (item.has_end and found >= item.end_offset):
                offset = item.logic_of(found)
    return _offset_response(offset)


async def earliest_store_time(request: MappedRequest) -> Response:
    """Return when the oldest message of a logic queue was stored."""
    item = _item_at(_items_of(request), 0)
    if request.is_here(item):
        stored_ms = request.broker.store.earliest_store_timestamp_ms(
            request.detail.topic, item.queue_id
        )
    else:
        code = RequestCode.GET_EARLIEST_MSG_STORETIME
        fields = request.fields_for(item)
        answer = await request.broker.static_topics.calls.ask(item.broker_name, code, fields)
        stored_ms = read_long(answer.ext_fields, "timestamp")
    return Response(ResponseCode.SUCCESS, None, {"timestamp": str(stored_ms)})


def _items_of(request: MappedRequest) -> Items:
    return request.items_of(read_int(request.command.ext_fields, "queueId"))


def _item_at(items: Items, offset: int) -> LogicQueueMappingItem:
    item = find_item(items, offset)
    if item is None:
        raise CallError("nobody knows yet where the queue begins")
    return item


async def _offset_at(request: MappedRequest, code: RequestCode, item: LogicQueueMappingItem) -> int:
    calls = request.broker.static_topics.calls
    answer = await calls.ask(item.broker_name, code, request.fields_for(item))
    return read_long(answer.ext_fields, "offset")


def _offset_response(offset: int, remark: str | None = None) -> Response:
    return Response(ResponseCode.SUCCESS, remark, {"offset": str(offset)})
