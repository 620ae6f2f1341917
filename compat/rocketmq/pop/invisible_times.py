"""Popped messages that are to be invisible for another time (ChangeInvisibleTimeProcessor)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.rocketmq.lite.lite_acks import change_lite
from logstore.compat.rocketmq.pop.acking import (
    ack_origin,
    answered_when_stored,
    queue_bounds,
)
from logstore.compat.rocketmq.pop.checkpoints import Checkpoint
from logstore.compat.rocketmq.pop.handles import handle_in
from logstore.compat.rocketmq.pop.pop_requests import NO_REMARK
from logstore.compat.rocketmq.wire.codes import ResponseCode
from logstore.compat.rocketmq.wire.fields import (
    as_fields,
    read_flag,
    read_int,
    read_long,
    read_text,
)
from logstore.compat.rocketmq.wire.refusals import RefusedError
from logstore.compat.rocketmq.wire.remoting import Response

if TYPE_CHECKING:
    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.connection import Channel
    from logstore.compat.rocketmq.pop.handles import Handle
    from logstore.compat.rocketmq.wire.remoting import Command
    from logstore.compat.waiting import Later

_NO_CHANGE = as_fields(popTime=0, invisibleTime=0, reviveQid=0)


def change_invisible_time(
    broker: Broker, channel: Channel, request: Command
) -> Response | Later[Response]:
    """
    Give a message another time, by a checkpoint of its own in place of the one it came with.

    Raises:
        RefusedError: there is no such queue or message, or the handle cannot be read.

    """
    fields = request.ext_fields
    topic, queue_id = read_text(fields, "topic"), read_int(fields, "queueId")
    queue_offset = read_long(fields, "offset")
    invisible_ms = read_long(fields, "invisibleTime")
    try:
        low, high = queue_bounds(broker, channel, topic, queue_id, queue_offset)
    except RefusedError as refusal:
        raise RefusedError(refusal.code, refusal.remark, _NO_CHANGE) from None
    if fields.get("liteTopic", "").strip():
        broker.catch_up()
        return change_lite(broker, fields)
    if not low <= queue_offset < high:
        return Response(ResponseCode.NO_MESSAGE, NO_REMARK, _NO_CHANGE)
    handle = handle_in(fields)
    group = read_text(fields, "consumerGroup")
    if handle.is_ordered:
        return _change_in_order(
            broker, (topic, group, queue_id), queue_offset, handle, invisible_ms
        )
    # In the millisecond of the pop it would be called as the checkpoint that it replaces, and be
    # acknowledged with it: in Java such a message may never come again.
    pop_time_ms = max(broker.host.clock.wall_ms(), handle.pop_time_ms + 1)
    checkpoint = Checkpoint(
        topic,
        group,
        queue_id,
        queue_offset,
        pop_time_ms,
        invisible_ms,
        handle.broker_name,
        [0],
        is_suspended=read_flag(fields, "suspend", default=False),
    )
    put = broker.popping.revive_log.put_checkpoint(checkpoint, handle.revive_queue_id)
    if not put.is_ok:
        return Response(ResponseCode.SYSTEM_ERROR, NO_REMARK, _NO_CHANGE)
    broker.stats.count_checkpoint(group, topic)
    end = ack_origin(broker, handle, topic, group, queue_id, queue_offset)
    answer = _answer(checkpoint.pop_time_ms, invisible_ms, handle)
    return answered_when_stored(broker, max(end, put.next_physical_offset), answer)


def _change_in_order(
    broker: Broker,
    queue: tuple[str, str, int],
    queue_offset: int,
    handle: Handle,
    invisible_ms: int,
) -> Response:
    topic, group, queue_id = queue
    if queue_offset < broker.store.consumer_offsets.query(group, topic, queue_id):
        return Response(ResponseCode.SUCCESS, NO_REMARK, _NO_CHANGE)
    visible_ms = broker.host.clock.wall_ms() + invisible_ms
    broker.popping.orders.change_visible_time(
        topic, group, queue_id, queue_offset, handle.pop_time_ms, visible_ms
    )
    return _answer(handle.pop_time_ms, visible_ms - handle.pop_time_ms, handle)


def _answer(pop_time_ms: int, invisible_ms: int, handle: Handle) -> Response:
    fields = as_fields(
        popTime=pop_time_ms, invisibleTime=invisible_ms, reviveQid=handle.revive_queue_id
    )
    return Response(ResponseCode.SUCCESS, NO_REMARK, fields)
