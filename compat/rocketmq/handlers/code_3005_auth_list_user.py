"""AUTH_LIST_USER: an administrator looks at all users."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.rocketmq.auth.user_changes import list_users

if TYPE_CHECKING:
    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.connection import Channel
    from logstore.compat.rocketmq.wire.remoting import Command, Response


def handle(broker: Broker, channel: Channel, request: Command) -> Response:
    """Serve one request."""
    del channel
    return list_users(broker.access, request)
