"""Settings as Java's configuration classes have them (signatures)."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

import attrs

from logstore.errors import LogStoreError


class ConfigError(LogStoreError, ValueError):
    """A value is not what a setting's type allows."""


class ConfigType(Enum):
    """What values a setting takes."""

    BOOLEAN = "boolean"
    INT = "int"
    LONG = "long"
    DOUBLE = "double"
    TEXT = "String"


@attrs.frozen
class ConfigKey:
    """A setting: name, type, default (None: unset)."""

    name: str
    type: ConfigType
    default: bool | int | float | str | None


class JavaConfig:
    """
    The values of a set of keys; `config["mappedFileSizeCommitLog"]` is the typed value.

    Raises, on construction and on update:
        ConfigError: a value is not of its key's type. Names that no key has are in `unknown`.

    """

    def __init__(self, keys: Mapping[str, ConfigKey], settings: Mapping[str, str]) -> None:
        raise NotImplementedError

    def integer(self, name: str) -> int:
        """Return a whole number."""
        raise NotImplementedError

    def boolean(self, name: str) -> bool:
        """Return a yes or no."""
        raise NotImplementedError

    def decimal(self, name: str) -> float:
        """Return a number."""
        raise NotImplementedError

    def text(self, name: str) -> str:
        """Return a text; "" where it is unset."""
        raise NotImplementedError

    def update(self, settings: Mapping[str, str]) -> list[str]:
        """Set values by name; returns the names that changed."""
        raise NotImplementedError
