"""VIEW_BROKER_STATS_DATA: one counter over the last minute, hour and day."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.rocketmq.wire.bodies import object_body
from logstore.compat.rocketmq.wire.codes import ResponseCode
from logstore.compat.rocketmq.wire.fields import read_text
from logstore.compat.rocketmq.wire.refusals import RefusedError
from logstore.compat.rocketmq.wire.remoting import Response

if TYPE_CHECKING:
    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.connection import Channel
    from logstore.compat.rocketmq.wire.remoting import Command


def handle(broker: Broker, channel: Channel, request: Command) -> Response:
    """Serve one request."""
    fields = request.ext_fields
    name, key = read_text(fields, "statsName"), read_text(fields, "statsKey")
    found = broker.stats.item(name, key)
    if found is None:
        remark = f"The stats <{name}> <{key}> not exist"
        raise RefusedError(ResponseCode.SYSTEM_ERROR, remark)
    minute, hour, day = (snapshot.to_json() for snapshot in found)
    body = object_body(statsDay=day, statsHour=hour, statsMinute=minute)
    return Response(ResponseCode.SUCCESS, body=body)
