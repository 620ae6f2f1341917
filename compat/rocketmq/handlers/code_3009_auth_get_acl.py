"""AUTH_GET_ACL: an administrator looks at the rights of a user."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.rocketmq.auth.acl_changes import get_acl

if TYPE_CHECKING:
    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.connection import Channel
    from logstore.compat.rocketmq.wire.remoting import Command, Response


def handle(broker: Broker, channel: Channel, request: Command) -> Response:
    """Serve one request."""
    del channel
    return get_acl(broker.access, request)
