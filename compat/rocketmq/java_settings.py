"""Settings as attributes of a class, each filled by the name that Java has for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Self

import attrs

from logstore.segments.rocketmq.settings.java_config import JavaConfig


def _flag(text: str) -> bool:
    return text.strip().lower() == "true"


def _key(name: str, default: Any, read: Callable[[str], Any]) -> Any:
    return attrs.field(default=default, metadata={"key": name, "read": read})


def text(name: str, default: str) -> str:
    """Declare a setting that is a text."""
    found: str = _key(name, default, str.strip)
    return found


def whole(name: str, default: int) -> int:
    """Declare a setting that is a whole number."""
    found: int = _key(name, default, int)
    return found


def switch(name: str, *, default: bool) -> bool:
    """Declare a setting that is on or off."""
    found: bool = _key(name, default, _flag)
    return found


@attrs.define
class JavaSettings:
    """Whose attributes are declared by the functions above."""

    @classmethod
    def of(cls, given: Mapping[str, str]) -> Self:
        """
        Return the settings that `given` says, by Java's keys; others are Java's defaults.

        Raises:
            ValueError: a value is no number where one belongs.

        """
        settings = cls()
        settings.update(given)
        return settings

    @classmethod
    def of_config(cls, config: JavaConfig) -> Self:
        """Return the settings that a whole configuration says, its defaults included."""
        given: dict[str, str] = {}
        for field in attrs.fields(cls):
            value = config[field.metadata["key"]]
            if isinstance(value, bool):
                given[field.metadata["key"]] = "true" if value else "false"
            elif value is not None:
                given[field.metadata["key"]] = str(value)
        return cls.of(given)

    def update(self, given: Mapping[str, str]) -> None:
        """
        Take over what `given` says of the settings that matter here.

        Raises:
            ValueError: a value is no number where one belongs; nothing has changed then.

        """
        found: dict[str, Any] = {}
        for field in attrs.fields(type(self)):
            key: str = field.metadata["key"]
            if key in given:
                try:
                    found[field.name] = field.metadata["read"](given[key])
                except ValueError as error:
                    raise ValueError(f"{key}={given[key]}: {error}") from error
        for name, value in found.items():
            setattr(self, name, value)
