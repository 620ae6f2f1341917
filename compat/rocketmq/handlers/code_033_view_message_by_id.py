"""VIEW_MESSAGE_BY_ID: the message that stands at a place of the commit log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.rocketmq.wire.codes import ResponseCode
from logstore.compat.rocketmq.wire.fields import read_long
from logstore.compat.rocketmq.wire.refusals import RefusedError
from logstore.compat.rocketmq.wire.remoting import Response

if TYPE_CHECKING:
    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.connection import Channel
    from logstore.compat.rocketmq.wire.remoting import Command


def handle(broker: Broker, channel: Channel, request: Command) -> Response:
    """Serve one request."""
    physical_offset = read_long(request.ext_fields, "offset")
    found = broker.store.message_extent(physical_offset)
    if found is None:
        raise RefusedError(
            ResponseCode.SYSTEM_ERROR, f"can not find message by the offset, {physical_offset}"
        )
    return Response(ResponseCode.SUCCESS, body=[found] if found.size_bytes else b"")
