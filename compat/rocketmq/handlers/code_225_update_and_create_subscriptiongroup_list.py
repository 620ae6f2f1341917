"""UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST: many groups, made or changed at once (5.x)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.rocketmq.groups.group_changes import put_group, read_group
from logstore.compat.rocketmq.topics.names import check_group
from logstore.compat.rocketmq.wire.bodies import objects_in, read_object
from logstore.compat.rocketmq.wire.codes import ResponseCode
from logstore.compat.rocketmq.wire.remoting import Response

if TYPE_CHECKING:
    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.connection import Channel
    from logstore.compat.rocketmq.wire.remoting import Command


def handle(broker: Broker, channel: Channel, request: Command) -> Response:
    """Serve one request."""
    configs = [
        read_group(item) for item in objects_in(read_object(request.body), "groupConfigList")
    ]
    for config in configs:
        check_group(config.group_name)
    for config in configs:
        put_group(broker, config)
    return Response(ResponseCode.SUCCESS)
