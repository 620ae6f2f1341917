"""SWITCH_TIMER_ENGINE: which engine delivers messages at a time; here it is the time wheel."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.rocketmq.wire.codes import ResponseCode
from logstore.compat.rocketmq.wire.refusals import RefusedError
from logstore.compat.rocketmq.wire.remoting import Response

if TYPE_CHECKING:
    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.connection import Channel
    from logstore.compat.rocketmq.wire.remoting import Command

_ENGINE = "E_T"
#: RocksDB's, and the one of files
_TIMELINE, _TIME_WHEEL = "R", "F"


def handle(broker: Broker, channel: Channel, request: Command) -> Response:
    """Serve one request."""
    if not broker.settings.has_timer_wheel:
        raise RefusedError(ResponseCode.INVALID_PARAMETER, "broker timerWheelEnable is false")
    if not request.ext_fields:
        raise RefusedError(ResponseCode.INVALID_PARAMETER, "param error, extFields is null")
    engine = request.ext_fields.get(_ENGINE)
    if engine == _TIMELINE:
        remark = "timerRocksDBEnable must be configured true when broker start"
        raise RefusedError(ResponseCode.INVALID_PARAMETER, remark)
    if engine != _TIME_WHEEL:
        raise RefusedError(ResponseCode.INVALID_PARAMETER, "param error")
    broker.update_settings({"timerRocksDBStopScan": "true", "timerStopEnqueue": "false"})
    return Response(ResponseCode.SUCCESS, "switch timer engine success")
