"""
What one setting is: its name, type, default, allowed values, and what it is for.

The tables of keys are in :mod:`logstore.segments.kafka.topic_config_keys` and
:mod:`logstore.segments.kafka.broker_config_keys`; values are text, as in ``server.properties`` and
on the wire. Source of types and parsing rules: ``ConfigDef``.
"""

from __future__ import annotations

import math
import re
from enum import Enum, IntEnum
from typing import NamedTuple

from logstore.errors import LogStoreError

ConfigValue = bool | int | float | str | tuple[str, ...] | None

INT_MAX = 2**31 - 1
LONG_MAX = 2**63 - 1

_INTEGER = re.compile(r"[+-]?[0-9]{1,40}")
_REPLICA = re.compile(r"[0-9]+:[0-9]+")
#: as Java reads doubles, whose literals may say that they are one
_REAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[fFdD]?")
_HEX_REAL = re.compile(
    r"[+-]?0[xX]([0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+[fFdD]?"
)


def _integer(text: str) -> int | None:
    return int(text) if _INTEGER.fullmatch(text) else None


def _real(text: str) -> float | None:
    if _REAL.fullmatch(text):
        return float(text.rstrip("fFdD"))
    if _HEX_REAL.fullmatch(text) is None:
        return None
    try:
        return float.fromhex(text.rstrip("fFdD"))
    except OverflowError:
        return math.inf


class ConfigError(LogStoreError, ValueError):
    """A setting has a value that it must not have, or does not exist."""

    def __init__(self, name: str, value: str | None, allowed: str) -> None:
        super().__init__(f"{name} = {value!r}: {allowed}")
        self.name = name
        self.value = value
        self.allowed = allowed


class UnknownTopicConfigError(ConfigError):
    """There is no such setting of topics; the words are Kafka's, which clients look for."""

    def __init__(self, name: str, value: str | None) -> None:
        super().__init__(name, value, "there is no such topic setting")
        self.args = (f"Unknown topic config name: {name}",)


class ConfigType(IntEnum):
    """How the text of a value is read; numbered as DescribeConfigs reports it."""

    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class Scope(Enum):
    """What a setting belongs to."""

    TOPIC = "topic"
    BROKER = "broker"


class Effect(Enum):
    """What giving a known setting does here."""

    USED = "used"
    ACCEPTED = "accepted"  # known, checked and reported, but nothing here depends on it


_BITS = {ConfigType.INT: 32, ConfigType.SHORT: 16, ConfigType.LONG: 64}


class ConfigKey(NamedTuple):
    """
    One setting. `default` is text, None where Kafka has null.

    `choices` bounds strings, and the members of lists; `minimum` and `maximum` are inclusive, with
    the numbers in `excluded` not allowed although they lie between. Where `names_replicas`, a list
    has replicas as ``partition:broker``, or is ``*`` for all of them.
    """

    name: str
    type: ConfigType
    default: str | None
    doc: str
    scope: Scope = Scope.BROKER
    effect: Effect = Effect.USED
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[str, ...] = ()
    excluded: tuple[int, ...] = ()
    names_replicas: bool = False

    @property
    def is_secret(self) -> bool:
        """Tell whether values are nobody's business."""
        return self.type is ConfigType.PASSWORD

    @property
    def allowed(self) -> str:
        """Which values are allowed, in words."""
        if self.choices:
            one = "any of" if self.type is ConfigType.LIST else "one of"
            return f"must be {one} {', '.join(self.choices)}"
        if self.names_replicas:
            return "must be * or a list of partition:broker, in numbers"
        if self.minimum is not None and self.maximum is not None:
            but = "".join(f", but not {number}" for number in self.excluded)
            return f"must be a number in [{self.minimum}, {self.maximum}]{but}"
        if self.minimum is not None:
            return f"must be a number of at least {self.minimum}"
        if self.type is ConfigType.BOOLEAN:
            return "must be true or false"
        if self.type in _BITS:
            return f"must be an integer of {_BITS[self.type]} bits"
        return "must be a number" if self.type is ConfigType.DOUBLE else "must be text"

    def parse(self, text: str | None) -> ConfigValue:
        """Return the value that `text` means; None for null. Raises ConfigError."""
        if text is None:
            if self.default is None:
                return None
            raise ConfigError(self.name, None, self.allowed)
        text = text.strip()
        kind = self.type
        if kind is ConfigType.BOOLEAN:
            if text.lower() not in ("true", "false"):
                raise ConfigError(self.name, text, self.allowed)
            return text.lower() == "true"
        if kind in _BITS or kind is ConfigType.DOUBLE:
            return self._parse_number(text)
        if kind is ConfigType.LIST:
            members = tuple(re.split(r"\s*,\s*", text)) if text else ()
            if self.choices and not set(members) <= set(self.choices):
                raise ConfigError(self.name, text, self.allowed)
            if self.names_replicas and not _name_replicas(members):
                raise ConfigError(self.name, text, self.allowed)
            return members
        if self.choices and text not in self.choices:
            raise ConfigError(self.name, text, self.allowed)
        return text

    def _parse_number(self, text: str) -> int | float:
        bits = _BITS.get(self.type)
        value = _integer(text) if bits else _real(text)
        if value is None:
            raise ConfigError(self.name, text, self.allowed)
        if bits and not -(1 << bits - 1) <= value < 1 << bits - 1:
            raise ConfigError(self.name, text, f"must be an integer of {bits} bits")
        if self.minimum is not None and value < self.minimum:
            raise ConfigError(self.name, text, self.allowed)
        if self.maximum is not None and value > self.maximum:
            raise ConfigError(self.name, text, self.allowed)
        if value in self.excluded:
            raise ConfigError(self.name, text, self.allowed)
        return value


def _name_replicas(members: tuple[str, ...]) -> bool:
    """Tell whether a list names replicas; Kafka overlooks empty members, as after a last comma."""
    return members == ("*",) or all(_REPLICA.fullmatch(one) for one in members if one)


def config_key(
    name: str,
    kind: ConfigType,
    default: object,
    doc: str,
    minimum: float | None = None,
    maximum: float | None = None,
    *,
    choices: tuple[str, ...] = (),
    excluded: tuple[int, ...] = (),
    effect: Effect = Effect.USED,
    scope: Scope = Scope.BROKER,
    names_replicas: bool = False,
) -> ConfigKey:
    """Return a key; for the tables, which give what differs. `default` None is Kafka's null."""
    text = None if default is None else str(default)
    return ConfigKey(
        name, kind, text, doc, scope, effect, minimum, maximum, choices, excluded, names_replicas
    )
