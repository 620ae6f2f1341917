"""AUTH_LIST_ACL: an administrator looks at the rights of all users."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.rocketmq.auth.acl_changes import list_acls

if TYPE_CHECKING:
    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.connection import Channel
    from logstore.compat.rocketmq.wire.remoting import Command, Response


def handle(broker: Broker, channel: Channel, request: Command) -> Response:
    """Serve one request."""
    del channel
    return list_acls(broker.access, request)
