"""
UPDATE_BROKER_CONFIG: other settings, as lines ``key=value``, while the broker runs.

They hold until it stops, unless it was told where its settings stand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.rocketmq.wire.codes import ResponseCode
from logstore.compat.rocketmq.wire.refusals import RefusedError
from logstore.compat.rocketmq.wire.remoting import Response
from logstore.segments.rocketmq.settings.delay_levels import DelayLevelsError
from logstore.segments.rocketmq.settings.java_config import ConfigError

if TYPE_CHECKING:
    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.connection import Channel
    from logstore.compat.rocketmq.wire.remoting import Command


def handle(broker: Broker, channel: Channel, request: Command) -> Response:
    """Serve one request."""
    given = _read(bytes(request.body).decode("utf-8", "replace"))
    forbidden = set(broker.config.text("configBlackList").split(";")) | {"configBlackList"}
    if forbidden & given.keys():
        raise RefusedError(ResponseCode.NO_PERMISSION, "Can not update config in black list.")
    try:
        broker.update_settings(given)
    except (ConfigError, DelayLevelsError) as error:
        raise RefusedError(ResponseCode.SYSTEM_ERROR, str(error)) from error
    return Response(ResponseCode.SUCCESS)


def _read(text: str) -> dict[str, str]:
    given: dict[str, str] = {}
    for line in text.splitlines():
        name, has_value, value = line.strip().partition("=")
        if has_value and not name.startswith(("#", "!")):
            given[name.strip()] = value.strip()
    return given
