"""GET_KV_CONFIG: one value of the key-value table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.rocketmq.wire.codes import ResponseCode
from logstore.compat.rocketmq.wire.fields import read_text
from logstore.compat.rocketmq.wire.remoting import Response

if TYPE_CHECKING:
    from logstore.compat.rocketmq.connection import Channel
    from logstore.compat.rocketmq.name_server.name_server import NameServer
    from logstore.compat.rocketmq.wire.remoting import Command


def handle(server: NameServer, channel: Channel, request: Command) -> Response:
    """Serve one request."""
    namespace = read_text(request.ext_fields, "namespace")
    key = read_text(request.ext_fields, "key")
    value = server.kv_config.get(namespace, key)
    if value is None:
        # The header object is there, without a value.
        remark = f"No config item, Namespace: {namespace} Key: {key}"
        return Response(ResponseCode.QUERY_NOT_FOUND, remark, {})
    return Response(ResponseCode.SUCCESS, ext_fields={"value": value})
