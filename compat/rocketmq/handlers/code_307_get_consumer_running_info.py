"""GET_CONSUMER_RUNNING_INFO: what one consumer says of itself; the broker hands it on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.rocketmq.clients.client_calls import call_consumer
from logstore.compat.rocketmq.wire.codes import RequestCode
from logstore.compat.rocketmq.wire.fields import read_text

if TYPE_CHECKING:
    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.connection import Channel
    from logstore.compat.rocketmq.wire.remoting import Command, Response
    from logstore.compat.waiting import Later


def handle(
    broker: Broker,
    channel: Channel,
    request: Command,
) -> Later[Response]:
    """Serve one request."""
    fields = request.ext_fields
    group, client_id = read_text(fields, "consumerGroup"), read_text(fields, "clientId")
    code = RequestCode.GET_CONSUMER_RUNNING_INFO
    return call_consumer(broker, code, group, client_id, fields, bytes(request.body))
