"""
SaslHandshake (17): versions 0-1. The client names the mechanism by which it says who it is.

* served at a SASL listener, before the client is known, or when it authenticates anew; at any other
  time 34, without mechanisms
* a mechanism that there is not: 33 and those that there are, after a pause; then the client is hung
  up on; at once and without an answer if it authenticates anew
* v0: tokens come as they are, between length and end; v1: in SaslAuthenticate requests
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.waiting import Later

if TYPE_CHECKING:
    from kafka.protocol.sasl import SaslHandshakeRequest, SaslHandshakeResponse

    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client

_log = logging.getLogger(__name__)


def handle(
    broker: Broker, client: Client, request: SaslHandshakeRequest
) -> SaslHandshakeResponse | Later[SaslHandshakeResponse]:
    """Begin to authenticate, if this is the time for it."""
    from kafka.protocol.sasl import SaslHandshakeResponse

    version = request.API_VERSION
    gate = client.authentication
    if gate is None or gate.is_open:
        return SaslHandshakeResponse(
            version=version, error_code=ErrorCode.ILLEGAL_SASL_STATE, mechanisms=[]
        )
    is_there = gate.shake_hands(request.mechanism, version)
    answer = SaslHandshakeResponse(
        version=version,
        error_code=ErrorCode.NONE if is_there else ErrorCode.UNSUPPORTED_SASL_MECHANISM,
        mechanisms=gate.mechanisms,
    )
    if is_there:
        return answer
    _log.info("%s asks for the mechanism %s", client.host, request.mechanism)
    return gate.refuse(answer)
