"""UNREGISTER_CLIENT: a client leaves a group, or two."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.rocketmq.wire.codes import ResponseCode
from logstore.compat.rocketmq.wire.fields import read_text
from logstore.compat.rocketmq.wire.remoting import Response

if TYPE_CHECKING:
    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.connection import Channel
    from logstore.compat.rocketmq.wire.remoting import Command


def handle(broker: Broker, channel: Channel, request: Command) -> Response:
    """Serve one request."""
    fields = request.ext_fields
    client_id = read_text(fields, "clientID")
    producer_group, consumer_group = fields.get("producerGroup"), fields.get("consumerGroup")
    if producer_group:
        broker.producers.unregister(producer_group, channel, client_id)
    if consumer_group:
        config = broker.groups.find(consumer_group)
        notifies = config is None or config.is_notify_consumer_ids_changed_enabled
        broker.consumers.unregister(consumer_group, channel, notifies=notifies)
    return Response(ResponseCode.SUCCESS, None, {})
