"""QUERY_DATA_VERSION: a broker asks whether it must register anew; asking keeps it alive."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.rocketmq.name_server.broker_identity import broker_identity
from logstore.compat.rocketmq.name_server.registration import version_fields, version_of
from logstore.compat.rocketmq.wire.bodies import json_body, read_object
from logstore.compat.rocketmq.wire.codes import ResponseCode
from logstore.compat.rocketmq.wire.fields import as_fields
from logstore.compat.rocketmq.wire.remoting import Response

if TYPE_CHECKING:
    from logstore.compat.rocketmq.connection import Channel
    from logstore.compat.rocketmq.name_server.name_server import NameServer
    from logstore.compat.rocketmq.wire.remoting import Command


def handle(server: NameServer, channel: Channel, request: Command) -> Response:
    """Serve one request."""
    broker = broker_identity(request.ext_fields)
    now_ms = server.host.clock.wall_ms()
    is_changed = True  # no version is none that is known
    if bytes(request.body) not in (b"", b"null"):
        asked = version_of(read_object(request.body), now_ms)
        is_changed = server.routes.is_changed(broker.cluster, broker.address, asked)
    server.routes.heard_of(broker.cluster, broker.address, now_ms)
    known = server.routes.data_version(broker.cluster, broker.address)
    body = b"" if known is None else json_body(version_fields(known))
    return Response(ResponseCode.SUCCESS, ext_fields=as_fields(changed=is_changed), body=body)
