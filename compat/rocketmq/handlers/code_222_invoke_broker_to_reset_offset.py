"""INVOKE_BROKER_TO_RESET_OFFSET: a group goes on at a time, at the end, or at a place."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.rocketmq.groups.offset_resets import Reset, reset_by_clients, reset_on_server
from logstore.compat.rocketmq.wire.codes import ResponseCode
from logstore.compat.rocketmq.wire.fields import read_flag, read_int, read_long, read_text
from logstore.compat.rocketmq.wire.remoting import Response

if TYPE_CHECKING:
    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.connection import Channel
    from logstore.compat.rocketmq.wire.remoting import Command


def handle(broker: Broker, channel: Channel, request: Command) -> Response:
    """Serve one request."""
    broker.catch_up()
    fields = request.ext_fields
    has_place = "offset" in fields
    reset = Reset(
        topic=read_text(fields, "topic"),
        group=read_text(fields, "group"),
        timestamp_ms=read_long(fields, "timestamp"),
        is_forced=read_flag(fields, "isForce", default=False),
        queue_id=read_int(fields, "queueId", -1),
        queue_offset=read_long(fields, "offset") if has_place else None,
    )
    if broker.settings.resets_on_server:
        return Response(ResponseCode.SUCCESS, body=reset_on_server(broker, reset))
    body = reset_by_clients(broker, reset, is_for_cpp=request.language == "CPP")
    return Response(ResponseCode.SUCCESS, "not set any response code", body=body)
