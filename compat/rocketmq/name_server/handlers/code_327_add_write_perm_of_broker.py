"""ADD_WRITE_PERM_OF_BROKER: lets producers write to a broker again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.rocketmq.wire.codes import ResponseCode
from logstore.compat.rocketmq.wire.fields import as_fields, read_text
from logstore.compat.rocketmq.wire.remoting import Response

if TYPE_CHECKING:
    from logstore.compat.rocketmq.connection import Channel
    from logstore.compat.rocketmq.name_server.name_server import NameServer
    from logstore.compat.rocketmq.wire.remoting import Command


def handle(server: NameServer, channel: Channel, request: Command) -> Response:
    """Serve one request."""
    count = server.routes.add_write_perm(read_text(request.ext_fields, "brokerName"))
    return Response(ResponseCode.SUCCESS, ext_fields=as_fields(addTopicCount=count))
