"""NotifyClientTermination: a client leaves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from logstore.compat.rocketmq.proxy.checks import group_of
from logstore.compat.rocketmq.proxy.codes import ClientType, Code
from logstore.compat.rocketmq.proxy.failures import status
from logstore.compat.rocketmq.proxy.rpcs.heartbeat import unknown_client
from logstore.compat.rocketmq.proxy.schema import MESSAGES

if TYPE_CHECKING:
    from logstore.compat.rocketmq.proxy.clients import ProxyClient
    from logstore.compat.rocketmq.proxy.proxy import Caller


async def handle(client: ProxyClient, request: Any, caller: Caller) -> Any:
    """Serve one request."""
    del caller
    flaw = unknown_client(client)
    if flaw is not None:
        return MESSAGES["NotifyClientTerminationResponse"](status=flaw)
    if client.asked_settings.client_type != ClientType.PRODUCER:
        group_of(request.group)
    client.proxy.forget(client)
    return MESSAGES["NotifyClientTerminationResponse"](status=status(Code.OK))
