"""
The settings of one listener: its own, ``listener.name.<name>.<key>``, over those of the broker.

What belongs to one SASL mechanism has the mechanism's name before the key, and only counts with the
listener's: ``listener.name.sasl_ssl.plain.sasl.jaas.config``. Source: ``ChannelBuilders``,
``AbstractConfig.valuesWithPrefixOverride``.
"""

from __future__ import annotations

from collections.abc import Mapping

from logstore.segments.kafka.broker_config import BROKER_CONFIG_KEYS
from logstore.segments.kafka.config_keys import ConfigError, ConfigKey, ConfigValue
from logstore.segments.kafka.security_config_keys import SECURITY_CONFIG_KEYS


class ListenerSettings:
    """What one listener is told, with Kafka's defaults."""

    def __init__(self, settings: Mapping[str, str], listener_name: str) -> None:
        self._settings = settings
        self._prefix = f"listener.name.{listener_name.lower()}."

    def value(self, key: str) -> ConfigValue:
        """
        Return a value; None where there is none.

        Raises:
            ConfigError: it is not allowed.

        """
        known = _known(key)
        own = self._prefix + key
        if own in self._settings:
            return known._replace(name=own).parse(self._settings[own])
        if key in self._settings:
            return known.parse(self._settings[key])
        return None if known.default is None else known.parse(known.default)

    def text(self, key: str) -> str | None:
        """Return a value that is text; None where there is none."""
        value = self.value(key)
        assert value is None or isinstance(value, str), f"{key} is {value!r}, no text"
        return value

    def names(self, key: str) -> tuple[str, ...]:
        """Return a value that is a list."""
        value = self.value(key)
        assert isinstance(value, tuple), f"{key} is {value!r}, no list"
        return value

    def integer(self, key: str) -> int:
        """Return a value that is a whole number."""
        value = self.value(key)
        assert isinstance(value, int), f"{key} is {value!r}, no whole number"
        return value

    def is_own(self, key: str) -> bool:
        """Tell whether the listener has a value of its own."""
        return self._prefix + key in self._settings

    def name_of(self, key: str, mechanism: str = "") -> str:
        """Return how a setting of this listener, or of a mechanism at it, is written."""
        return self._prefix + (f"{mechanism.lower()}." if mechanism else "") + key

    def of_mechanism(self, mechanism: str, key: str) -> str | None:
        """Return what is said for one mechanism at this listener."""
        return self._settings.get(self.name_of(key, mechanism))

    def value_of_mechanism(self, mechanism: str, key: str) -> ConfigValue:
        """
        Return a value that is said for one mechanism, or for all of them.

        Raises:
            ConfigError: it is not allowed.

        """
        own = self.of_mechanism(mechanism, key)
        if own is None:
            return self.value(key)
        return _known(key)._replace(name=self.name_of(key, mechanism)).parse(own)

    def integer_of_mechanism(self, mechanism: str, key: str) -> int:
        """Return a number that is said for one mechanism, or for all of them."""
        value = self.value_of_mechanism(mechanism, key)
        assert isinstance(value, int), f"{key} is {value!r}, no whole number"
        return value

    def refusal(self, key: str, allowed: str) -> ConfigError:
        """Return the error that says what a value must be; of what is secret it says no more."""
        name = self.name_of(key) if self.is_own(key) else key
        shown = None if _known(key).is_secret else self._settings.get(name)
        return ConfigError(name, shown, allowed)


def _known(key: str) -> ConfigKey:
    return SECURITY_CONFIG_KEYS.get(key) or BROKER_CONFIG_KEYS[key]
