"""
Settings as Java's configuration classes have them: fields by name, given as text.

Java parses a value by the type of its setter and passes over what it cannot parse; here that is an
error. An unknown name is none: it is kept aside and told.

Source: ``MixAll.properties2Object``, ``object2Properties``, ``Configuration``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from enum import Enum

import attrs

from logstore.errors import LogStoreError

ConfigValue = bool | int | float | str | None

_INTEGER = re.compile(r"[+-]?[0-9]{1,20}")
#: Java's setters drop a leading "is" of the field: either name is taken
_ALIASES = {
    "isEnableBatchPush": "enableBatchPush",
    "inBrokerContainer": "isInBrokerContainer",
    "scanAvailableNameSrv": "isScanAvailableNameSrv",
}


class ConfigError(LogStoreError, ValueError):
    """A value is not what its setting takes."""

    def __init__(self, name: str, text: str, expected: str) -> None:
        super().__init__(f"{name}={text}: expected {expected}")
        self.name = name


class ConfigType(Enum):
    """What values a setting takes; the value is how errors call it."""

    BOOLEAN = "true or false"
    INT = "a whole number of 32 bits"
    LONG = "a whole number of 64 bits"
    DOUBLE = "a number"
    TEXT = "a text"
    CHOICE = "one of"


@attrs.frozen
class ConfigKey:
    """A setting: name, type, default (None: unset), and for a choice what there is."""

    name: str
    type: ConfigType
    default: ConfigValue
    choices: tuple[str, ...] = ()

    def parse(self, text: str) -> ConfigValue:
        """Return the value that `text` stands for. Raises ConfigError."""
        stripped = text.strip()
        if self.type is ConfigType.TEXT:
            return stripped
        value = _PARSERS[self.type](stripped)
        if value is None or (self.type is ConfigType.CHOICE and value not in self.choices):
            expected = f"{self.type.value} {', '.join(self.choices)}".strip()
            raise ConfigError(self.name, text, expected)
        return value


def keys_of(config_type: ConfigType, defaults: Mapping[str, ConfigValue]) -> tuple[ConfigKey, ...]:
    """Return a key of one type for each name and default."""
    return tuple(ConfigKey(name, config_type, default) for name, default in defaults.items())


def _parse_boolean(text: str) -> bool | None:
    return {"true": True, "false": False}.get(text.lower())


def _parse_integer(text: str, bits: int) -> int | None:
    if not _INTEGER.fullmatch(text):
        return None
    value = int(text)
    return value if -(1 << bits - 1) <= value < 1 << bits - 1 else None


def _parse_double(text: str) -> float | None:
    try:
        return float(text.replace("_", "x"))
    except ValueError:
        return None


def _parse_int(text: str) -> int | None:
    return _parse_integer(text, 32)


def _parse_long(text: str) -> int | None:
    return _parse_integer(text, 64)


def _parse_choice(text: str) -> str:
    return text


_PARSERS: Mapping[ConfigType, Callable[[str], ConfigValue]] = {
    ConfigType.BOOLEAN: _parse_boolean,
    ConfigType.INT: _parse_int,
    ConfigType.LONG: _parse_long,
    ConfigType.DOUBLE: _parse_double,
    ConfigType.CHOICE: _parse_choice,
}


def by_field_name(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the settings under the names of Java's fields, where a setter has another one."""
    return {_ALIASES.get(name, name): text for name, text in settings.items()}


class JavaConfig:
    """
    The values of a set of keys; ``config["mappedFileSizeCommitLog"]`` is the typed value.

    `settings` are the texts that were given; `unknown` those of them that no key has. The typed
    accessors raise KeyError for a name without key: that is a mistake of the program.

    Raises, on construction and on update:
        ConfigError: a value is not of its key's type; nothing is changed then.

    """

    def __init__(self, keys: Mapping[str, ConfigKey], settings: Mapping[str, str]) -> None:
        self.keys = keys
        self.settings: dict[str, str] = {}
        self.unknown: dict[str, str] = {}
        self._values: dict[str, ConfigValue] = {key.name: key.default for key in keys.values()}
        self.update(settings)

    def __getitem__(self, name: str) -> ConfigValue:
        return self._values[name]

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def integer(self, name: str) -> int:
        """Return a whole number."""
        value = self._values[name]
        assert isinstance(value, int), f"{name} is no number"
        return value

    def boolean(self, name: str) -> bool:
        """Return a yes or no."""
        value = self._values[name]
        assert isinstance(value, bool), f"{name} is no boolean"
        return value

    def decimal(self, name: str) -> float:
        """Return a number."""
        value = self._values[name]
        assert isinstance(value, float), f"{name} is no number with a fraction"
        return value

    def text(self, name: str) -> str:
        """Return a text or a choice; "" where it is unset."""
        value = self._values[name]
        assert value is None or isinstance(value, str), f"{name} is no text"
        return value or ""

    def update(self, settings: Mapping[str, str]) -> list[str]:
        """Set values by name; return the names of keys whose value changed."""
        named = by_field_name(settings)
        parsed = {
            name: self.keys[name].parse(text) for name, text in named.items() if name in self.keys
        }
        self.settings.update(named)
        self.unknown.update({name: text for name, text in named.items() if name not in self.keys})
        changed = [name for name, value in parsed.items() if value != self._values[name]]
        self._values.update(parsed)
        return changed

    def texts(self) -> dict[str, str]:
        """Return every value that is set by name, as Java prints it."""
        return {name: _text_of(value) for name, value in self._values.items() if value is not None}


def _text_of(value: bool | int | float | str) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
