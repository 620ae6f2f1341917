"""What renewing and expiring a token have in common: until when it lasts now, or why not."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from logstore.compat.kafka.delegation_tokens.admission import may_ask
from logstore.compat.kafka.delegation_tokens.messages import TokenExpiryResponse
from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.refused_request import refusal_of
from logstore.errors import LogStoreError

if TYPE_CHECKING:
    from logstore.compat.kafka.connection import Client
    from logstore.compat.kafka.security.principal import Principal

#: (secret, who asks, for how long) -> when the token ends
Change = Callable[[bytes, "Principal", int], int]


def expiry_answer(
    client: Client, change: Change, secret: bytes, period_ms: int
) -> TokenExpiryResponse:
    """Return what a client is told that wants a token to end at another time."""
    if not may_ask(client):
        return TokenExpiryResponse(error_code=ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
    try:
        ends_ms = change(secret, client.principal, period_ms)
    except (LogStoreError, OSError) as error:
        code = refusal_of(error, "delegation tokens").code
        return TokenExpiryResponse(error_code=code, expiry_timestamp_ms=0)
    return TokenExpiryResponse(error_code=ErrorCode.NONE, expiry_timestamp_ms=ends_ms)
