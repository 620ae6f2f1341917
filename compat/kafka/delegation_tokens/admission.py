"""Who may ask about delegation tokens at all: whoever has said who it is, and not by a token."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.kafka.security.acl import Operation, ResourceType
from logstore.compat.kafka.security.listener import PLAINTEXT, SSL
from logstore.compat.kafka.security.principal import ANONYMOUS

if TYPE_CHECKING:
    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client


def may_ask(client: Client) -> bool:
    """
    Tell whether a client's requests about tokens are looked at.

    Source: ``KafkaApis.allowTokenRequests``.
    """
    protocol = client.listener.protocol
    is_nobody = protocol == PLAINTEXT or (protocol == SSL and client.principal == ANONYMOUS)
    return not (is_nobody or client.is_by_token)


def is_allowed(
    broker: Broker, client: Client, operation: Operation, kind: ResourceType, name: str
) -> bool:
    """Tell whether rules let a client do that; where there are none, everybody may."""
    authorizer = broker.authorizer
    return authorizer is None or authorizer.allows(client, operation, kind, name)
