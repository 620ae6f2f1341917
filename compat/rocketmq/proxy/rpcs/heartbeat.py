"""Heartbeat: a client lives; its groups are those of its settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from logstore.compat.rocketmq.proxy.checks import group_of
from logstore.compat.rocketmq.proxy.codes import ClientType, Code, client_type_name
from logstore.compat.rocketmq.proxy.failures import status
from logstore.compat.rocketmq.proxy.schema import MESSAGES
from logstore.compat.rocketmq.steps import Step

if TYPE_CHECKING:
    from logstore.compat.rocketmq.proxy.clients import ProxyClient
    from logstore.compat.rocketmq.proxy.proxy import Caller


async def handle(client: ProxyClient, request: Any, caller: Caller) -> Any:
    """Serve one request."""
    del caller
    flaw = unknown_client(client)
    if flaw is not None:
        return MESSAGES["HeartbeatResponse"](status=flaw)
    group = None
    if client.asked_settings.client_type != ClientType.PRODUCER:
        group = group_of(request.group)
    await Step(client.beat(group))
    return MESSAGES["HeartbeatResponse"](status=status(Code.OK))


def unknown_client(client: ProxyClient) -> Any:
    """Return the status that says that nobody knows what the client is; None if that is known."""
    asked = client.asked_settings
    if asked is None:
        text = "cannot find client settings for this client"
        return status(Code.UNRECOGNIZED_CLIENT_TYPE, text)
    if asked.client_type not in ClientType.__members__.values():
        return status(Code.UNRECOGNIZED_CLIENT_TYPE, client_type_name(asked.client_type))
    return None
