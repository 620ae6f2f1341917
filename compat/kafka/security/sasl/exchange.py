"""
What every mechanism is to the connection: tokens of the client in, tokens for it out.

Source: ``javax.security.sasl.SaslServer`` as Kafka uses it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

from logstore.compat.kafka.framing import MalformedRequestError
from logstore.errors import LogStoreError


class SaslError(LogStoreError):
    """An exchange failed; the client is not told why, lest it learns which users there are."""


class SaslAuthenticationError(SaslError):
    """An exchange failed, and the client is told why."""


class StumbledError(MalformedRequestError):
    """Kafka stumbles over what the client says, and hangs up at once."""


class Identity(NamedTuple):
    """
    Who the client is, and until when (of the wall clock) that holds; None is for ever.

    With `is_by_token` it came by the delegation token of somebody of that name.
    """

    name: str
    expiry_ms: int | None = None
    is_by_token: bool = False


class Exchange(Protocol):
    """One authentication by one mechanism."""

    @property
    def identity(self) -> Identity | None:
        """Who the client is, once the exchange is complete."""
        ...

    def evaluate(self, token: bytes) -> bytes:
        """
        Return the answer to a token of the client.

        Raises:
            SaslError: the client is not who it says.
            StumbledError: what it says is nothing to be answered.

        """
        ...


#: begins an exchange
Begin = Callable[[], Exchange]
