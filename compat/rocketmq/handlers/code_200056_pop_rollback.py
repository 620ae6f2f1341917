"""
POP_ROLLBACK: move what is popped out of the key-value store of pops.

That store is never there, so that nothing is left to be moved, as in a broker without it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.rocketmq.wire.codes import ResponseCode
from logstore.compat.rocketmq.wire.remoting import Response

if TYPE_CHECKING:
    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.connection import Channel
    from logstore.compat.rocketmq.wire.remoting import Command


def handle(broker: Broker, channel: Channel, request: Command) -> Response:
    """Serve one request."""
    return Response(ResponseCode.SUCCESS, "not set any response code")
