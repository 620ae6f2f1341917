"""
SaslAuthenticate (36): versions 0-2. A token of the mechanism that the handshake named.

* anywhere but at a SASL listener behind a handshake: 34
* a client that is not who it says: 58 after ``connection.failed.authentication.delay.ms``; then it
  is hung up on
* v1: how long the session lasts; whoever wants to go on then authenticates anew before (KIP-368)
* v2: flexible
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.waiting import Later

if TYPE_CHECKING:
    from kafka.protocol.sasl import SaslAuthenticateRequest, SaslAuthenticateResponse

    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client

_log = logging.getLogger(__name__)


def handle(
    broker: Broker, client: Client, request: SaslAuthenticateRequest
) -> SaslAuthenticateResponse | Later[SaslAuthenticateResponse]:
    """Hand the token to its exchange."""
    from kafka.protocol.sasl import SaslAuthenticateResponse

    from logstore.compat.kafka.security.sasl.exchange import SaslAuthenticationError

    version = request.API_VERSION
    gate = client.authentication
    if gate is None or gate.is_open:
        return SaslAuthenticateResponse(
            version=version,
            error_code=ErrorCode.ILLEGAL_SASL_STATE,
            error_message="SaslAuthenticate request received after successful authentication",
            auth_bytes=b"",
        )
    try:
        accepted = gate.authenticate(bytes(request.auth_bytes))
    except SaslAuthenticationError as error:
        _log.info("%s is not let in: %s", client.host, error)
        return gate.refuse(
            SaslAuthenticateResponse(
                version=version,
                error_code=ErrorCode.SASL_AUTHENTICATION_FAILED,
                error_message=str(error),
                auth_bytes=b"",
            )
        )
    return SaslAuthenticateResponse(
        version=version,
        error_code=ErrorCode.NONE,
        error_message="",
        auth_bytes=accepted.token,
        session_lifetime_ms=accepted.lifetime_ms,
    )
