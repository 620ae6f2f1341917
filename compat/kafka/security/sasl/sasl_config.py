"""
What one listener says about SASL: the mechanisms, who checks them, how long an answer holds.

Source: ``SaslChannelBuilder``, ``JaasContext``, ``LoginManager``.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from logstore.compat.kafka.security.jaas import JaasError, LoginModule, parse_jaas
from logstore.compat.kafka.security.sasl.exchange import Begin, Identity
from logstore.compat.kafka.security.sasl.plain import PLAIN, PlainExchange
from logstore.compat.kafka.security.sasl.scram_mechanism import SCRAM_MECHANISMS, ScramMechanism
from logstore.segments.kafka.config_keys import ConfigError

if TYPE_CHECKING:
    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.delegation_tokens.delegation_tokens import TokenLogin
    from logstore.compat.kafka.security.listener_settings import ListenerSettings

_JAAS, _MECHANISMS = "sasl.jaas.config", "sasl.enabled.mechanisms"
_HANDLER, _REAUTH = "sasl.server.callback.handler.class", "connections.max.reauth.ms"
_OAUTHBEARER = "OAUTHBEARER"
_OAUTH_CLASSES = "org.apache.kafka.common.security.oauthbearer"
#: the classes that read tokens: unsigned ones without being told to, and signed ones
_UNSECURED = f"{_OAUTH_CLASSES}.internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler"
_SIGNED = f"{_OAUTH_CLASSES}.OAuthBearerValidatorCallbackHandler"
_MODULES: Mapping[str, str] = {
    PLAIN: "org.apache.kafka.common.security.plain.PlainLoginModule",
    _OAUTHBEARER: f"{_OAUTH_CLASSES}.OAuthBearerLoginModule",
    **dict.fromkeys(SCRAM_MECHANISMS, "org.apache.kafka.common.security.scram.ScramLoginModule"),
}


class SaslConfig(NamedTuple):
    """
    SASL at one listener.

    `mechanisms` begin an exchange each; `max_reauth_ms` is after how long a client must say anew
    who it is, by mechanism, and is not positive where it need not.
    """

    mechanisms: Mapping[str, Begin]
    max_reauth_ms: Mapping[str, int]
    receive_bytes_max: int
    failed_delay_ms: int

    @classmethod
    def of(cls, broker: Broker, settings: ListenerSettings) -> SaslConfig:
        """
        Return what a listener's settings say.

        Raises:
            ConfigError: a mechanism cannot be had, or lacks its JAAS configuration.

        """
        names = settings.names(_MECHANISMS)
        if not names:
            raise settings.refusal(_MECHANISMS, "must name a mechanism")
        return cls(
            {name: _begin(broker, settings, name) for name in names},
            {name: settings.integer_of_mechanism(name, _REAUTH) for name in names},
            settings.integer("sasl.server.max.receive.size"),
            broker.config.given.integer("connection.failed.authentication.delay.ms"),
        )


def _begin(broker: Broker, settings: ListenerSettings, mechanism: str) -> Begin:
    """Return what begins an exchange of one mechanism."""
    if mechanism not in _MODULES:
        known = ", ".join(sorted(_MODULES))
        raise settings.refusal(_MECHANISMS, f"must be of {known}; {mechanism} is not served")
    handler = settings.of_mechanism(mechanism, _HANDLER)
    known_handlers = (None, _UNSECURED, _SIGNED) if mechanism == _OAUTHBEARER else (None,)
    if handler not in known_handlers:
        name = settings.name_of(_HANDLER, mechanism)
        raise ConfigError(name, handler, "must not be set: no class of Java's can be run here")
    module = _login_module(settings, mechanism)
    if mechanism == PLAIN:
        return partial(PlainExchange, module.options)
    if mechanism == _OAUTHBEARER and handler == _SIGNED:
        from logstore.compat.kafka.security.sasl.signed_config import begin_signed

        return begin_signed(broker, settings)
    if mechanism == _OAUTHBEARER:
        return _begin_oauthbearer(broker, settings, module)
    return _begin_scram(broker, SCRAM_MECHANISMS[mechanism])


def _login_module(settings: ListenerSettings, mechanism: str) -> LoginModule:
    name = settings.name_of(_JAAS, mechanism)
    text = settings.of_mechanism(mechanism, _JAAS)
    if text is None:
        example = f"{_MODULES[mechanism]} required;"
        raise ConfigError(name, None, f"must be given for {mechanism}, at least {example!r}")
    try:
        module = parse_jaas(text)
    except JaasError as error:  # the text may have passwords in it
        raise ConfigError(name, "[hidden]", str(error)) from None
    if module.name != _MODULES[mechanism]:
        raise ConfigError(name, module.name, f"must be {_MODULES[mechanism]}")
    return module


def _begin_scram(broker: Broker, mechanism: ScramMechanism) -> Begin:
    from logstore.compat.kafka.security.sasl.scram import ScramExchange

    known = broker.store.metadata.image.scram

    def find_token(token_id: str) -> TokenLogin | None:
        return broker.delegation_tokens.login(mechanism, token_id)

    return lambda: ScramExchange(
        mechanism, lambda name: known.get((mechanism, name)), find_token, broker.host.rng
    )


def _begin_oauthbearer(broker: Broker, settings: ListenerSettings, module: LoginModule) -> Begin:
    from logstore.compat.kafka.security.sasl.oauthbearer import OAuthBearerExchange
    from logstore.compat.kafka.security.sasl.unsecured_token import TokenRules

    try:
        rules = TokenRules.of(module.options)
    except ValueError as error:
        name = settings.name_of(_JAAS, _OAUTHBEARER)
        raise ConfigError(
            name, "[hidden]", f"unsecuredValidatorAllowableClockSkewMs: {error}"
        ) from None

    def read_token(token: str) -> Identity:
        return rules.identity(token, broker.host.clock.wall_ms())

    return partial(OAuthBearerExchange, read_token)
