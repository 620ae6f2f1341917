"""DELETE_SUBSCRIPTIONGROUP: a group goes; what it committed stays unless that is to go, too."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.rocketmq.wire.codes import ResponseCode
from logstore.compat.rocketmq.wire.fields import read_flag, read_text
from logstore.compat.rocketmq.wire.remoting import Response

if TYPE_CHECKING:
    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.connection import Channel
    from logstore.compat.rocketmq.wire.remoting import Command


def handle(broker: Broker, channel: Channel, request: Command) -> Response:
    """Serve one request."""
    fields = request.ext_fields
    group = read_text(fields, "groupName")
    broker.groups.remove(group)
    broker.fingerprints.pop(group, None)
    if read_flag(fields, "cleanOffset", default=False):
        broker.store.consumer_offsets.remove_group(group)
        if broker.has_popped:
            broker.popping.in_flight.forget_group(group)
    if broker.settings.forgets_unused_stats:
        broker.stats.forget_group(group)
    return Response(ResponseCode.SUCCESS)
