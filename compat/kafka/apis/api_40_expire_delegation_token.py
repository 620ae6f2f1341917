"""
ExpireDelegationToken (40): versions 1-2. Lets a token end sooner, or at once.

* 61 there are no tokens; 62 no such one; 63 it is somebody else's, who did not name the client as a
  renewer; 64 who asks has not said who it is, or by a token; 66 it has ended, unless it is to end
  at once
* v2: flexible

Source: ``DelegationTokenControlManager.expireDelegationToken``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.kafka.declared_messages import answered, read_request
from logstore.compat.kafka.delegation_tokens.expiry_answer import expiry_answer
from logstore.compat.kafka.delegation_tokens.messages import ExpireDelegationTokenRequest

if TYPE_CHECKING:
    from logstore.compat.connection import Chunk
    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client
    from logstore.compat.kafka.registry import RawRequest


def handle(broker: Broker, client: Client, request: RawRequest) -> list[Chunk]:
    """Let a token end."""
    asked = read_request(ExpireDelegationTokenRequest, request)
    expire = broker.delegation_tokens.expire
    return answered(expiry_answer(client, expire, asked.hmac, asked.expiry_time_period_ms), request)
