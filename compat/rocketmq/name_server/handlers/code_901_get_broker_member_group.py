"""GET_BROKER_MEMBER_GROUP: the addresses of one broker name (5.x)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.rocketmq.wire.bodies import number_table, object_body
from logstore.compat.rocketmq.wire.codes import ResponseCode
from logstore.compat.rocketmq.wire.fields import read_text
from logstore.compat.rocketmq.wire.remoting import Response

if TYPE_CHECKING:
    from logstore.compat.rocketmq.connection import Channel
    from logstore.compat.rocketmq.name_server.name_server import NameServer
    from logstore.compat.rocketmq.wire.remoting import Command


def handle(server: NameServer, channel: Channel, request: Command) -> Response:
    """Serve one request."""
    cluster = read_text(request.ext_fields, "clusterName")
    name = read_text(request.ext_fields, "brokerName")
    data = server.routes.brokers.get(name)
    group = object_body(
        brokerAddrs=number_table({} if data is None else data.addresses),
        brokerName=name,
        cluster=cluster,
    )
    # 5.x leaves the remark of an unfinished answer in this one.
    return Response(
        ResponseCode.SUCCESS,
        "not set any response code",
        body=object_body(brokerMemberGroup=group),
    )
