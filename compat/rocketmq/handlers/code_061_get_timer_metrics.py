"""GET_TIMER_METRICS: how many messages of each topic wait in the time wheel (5.x)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.rocketmq.wire.codes import ResponseCode
from logstore.compat.rocketmq.wire.refusals import RefusedError
from logstore.compat.rocketmq.wire.remoting import Response
from logstore.segments.rocketmq.timer.timer_metrics import TimerMetrics

if TYPE_CHECKING:
    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.connection import Channel
    from logstore.compat.rocketmq.wire.remoting import Command


def handle(broker: Broker, channel: Channel, request: Command) -> Response:
    """Serve one request."""
    del channel, request
    if not broker.timed_delivery.is_enabled:
        raise RefusedError(ResponseCode.SYSTEM_ERROR, "The timer message store is null")
    wheel = broker.timed_delivery.timer_store
    if wheel is None:
        metrics = TimerMetrics(broker.host, f"{broker.store.directory}/config")
    else:
        metrics = wheel.metrics
    return Response(ResponseCode.SUCCESS, body=metrics.encoded(is_pretty=False))
