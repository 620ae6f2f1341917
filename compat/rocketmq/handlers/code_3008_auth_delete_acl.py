"""AUTH_DELETE_ACL: an administrator takes rights from a user."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.rocketmq.auth.acl_changes import delete_acl

if TYPE_CHECKING:
    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.connection import Channel
    from logstore.compat.rocketmq.wire.remoting import Command, Response


def handle(broker: Broker, channel: Channel, request: Command) -> Response:
    """Serve one request."""
    del channel
    return delete_acl(broker.access, request)
