"""PUT_KV_CONFIG: sets one value of the key-value table."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
    fields = request.ext_fields
    namespace, key = fields.get("namespace"), fields.get("key")
    if namespace is None or key is None:
        raise RefusedError(ResponseCode.SYSTEM_ERROR, "namespace or key is null")
    server.kv_config.put(namespace, key, read_text(fields, "value"))
    return Response(ResponseCode.SUCCESS)
