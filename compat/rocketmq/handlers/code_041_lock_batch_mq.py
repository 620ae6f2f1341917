"""LOCK_BATCH_MQ: a client takes queues for itself, to consume them in order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.rocketmq.clients.lock_requests import read_lock_request
from logstore.compat.rocketmq.wire.bodies import object_body
from logstore.compat.rocketmq.wire.codes import ResponseCode
from logstore.compat.rocketmq.wire.remoting import Response

if TYPE_CHECKING:
    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.connection import Channel
    from logstore.compat.rocketmq.wire.remoting import Command


def handle(broker: Broker, channel: Channel, request: Command) -> Response:
    """Serve one request."""
    group, client_id, queues = read_lock_request(request.body, is_lock=True)
    held = broker.queue_locks.lock(group, client_id, queues)
    body = object_body(lockOKMQSet=[queue.to_json() for queue in held])
    return Response(ResponseCode.SUCCESS, body=body)
