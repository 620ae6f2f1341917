"""GET_BROKER_CONFIG: all settings, a line ``key=value`` each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.rocketmq.wire.bodies import json_body
from logstore.compat.rocketmq.wire.codes import ResponseCode
from logstore.compat.rocketmq.wire.remoting import Response

if TYPE_CHECKING:
    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.connection import Channel
    from logstore.compat.rocketmq.wire.remoting import Command


def handle(broker: Broker, channel: Channel, request: Command) -> Response:
    """Serve one request."""
    version = {"counter": broker.config_changes, "stateVersion": 0, "timestamp": broker.started_ms}
    fields = {"version": json_body(version).decode()}
    body = broker.config.properties_text(_found_out(broker)).encode()
    return Response(ResponseCode.SUCCESS, None, fields, body)


def _found_out(broker: Broker) -> dict[str, str]:
    """Return what need not stand in the settings: where it is, how long its bit maps are."""
    host = broker.advertised_host
    found = {
        "brokerIP1": host,
        "brokerIP2": broker.config.text("brokerIP2") or host,
        "listenPort": str(broker.advertised_port),
        "bitMapLengthConsumeQueueExt": str(broker.bloom_filter.bit_count),
    }
    if broker.ha_port:
        found["haListenPort"] = str(broker.ha_port)
    return found
