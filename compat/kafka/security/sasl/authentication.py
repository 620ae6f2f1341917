"""
The gate of a connection at a SASL listener: which requests are served, and who the client is.

::

    (new) -- ApiVersions --> handshake -- SaslHandshake --> authenticate -- tokens --> open
      \\____________________________________/                    ^                      |
                                     SaslHandshake, if the session has an end (KIP-368) /

After a SaslHandshake of version 0 tokens come as they are, after one of version 1 in
SaslAuthenticate requests. Whoever fails is answered after a pause, and hung up on.

Source: ``SaslServerAuthenticator``, ``KafkaChannel``, ``SocketServer.processCompletedReceives``.
"""

from __future__ import annotations

import logging
from enum import Enum, auto
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from logstore.compat.kafka.connection import API_VERSIONS, API_VERSIONS_FLEXIBLE_FROM
from logstore.compat.kafka.framing import I32, REQUEST_HEADER, MalformedRequestError, skip_tags
from logstore.compat.kafka.registry import RawRequest
from logstore.compat.kafka.security.principal import USER, Principal
from logstore.compat.kafka.security.sasl.exchange import (
    Exchange,
    Identity,
    SaslAuthenticationError,
    SaslError,
    StumbledError,
)
from logstore.compat.waiting import Later

if TYPE_CHECKING:
    from logstore.compat.connection import Chunk
    from logstore.compat.kafka.connection import KafkaConnection
    from logstore.compat.kafka.security.sasl.sasl_config import SaslConfig

_log = logging.getLogger(__name__)
SASL_HANDSHAKE, SASL_AUTHENTICATE = 17, 36
#: who authenticates anew more often is told that this is not the time for it
_REAUTH_PAUSE_MS = 1000
#: Kafka counts nanoseconds in 63 bits
_LIFETIME_MS_MAX = (2**63 - 1) // 1_000_000
#: some clients do not read an answer that the end of the connection comes with
_LAST_WORDS_MS = 50


class UnauthenticatedError(MalformedRequestError):
    """A request comes from somebody who must not send it; the connection is closed."""


class _State(Enum):
    NEW = auto()
    #: after an ApiVersions: there is no second one
    HANDSHAKE = auto()
    AUTHENTICATE = auto()
    OPEN = auto()
    #: somebody authenticates anew by another mechanism, and learns of it with the next token
    OTHER_MECHANISM = auto()
    FAILED = auto()


class Accepted(NamedTuple):
    """The answer to a token that was good: the next one, and how long a session lasts from now."""

    token: bytes
    lifetime_ms: int


class Authentication:
    """What is known of one connection's authentication."""

    def __init__(self, connection: KafkaConnection, config: SaslConfig) -> None:
        self._connection = connection
        self._config = config
        self._clock = connection.broker.host.clock
        self._state = _State.NEW
        self._exchange: Exchange | None = None
        #: the one of the exchange under way or done
        self._mechanism = ""
        #: tokens stand in requests
        self._has_requests = False
        #: a client that was known before authenticates anew
        self._is_again = False
        #: when the session ends, of the monotonic clock; None for never
        self._ends_at_ms: float | None = None
        self._began_again_at_ms: float | None = None
        connection.limit_frames(config.receive_bytes_max)

    @property
    def is_open(self) -> bool:
        """Tell whether the client is known, and not about to authenticate anew."""
        return self._state is _State.OPEN

    @property
    def mechanisms(self) -> list[str]:
        """The names of the mechanisms that there are."""
        return list(self._config.mechanisms)

    def admit(self, frame: memoryview) -> Later[list[Chunk]] | list[Chunk] | None:
        """
        Return the answer to a frame that is no request to be served; None for one that is.

        Raises:
            UnauthenticatedError: the client must not send that, and gets no answer.

        """
        if self._state is _State.AUTHENTICATE:
            return self._admit_token(frame)
        if self._state is _State.OTHER_MECHANISM:
            return self.refuse([])
        if self._state is _State.FAILED:
            return Later()  # nothing is served until the end
        key, _, _ = REQUEST_HEADER.unpack_from(frame)
        if self._state is _State.OPEN:
            self._admit_known(key)
            return None
        is_asked_first = key == API_VERSIONS and self._state is _State.NEW
        if key != SASL_HANDSHAKE and not is_asked_first:
            raise UnauthenticatedError(f"API {key} comes before the client has said who it is")
        return None

    def versions_told(self) -> None:
        """Take note that the client knows the versions, and need not ask for them again."""
        if self._state is _State.NEW:
            self._state = _State.HANDSHAKE

    def _admit_known(self, key: int) -> None:
        """Let a client that is known go on; or begin anew, which is what the handshake is for."""
        if self._ends_at_ms is None:
            return
        now_ms = self._clock.monotonic_ms()
        began_ms = self._began_again_at_ms
        is_time = began_ms is None or now_ms - began_ms >= _REAUTH_PAUSE_MS
        if key == SASL_HANDSHAKE and is_time:
            self._began_again_at_ms = now_ms
            self._is_again = True
            self._state = _State.HANDSHAKE
        elif now_ms > self._ends_at_ms:
            raise UnauthenticatedError("the session has ended")

    def _admit_token(self, frame: memoryview) -> Later[list[Chunk]] | list[Chunk] | None:
        if not self._has_requests:
            return self._take_raw(bytes(frame))
        key, version, correlation_id = REQUEST_HEADER.unpack_from(frame)
        if key == SASL_AUTHENTICATE:
            return None
        api = self._connection.served(key, version)
        if api is None and key != API_VERSIONS:
            raise UnauthenticatedError(f"API {key} v{version} comes in place of a token")
        is_flexible = version >= (API_VERSIONS_FLEXIBLE_FROM if api is None else api.flexible_from)
        size_bytes = int.from_bytes(frame[8:10], "big", signed=True)
        position = 10 + max(size_bytes, 0)
        if position > len(frame):
            raise UnauthenticatedError(f"a client id of {size_bytes} bytes does not fit")
        if is_flexible:
            position = skip_tags(frame, position)
        from logstore.compat.kafka.security.sasl.out_of_place import (
            answer_out_of_place,
            versions_out_of_place,
        )

        if api is None:
            return self.refuse(versions_out_of_place(correlation_id))
        request = RawRequest(version, correlation_id, frame, position, is_flexible)
        return self.refuse(answer_out_of_place(self._connection.broker, api, request) or [])

    def _take_raw(self, token: bytes) -> Later[list[Chunk]] | list[Chunk]:
        """Answer a token that stands in no request."""
        try:
            accepted = self._evaluate(token)
        except SaslAuthenticationError as error:
            _log.info("%s: %s", self._connection.client.host, error)
            return self.refuse([])
        except SaslError as error:
            raise UnauthenticatedError(f"authentication failed: {error}") from error
        return [I32.pack(len(accepted.token)) + accepted.token]

    def shake_hands(self, mechanism: str, version: int) -> bool:
        """Begin to authenticate by a mechanism; tell whether there is such a one."""
        begin = self._config.mechanisms.get(mechanism)
        self._has_requests = version >= 1
        if begin is None:
            if self._is_again:
                raise UnauthenticatedError(f"there is no {mechanism} to authenticate anew by")
            return False
        if self._is_again and mechanism != self._mechanism:
            _log.info(
                "%s authenticates anew by %s, and did by %s",
                self._connection.client.host, mechanism, self._mechanism,
            )  # fmt: skip
            self._state = _State.OTHER_MECHANISM
            return True
        self._mechanism = mechanism
        self._exchange = begin()
        self._state = _State.AUTHENTICATE
        return True

    def authenticate(self, token: bytes) -> Accepted:
        """
        Answer a token of the client.

        Raises:
            SaslAuthenticationError: it is not who it says; the text is for the client.

        """
        try:
            return self._evaluate(token)
        except SaslAuthenticationError:
            raise
        except SaslError as error:
            _log.info("%s: %s", self._connection.client.host, error)
            what = "re-authentication" if self._is_again else "authentication"
            raise SaslAuthenticationError(
                f"Authentication failed during {what} due to invalid credentials with SASL "
                f"mechanism {self._mechanism}"
            ) from error

    def _evaluate(self, token: bytes) -> Accepted:
        exchange = self._exchange
        assert exchange is not None, "the handshake comes first"
        answer = exchange.evaluate(token)
        identity = exchange.identity
        return Accepted(answer, 0 if identity is None else self._enter(identity))

    def _enter(self, identity: Identity) -> int:
        """Let the client in; return how long its session lasts, 0 where it has no end."""
        client = self._connection.client
        principal = Principal(USER, identity.name)
        if self._is_again and client.principal != principal:
            raise SaslAuthenticationError(
                "Cannot change principals during re-authentication from "
                f"{client.principal.kind}.{client.principal.name}: "
                f"{principal.kind}.{principal.name}"
            )
        lifetime_ms = self._lifetime_ms(identity)
        client.principal = principal
        client.is_by_token = identity.is_by_token
        self._exchange = None
        self._state = _State.OPEN
        self._connection.limit_frames(self._connection.broker.request_bytes_max)
        self._ends_at_ms = None if lifetime_ms is None else self._clock.monotonic_ms() + lifetime_ms
        return lifetime_ms or 0

    def _lifetime_ms(self, identity: Identity) -> int | None:
        """Return how long a session lasts; None if it has no end."""
        limits: list[float] = []
        max_ms = self._config.max_reauth_ms[self._mechanism]
        if max_ms > 0:
            limits.append(max_ms)
        if identity.expiry_ms is not None:
            limits.append(identity.expiry_ms - self._clock.wall_ms())
        if not limits:
            return None
        lifetime_ms = max(int(min(limits)), 0)
        if lifetime_ms > _LIFETIME_MS_MAX:
            raise StumbledError(f"a session of {lifetime_ms} ms")
        return lifetime_ms

    def refuse(self, answer: Any) -> Later[Any]:
        """Return the answer to somebody who has failed, for after the pause; then hang up."""
        self._state = _State.FAILED
        later: Later[Any] = Later()
        delay_ms = self._config.failed_delay_ms
        if delay_ms > 0:
            self._connection.broker.timers.after(delay_ms, partial(self._tell, later, answer))
        else:
            self._tell(later, answer)
        return later

    def _tell(self, later: Later[Any], answer: Any) -> None:
        """Answer, and hang up a moment later."""
        if answer:
            self._connection.broker.timers.after(_LAST_WORDS_MS, self._hang_up)
        else:
            self._connection.is_closing = True
        later.answer(answer)

    def _hang_up(self) -> None:
        connection = self._connection
        connection.is_closing = True
        if connection.on_output is not None:
            connection.on_output()
