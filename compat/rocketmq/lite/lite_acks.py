"""Messages of lite topics that are consumed (ackLite), or put off (``…InvisibleTimeForLite``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.rocketmq.lite.lite_names import queue_name
from logstore.compat.rocketmq.pop.handles import handle_in
from logstore.compat.rocketmq.pop.order_book import ILLEGAL
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
    from collections.abc import Mapping

    from logstore.compat.rocketmq.broker import Broker

_NO_CHANGE = as_fields(popTime=0, invisibleTime=0, reviveQid=0)
_ILLEGAL_OFFSET = "ack offset illegal."


def ack_lite(broker: Broker, fields: Mapping[str, str]) -> Response:
    """
    Take note that a message of a lite topic is consumed; what is behind it may be popped then.

    Raises:
        RefusedError: the group reads no such lite topic, or it was not given the message.

    """
    topic, group = read_text(fields, "topic"), read_text(fields, "consumerGroup")
    lite = broker.lite
    if lite.rules.bind_topic(group) != topic:
        remark = "group type or bind topic not match."
        raise RefusedError(ResponseCode.INVALID_PARAMETER, remark)
    queue, queue_offset = queue_name(topic, fields["liteTopic"]), read_long(fields, "offset")
    if queue_offset > lite.queues.end(queue):
        raise RefusedError(ResponseCode.NO_MESSAGE, _ILLEGAL_OFFSET)
    handle = handle_in(fields)
    if read_int(fields, "queueId") != 0 or not handle.is_ordered:
        raise RefusedError(ResponseCode.INVALID_PARAMETER, "ack queue illegal.")
    offsets = broker.store.consumer_offsets
    if queue_offset < offsets.query(group, queue, 0):
        return Response(ResponseCode.SUCCESS)
    following = lite.orders.commit(queue, group, 0, queue_offset, handle.pop_time_ms)
    if following == ILLEGAL:
        raise RefusedError(ResponseCode.MESSAGE_ILLEGAL, _ILLEGAL_OFFSET)
    if following >= 0:
        if not offsets.has_reset(queue, group, 0):
            offsets.commit(group, queue, 0, following)
        if not lite.orders.is_blocked(None, queue, group, 0, handle.invisible_ms):
            lite.events.available(group, queue)
    return Response(ResponseCode.SUCCESS)


def change_lite(broker: Broker, fields: Mapping[str, str]) -> Response:
    """
    Have a message come again at another time, or with ``suspend`` all that came with it.

    Raises:
        RefusedError: the handle cannot be read.

    """
    topic, group = read_text(fields, "topic"), read_text(fields, "consumerGroup")
    lite = broker.lite
    queue, queue_offset = queue_name(topic, fields["liteTopic"]), read_long(fields, "offset")
    if queue_offset > lite.queues.end(queue):
        return Response(ResponseCode.NO_MESSAGE, NO_REMARK, _NO_CHANGE)
    handle = handle_in(fields)
    if queue_offset < broker.store.consumer_offsets.query(group, queue, 0):
        return Response(ResponseCode.SUCCESS, NO_REMARK, _NO_CHANGE)
    visible_ms = broker.host.clock.wall_ms() + read_long(fields, "invisibleTime")
    if read_flag(fields, "suspend", default=False):
        lite.orders.suspend(queue, group, handle.pop_time_ms, visible_ms)
    else:
        lite.orders.change_visible_time(
            queue, group, 0, queue_offset, handle.pop_time_ms, visible_ms
        )
    changed = as_fields(
        popTime=handle.pop_time_ms,
        invisibleTime=visible_ms - handle.pop_time_ms,
        reviveQid=handle.revive_queue_id,
    )
    return Response(ResponseCode.SUCCESS, NO_REMARK, changed)
