"""
REGISTER_BROKER: a broker says what it serves, at its start and then again and again.

The answer carries the order topics, and for a slave where its master is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from logstore.compat.rocketmq.name_server.broker_identity import broker_identity
from logstore.compat.rocketmq.name_server.kv_config import ORDER_NAMESPACE
from logstore.compat.rocketmq.name_server.registration import crc_of, read_registration
from logstore.compat.rocketmq.wire.bodies import object_body
from logstore.compat.rocketmq.wire.codes import ResponseCode
from logstore.compat.rocketmq.wire.fields import as_fields, read_flag, read_int, read_long
from logstore.compat.rocketmq.wire.refusals import RefusedError
from logstore.compat.rocketmq.wire.remoting import Response

if TYPE_CHECKING:
    from collections.abc import Mapping

    from logstore.compat.rocketmq.connection import Channel
    from logstore.compat.rocketmq.name_server.name_server import NameServer
    from logstore.compat.rocketmq.wire.remoting import Command


def handle(server: NameServer, channel: Channel, request: Command) -> Response:
    """Serve one request."""
    fields = request.ext_fields
    checksum = read_int(fields, "bodyCrc32", 0)
    if checksum and crc_of(request.body) != checksum:
        raise RefusedError(ResponseCode.SYSTEM_ERROR, "crc32 not match")
    acting = fields.get("enableActingMaster")
    now_ms = server.host.clock.wall_ms()
    registration = attrs.evolve(
        read_registration(
            request.body,
            is_compressed=read_flag(fields, "compressed", default=False),
            version=request.version,
            now_ms=now_ms,
        ),
        ha_address=fields.get("haServerAddr"),
        heartbeat_timeout_ms=_timeout_of(fields),
        enables_acting_master=None if acting is None else acting.lower() == "true",
        zone_name=fields.get("__ZONE_NAME"),
    )
    master = server.routes.register(broker_identity(fields), registration, now_ms, channel)
    if master is None:
        raise RefusedError(ResponseCode.SYSTEM_ERROR, "register broker failed")
    body = b""
    if server.config.is_on("returnOrderTopicConfigToBroker"):
        table = server.kv_config.namespace(ORDER_NAMESPACE)
        body = b"" if table is None else object_body(table=dict(table))
    answer = as_fields(haServerAddr=master.ha_address, masterAddr=master.master_address)
    return Response(ResponseCode.SUCCESS, ext_fields=answer, body=body)


def _timeout_of(fields: Mapping[str, str]) -> int | None:
    name = "heartbeatTimeoutMillis"
    return read_long(fields, name) if name in fields else None
