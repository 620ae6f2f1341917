"""What a listener says about signed tokens: where the keys are, and what claims must be."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from logstore.compat.kafka.security.sasl.exchange import Begin, Identity
from logstore.compat.kafka.security.sasl.oauthbearer import OAUTHBEARER, OAuthBearerExchange
from logstore.segments.kafka.config_keys import ConfigError

if TYPE_CHECKING:
    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.security.listener_settings import ListenerSettings

_FAMILY = "sasl.oauthbearer."
_URL = f"{_FAMILY}jwks.endpoint.url"


def begin_signed(broker: Broker, settings: ListenerSettings) -> Begin:
    """
    Return what begins an exchange with somebody who has a signed token.

    Raises:
        ConfigError: the keys cannot be had, or PyJWT is not there (extra ``oauth``).

    """
    url = settings.value_of_mechanism(OAUTHBEARER, _URL)
    if not isinstance(url, str):
        raise ConfigError(_URL, None, "must say where the keys are that tokens are signed with")
    try:
        from logstore.compat.kafka.security.sasl.jwks import keys_at
        from logstore.compat.kafka.security.sasl.signed_token import SignedTokenRules
    except ImportError as error:
        raise ConfigError(
            _URL, url, "needs PyJWT: pip install 'logstore-segments[oauth]'"
        ) from error

    def text(name: str) -> str | None:
        value = settings.value_of_mechanism(OAUTHBEARER, _FAMILY + name)
        return value.strip() or None if isinstance(value, str) else None

    audiences = settings.value_of_mechanism(OAUTHBEARER, f"{_FAMILY}expected.audience")
    skew_seconds = settings.integer_of_mechanism(OAUTHBEARER, f"{_FAMILY}clock.skew.seconds")
    rules = SignedTokenRules(
        frozenset(audiences) if isinstance(audiences, tuple) else frozenset(),
        text("expected.issuer"),
        text("scope.claim.name") or "scope",
        text("sub.claim.name") or "sub",
        skew_seconds * 1000,
    )
    refresh_ms = settings.integer_of_mechanism(OAUTHBEARER, f"{_FAMILY}jwks.endpoint.refresh.ms")
    try:
        verify = keys_at(broker, url, refresh_ms)
    except (OSError, ValueError) as error:
        raise ConfigError(_URL, url, f"leads to no keys: {error}") from error

    def read_token(token: str) -> Identity:
        return rules.identity(token, verify, broker.host.clock.wall_ms())

    return partial(OAuthBearerExchange, read_token)
