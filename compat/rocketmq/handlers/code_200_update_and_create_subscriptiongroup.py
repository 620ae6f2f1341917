"""UPDATE_AND_CREATE_SUBSCRIPTIONGROUP: a new group, or other settings of one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.rocketmq.groups.group_changes import put_group, read_group
from logstore.compat.rocketmq.topics.names import check_group
from logstore.compat.rocketmq.wire.bodies import read_object
from logstore.compat.rocketmq.wire.codes import ResponseCode
from logstore.compat.rocketmq.wire.remoting import Response

if TYPE_CHECKING:
    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.connection import Channel
    from logstore.compat.rocketmq.wire.remoting import Command


def handle(broker: Broker, channel: Channel, request: Command) -> Response:
    """Serve one request."""
    config = read_group(read_object(request.body))
    check_group(config.group_name)
    put_group(broker, config)
    return Response(ResponseCode.SUCCESS)
