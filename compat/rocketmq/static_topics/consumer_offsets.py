"""
Where groups go on in a logic queue: each stretch's broker keeps it for the stretch.

Who asks is told what the newest stretch knows that knows anything (ConsumerManageProcessor).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.rocketmq.static_topics.broker_calls import CallError
from logstore.compat.rocketmq.wire.codes import RequestCode, ResponseCode
from logstore.compat.rocketmq.wire.fields import read_int, read_long, read_text
from logstore.compat.rocketmq.wire.remoting import Response
from logstore.segments.rocketmq.tables.queue_mappings import find_item

if TYPE_CHECKING:
    from logstore.compat.rocketmq.static_topics.mapped_request import MappedRequest
    from logstore.segments.rocketmq.tables.queue_mappings import LogicQueueMappingItem

_FOUND_OR_NOT = (ResponseCode.SUCCESS, ResponseCode.QUERY_NOT_FOUND)


async def update_consumer_offset(request: MappedRequest) -> Response:
    """Keep an offset where its stretch is."""
    fields = request.command.ext_fields
    items = request.items_of(read_int(fields, "queueId"))
    offset = read_long(fields, "commitOffset")
    item = find_item(items, offset)
    if item is None:
        raise CallError("nobody knows yet where the queue begins")
    changed = request.fields_for(item, commitOffset=str(item.queue_offset_of(offset)))
    if request.is_here(item):
        request.command.ext_fields = changed
        response: Response = request.handle(request.broker, request.channel, request.command)
        return response
    code = RequestCode.UPDATE_CONSUMER_OFFSET
    await request.broker.static_topics.calls.ask(item.broker_name, code, changed)
    return Response(ResponseCode.SUCCESS, "", {})


async def query_consumer_offset(request: MappedRequest) -> Response:
    """Return where a group goes on."""
    items = request.items_of(read_int(request.command.ext_fields, "queueId"))
    if len(items) == 1 and items[0].logic_offset == 0:  # it never moved
        request.command.ext_fields = request.fields_for(items[0])
        response: Response = request.handle(request.broker, request.channel, request.command)
        return response
    for item in reversed(items):
        offset = await _committed(request, item)
        if offset >= 0:
            known = {"offset": str(item.logic_of(offset))}
            return Response(ResponseCode.SUCCESS, None, known)
    remark = "Not found, maybe this group consumer boot first"
    return Response(ResponseCode.QUERY_NOT_FOUND, remark, {})


async def _committed(request: MappedRequest, item: LogicQueueMappingItem) -> int:
    """Return what a group committed in a stretch, -1 for nothing."""
    fields = request.command.ext_fields
    if request.is_here(item):
        group, topic = read_text(fields, "consumerGroup"), request.detail.topic
        return request.broker.store.consumer_offsets.query(group, topic, item.queue_id)
    answer = await request.broker.static_topics.calls.ask(
        item.broker_name,
        RequestCode.QUERY_CONSUMER_OFFSET,
        request.fields_for(item, setZeroIfNotFound="false"),
        _FOUND_OR_NOT,
    )
    if answer.code == ResponseCode.QUERY_NOT_FOUND:
        return -1
    return read_long(answer.ext_fields, "offset")
