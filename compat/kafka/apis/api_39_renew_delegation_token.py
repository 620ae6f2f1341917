"""
RenewDelegationToken (39): versions 1-2. Lets a token last longer, up to what it may at most.

* 61 there are no tokens; 62 no such one; 63 it is somebody else's, who did not name the client as a
  renewer; 64 who asks has not said who it is, or by a token; 66 it has ended
* v2: flexible

Source: ``DelegationTokenControlManager.renewDelegationToken``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.kafka.declared_messages import answered, read_request
from logstore.compat.kafka.delegation_tokens.expiry_answer import expiry_answer
from logstore.compat.kafka.delegation_tokens.messages import RenewDelegationTokenRequest

if TYPE_CHECKING:
    from logstore.compat.connection import Chunk
    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client
    from logstore.compat.kafka.registry import RawRequest


def handle(broker: Broker, client: Client, request: RawRequest) -> list[Chunk]:
    """Renew a token."""
    asked = read_request(RenewDelegationTokenRequest, request)
    renew = broker.delegation_tokens.renew
    return answered(expiry_answer(client, renew, asked.hmac, asked.renew_period_ms), request)
