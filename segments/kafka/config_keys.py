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
_REPLICAS = (
    "must be the literal '*' or a list of replicas in the following format: "
    "[partitionId]:[brokerId],[partitionId]:[brokerId],..."
)
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
    """
    A setting has a value that it must not have, or does not exist.

    `sentence` is Kafka's where programs may look for it.
    """

    def __init__(
        self, name: str, value: str | None, allowed: str, sentence: str | None = None
    ) -> None:
        super().__init__(sentence or f"{name} = {value!r}: {allowed}")
        self.name = name
        self.value = value
        self.allowed = allowed


class UnknownTopicConfigError(ConfigError):
    """There is no such setting of topics."""

    def __init__(self, name: str, value: str | None) -> None:
        sentence = f"Unknown topic config name: {name}"
        super().__init__(name, value, "there is no such topic setting", sentence)


class ConfigValueError(ConfigError):
    """A value that a setting cannot have, told as Kafka's ``ConfigException`` tells it."""

    def __init__(self, name: str, value: str | float | tuple[str, ...] | None, reason: str) -> None:
        shown = f"[{', '.join(value)}]" if isinstance(value, tuple) else value
        shown = "null" if shown is None else str(shown)
        sentence = f"Invalid value {shown} for configuration {name}: {reason}"
        super().__init__(name, shown, reason, sentence)


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


#: lists that may have empty members, and some twice (those without a ``ValidList`` in Kafka)
_FREE_LISTS = frozenset(
    ("controller.listener.names", "controller.quorum.bootstrap.servers", "controller.quorum.voters",
     "early.start.listeners", "follower.replication.throttled.replicas",
     "leader.replication.throttled.replicas", "process.roles")
)  # fmt: skip
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

    def parse(self, text: str | None) -> ConfigValue:
        """Return the value that `text` means; None for null. Raises ConfigError."""
        if text is None:
            if self.default is None:
                return None
            raise ConfigValueError(self.name, None, "Value must be non-null")
        kind, trimmed = self.type, text.strip()
        if kind is ConfigType.BOOLEAN:
            if trimmed.lower() not in ("true", "false"):
                reason = "Expected value to be either true or false"
                raise ConfigValueError(self.name, text, reason)
            return trimmed.lower() == "true"
        if kind in _BITS or kind is ConfigType.DOUBLE:
            return self._parse_number(text)
        if kind is ConfigType.LIST:
            return self._parse_list(trimmed)
        if self.choices:
            self._check_choice(trimmed)
        return trimmed

    def _parse_list(self, text: str) -> tuple[str, ...]:
        members = tuple(re.split(r"\s*,\s*", text)) if text else ()
        if self.name not in _FREE_LISTS:
            members = tuple(dict.fromkeys(members))
            for member in members:
                if not member:
                    sentence = f"Configuration '{self.name}' values must not be empty."
                    raise ConfigError(self.name, text, "values must not be empty", sentence)
                if self.choices:
                    self._check_choice(member)
        if self.names_replicas and not _name_replicas(members):
            raise ConfigValueError(self.name, members, f"{self.name} {_REPLICAS}")
        return members

    def _check_choice(self, text: str) -> None:
        if text not in self.choices:
            reason = f"String must be one of: {', '.join(self.choices)}"
            raise ConfigValueError(self.name, text, reason)

    def _parse_number(self, text: str) -> int | float:
        bits = _BITS.get(self.type)
        value = _integer(text.strip()) if bits else _real(text.strip())
        if value is None or (bits and not -(1 << bits - 1) <= value < 1 << bits - 1):
            raise ConfigValueError(self.name, text, f"Not a number of type {self.type.name}")
        if self.excluded and not self._is_level(value):
            reason = f"Value must be between {self.excluded[-1] + 1} and {self.maximum}"
            raise ConfigValueError(self.name, value, f"{reason} or equal to {self.minimum}")
        if self.minimum is not None and value < self.minimum:
            raise ConfigValueError(self.name, value, f"Value must be at least {self.minimum}")
        if self.maximum is not None and value > self.maximum:
            raise ConfigValueError(self.name, value, f"Value must be no more than {self.maximum}")
        return value

    def _is_level(self, value: float) -> bool:
        """Tell whether a number is one of a range that lacks some."""
        assert self.minimum is not None
        assert self.maximum is not None
        return self.minimum <= value <= self.maximum and value not in self.excluded


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
