"""QUERY_CORRECTION_OFFSET: the smallest offsets that any group has committed in a topic."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.rocketmq.wire.bodies import number_table, object_body
from logstore.compat.rocketmq.wire.codes import ResponseCode
from logstore.compat.rocketmq.wire.fields import read_text
from logstore.compat.rocketmq.wire.remoting import Response

if TYPE_CHECKING:
    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.connection import Channel
    from logstore.compat.rocketmq.wire.remoting import Command

_NEVER = (1 << 63) - 1


def handle(broker: Broker, channel: Channel, request: Command) -> Response:
    """Serve one request."""
    fields = request.ext_fields
    topic, compared = read_text(fields, "topic"), fields.get("compareGroup") or ""
    offsets = broker.store.consumer_offsets
    passed_over = set(filter(None, (fields.get("filterGroups") or "").split(",")))
    smallest: dict[int, int] = {}
    for group in offsets.groups_of(topic) - passed_over:
        for queue_id, queue_offset in (offsets.of_group(group, topic) or {}).items():
            if queue_offset < broker.store.min_queue_offset(topic, queue_id):
                continue
            smallest[queue_id] = min(smallest.get(queue_id, queue_offset), queue_offset)
    for queue_id, queue_offset in (offsets.of_group(compared, topic) or {}).items():
        if smallest.get(queue_id, queue_offset) > queue_offset:
            smallest[queue_id] = _NEVER
    body = object_body(correctionOffsets=number_table(smallest))
    return Response(ResponseCode.SUCCESS, body=body)
