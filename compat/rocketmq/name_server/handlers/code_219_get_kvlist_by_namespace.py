"""GET_KVLIST_BY_NAMESPACE: all values of one namespace of the key-value table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.rocketmq.wire.bodies import object_body
from logstore.compat.rocketmq.wire.codes import ResponseCode
from logstore.compat.rocketmq.wire.fields import read_text
from logstore.compat.rocketmq.wire.refusals import RefusedError
from logstore.compat.rocketmq.wire.remoting import Response

if TYPE_CHECKING:
    from logstore.compat.rocketmq.connection import Channel
    from logstore.compat.rocketmq.name_server.name_server import NameServer
    from logstore.compat.rocketmq.wire.remoting import Command


def handle(server: NameServer, channel: Channel, request: Command) -> Response:
    """Serve one request."""
    namespace = read_text(request.ext_fields, "namespace")
    table = server.kv_config.namespace(namespace)
    if table is None:
        raise RefusedError(ResponseCode.QUERY_NOT_FOUND, f"No config item, Namespace: {namespace}")
    return Response(ResponseCode.SUCCESS, body=object_body(table=dict(table)))
