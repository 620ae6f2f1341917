"""
The settings of access control, by Java's keys (``AuthConfig``).

Providers and strategies are named by Java's classes. There are the local provider, which keeps
users and rules here, and the two strategies; whoever names another class is told so at the start.
"""

from __future__ import annotations

import attrs
import orjson

from logstore.segments.rocketmq.settings.java_config import ConfigError, JavaConfig

_AUTH = "org.apache.rocketmq.auth"
#: the one class that each of these may name; unset they are as if they named it
_DEFAULT_CLASSES = {
    "authenticationProvider": f"{_AUTH}.authentication.provider.DefaultAuthenticationProvider",
    "authorizationProvider": f"{_AUTH}.authorization.provider.DefaultAuthorizationProvider",
}
_USERS = f"{_AUTH}.authentication.provider.LocalAuthenticationMetadataProvider"
_ACLS = f"{_AUTH}.authorization.provider.LocalAuthorizationMetadataProvider"
#: what a broker that keeps its users and rules itself has set
LOCAL_PROVIDERS = {
    "authenticationMetadataProvider": _USERS,
    "authorizationMetadataProvider": _ACLS,
}
_STRATEGIES = {
    f"{_AUTH}.{kind}.strategy.{name}{kind.capitalize()}Strategy": name == "Stateful"
    for kind in ("authentication", "authorization")
    for name in ("Stateless", "Stateful")
}
_INNER_CLIENT = "innerClientAuthenticationCredentials"


@attrs.frozen
class Credentials:
    """A name, and the password to sign with."""

    access_key: str
    secret_key: str
    security_token: str | None = None


@attrs.frozen
class Memory:
    """How a strategy remembers what was decided for a connection; not at all where that is off."""

    is_on: bool = False
    ms: int = 60_000
    count_max: int = 10_000


@attrs.frozen
class AccessSettings:
    """What is asked of clients, and where users and rules come from."""

    cluster: str
    authenticates: bool
    authorizes: bool
    has_users: bool
    has_acls: bool
    unauthenticated_codes: frozenset[str]
    unauthorized_codes: frozenset[str]
    authentication_memory: Memory
    authorization_memory: Memory
    first_user: Credentials | None
    inner_client: Credentials | None

    @classmethod
    def of(cls, config: JavaConfig) -> AccessSettings:
        """
        Return what a broker's configuration says.

        Raises:
            ConfigError: a class is named that is not there, or a user is not said as JSON.

        """
        for name, known in _DEFAULT_CLASSES.items():
            if (config.text(name) or known) != known:
                raise ConfigError(name, config.text(name), known)
        return cls(
            cluster=config.text("brokerClusterName"),
            authenticates=config.boolean("authenticationEnabled"),
            authorizes=config.boolean("authorizationEnabled"),
            has_users=_is_named(config, "authenticationMetadataProvider", _USERS),
            has_acls=_is_named(config, "authorizationMetadataProvider", _ACLS),
            unauthenticated_codes=_codes(config.text("authenticationWhitelist")),
            unauthorized_codes=_codes(config.text("authorizationWhitelist")),
            authentication_memory=_memory(config, "authentication"),
            authorization_memory=_memory(config, "authorization"),
            first_user=_credentials(config, "initAuthenticationUser", "username", "password"),
            inner_client=inner_client_of(config),
        )


def inner_client_of(config: JavaConfig) -> Credentials | None:
    """Return as whom a broker speaks to other servers, if it signs. Raises ConfigError."""
    return _credentials(config, _INNER_CLIENT, "accessKey", "secretKey")


def _is_named(config: JavaConfig, name: str, known: str) -> bool:
    given = config.text(name)
    if given not in ("", known):
        raise ConfigError(name, given, known)
    return bool(given)


def _codes(text: str) -> frozenset[str]:
    return frozenset(code.strip() for code in text.split(",") if code)


def _memory(config: JavaConfig, kind: str) -> Memory:
    name = f"{kind}Strategy"
    given = config.text(name)
    known = [known for known in _STRATEGIES if f".{kind}." in known]
    if given not in ("", *known):
        raise ConfigError(name, given, " or ".join(known))
    prefix = f"stateful{kind.capitalize()}Cache"
    expired_ms = 1000 * config.integer(f"{prefix}ExpiredSecond")
    return Memory(_STRATEGIES.get(given, False), expired_ms, config.integer(f"{prefix}MaxNum"))


def _credentials(config: JavaConfig, key: str, name: str, password: str) -> Credentials | None:
    text = config.text(key)
    if not text:
        return None
    expected = f'JSON as {{"{name}":"...","{password}":"..."}}'
    try:
        found: object = orjson.loads(text)
    except ValueError as error:
        raise ConfigError(key, text, expected) from error
    if not isinstance(found, dict):
        raise ConfigError(key, text, expected)
    values: list[object] = [found.get(one) for one in (name, password, "securityToken")]  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    user, secret, token = values
    if not (isinstance(user, str) and user.strip() and isinstance(secret, str) and secret.strip()):
        raise ConfigError(key, text, expected)
    return Credentials(user, secret, token if isinstance(token, str) else None)
