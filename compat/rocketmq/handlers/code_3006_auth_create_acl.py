"""AUTH_CREATE_ACL: an administrator gives a user rights, beside those that he has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.rocketmq.auth.acl_changes import put_acl

if TYPE_CHECKING:
    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.connection import Channel
    from logstore.compat.rocketmq.wire.remoting import Command, Response


def handle(broker: Broker, channel: Channel, request: Command) -> Response:
    """Serve one request."""
    del channel
    return put_acl(broker.access, request)
