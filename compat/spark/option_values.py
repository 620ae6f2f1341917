"""
The values of Spark's options: texts, of which each says one thing.

Names come in any case, values with blanks around them; what is wrong is told by the option's name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, cast

from logstore.errors import LogStoreError

Options = Mapping[str, str]

_UNITS_MS = {"ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}


class OptionError(LogStoreError):
    """An option has a value that is not allowed."""

    def __init__(self, name: str, value: object, wanted: str) -> None:
        super().__init__(f"option {name}: {value!r} {wanted}")


def text_of(options: Options, name: str) -> str | None:
    """Return the option's text without blanks around it, None where it is not given."""
    text = options.get(name.lower())
    return None if text is None else text.strip()


def one_of(options: Options, name: str, allowed: tuple[str, ...]) -> str:
    """Return one of few words, the first where the option is not given."""
    value = (text_of(options, name) or allowed[0]).lower()
    if value not in allowed:
        raise OptionError(name, value, f"must be one of: {', '.join(allowed)}")
    return value


def number(options: Options, name: str, default: int, least: int) -> int:
    """Return a whole number that is not below `least`."""
    text = text_of(options, name)
    if text is None:
        return default
    try:
        value = int(text)
    except ValueError:
        raise OptionError(name, text, "must be a whole number") from None
    if value < least:
        raise OptionError(name, text, f"must be at least {least}")
    return value


def flag(options: Options, name: str, *, default: bool = False) -> bool:
    """Return what ``true`` or ``false`` says."""
    return one_of(options, name, ("true", "false") if default else ("false", "true")) == "true"


def duration_ms(options: Options, name: str, default_ms: int) -> int:
    """Return a time span such as ``15m`` or ``30s``; without a unit it is in milliseconds."""
    text = text_of(options, name)
    if text is None:
        return default_ms
    found = re.fullmatch(r"([0-9]+)\s*([a-z]*)", text.lower())
    unit_ms = _UNITS_MS.get(found[2] or "ms") if found is not None else None
    if found is None or unit_ms is None:
        raise OptionError(name, text, "must be a time span such as 500ms, 30s, 15m, 2h or 1d")
    return int(found[1]) * unit_ms


def json_object(name: str, text: str) -> dict[str, Any]:
    """Return a JSON object, which has a key for each topic."""
    try:
        found: Any = json.loads(text)
    except ValueError as error:
        raise OptionError(name, text, f"is no JSON ({error})") from error
    if not isinstance(found, dict):
        raise OptionError(name, text, "must be a JSON object with a key per topic")
    return cast("dict[str, Any]", found)
