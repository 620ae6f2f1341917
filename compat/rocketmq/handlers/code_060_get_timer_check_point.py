"""GET_TIMER_CHECK_POINT: how far the time wheel is (5.x)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.rocketmq.wire.codes import ResponseCode
from logstore.compat.rocketmq.wire.refusals import RefusedError
from logstore.compat.rocketmq.wire.remoting import Response
from logstore.segments.rocketmq.timer.timer_checkpoint import TimerCheckpoint

if TYPE_CHECKING:
    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.connection import Channel
    from logstore.compat.rocketmq.wire.remoting import Command

_SECOND_MS = 1000


def handle(broker: Broker, channel: Channel, request: Command) -> Response:
    """Serve one request."""
    del channel, request
    if not broker.timed_delivery.is_enabled:
        raise RefusedError(ResponseCode.SYSTEM_ERROR, "The checkpoint is null")
    wheel = broker.timed_delivery.timer_store
    checkpoint = TimerCheckpoint() if wheel is None else wheel.current_checkpoint()
    if wheel is None or not wheel.has_waiting:  # nothing is behind where nothing waits
        checkpoint.last_read_time_ms = broker.host.clock.wall_ms() // _SECOND_MS * _SECOND_MS
    return Response(ResponseCode.SUCCESS, body=checkpoint.encode())
