"""
Objects of Java as values of attrs: which field has which name and type in JSON.

Numbers and booleans may stand as texts, as fastjson lets them. A field that is missing or null
has its default. A field that nobody knows is kept, so that a file of another release loses nothing
when it is written again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs

from logstore.errors import LogStoreError
from logstore.segments.rocketmq.settings.release import Release
from logstore.segments.rocketmq.tables.java_json import format_json

_INT31 = 1 << 31
_BOOLEANS = {"true": True, "false": False}


class JsonTypeError(LogStoreError, ValueError):
    """A value in JSON is not of the type that its field has."""


def as_int(value: Any, bits: int = 64) -> int:
    """Return a whole number that fits `bits`. Raises JsonTypeError."""
    if type(value) is int and -_INT31 <= value < _INT31:
        return value
    if isinstance(value, str):
        text = value.strip()
        digits = text[1:] if text[:1] in ("-", "+") else text
        if digits.isascii() and digits.isdigit() and len(digits) <= 20:
            value = int(text)
    if not isinstance(value, int) or isinstance(value, bool):
        raise JsonTypeError(f"expected a whole number, found {str(value)[:40]!r}")
    if not -(1 << bits - 1) <= value < 1 << bits - 1:
        raise JsonTypeError(f"{value} does not fit {bits} bits")
    return value


def as_int32(value: Any) -> int:
    """Return a whole number that fits 32 bits. Raises JsonTypeError."""
    return as_int(value, 32)


def as_bool(value: Any) -> bool:
    """Return a boolean. Raises JsonTypeError."""
    found = _BOOLEANS.get(value.lower()) if isinstance(value, str) else value
    if not isinstance(found, bool):
        raise JsonTypeError(f"expected true or false, found {str(value)[:40]!r}")
    return found


def as_text(value: Any) -> str:
    """
    Return a text; numbers and booleans are taken as theirs, objects and lists as their JSON.

    Raises JsonTypeError. (fastjson2: ``JSONReader.readString``.)
    """
    if isinstance(value, (dict, list)):
        return format_json(value).decode()
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return str(value)
    if not isinstance(value, str):
        raise JsonTypeError(f"expected a text, found {str(value)[:40]!r}")
    return value


def as_object(value: Any) -> dict[Any, Any]:
    """Return an object or map, an empty one for null. Raises JsonTypeError."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise JsonTypeError(f"expected an object, found {str(value)[:40]!r}")
    return value  # pyright: ignore[reportUnknownVariableType]


def as_list(value: Any) -> list[Any]:
    """Return a list, an empty one for null. Raises JsonTypeError."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise JsonTypeError(f"expected a list, found {str(value)[:40]!r}")
    return value  # pyright: ignore[reportUnknownVariableType]


def as_texts(value: Any) -> dict[str, str]:
    """Return a map of texts. Raises JsonTypeError."""
    return {as_text(name): as_text(text) for name, text in as_object(value).items()}


def as_any(value: Any) -> Any:
    """Return a value as it is."""
    return value


@attrs.frozen
class JsonField:
    """
    A field: its name here, its name in Java, what reads it.

    `is_new`: 4.x has no such field and writes it only where it is not the default.
    """

    name: str
    java_name: str
    read: Callable[[Any], Any]
    is_new: bool = False


def read_fields(
    fields: Sequence[JsonField], content: Mapping[Any, Any], **defaults: Any
) -> dict[str, Any]:
    """
    Return arguments for the class that has these fields; unknown ones as `other_fields`.

    `defaults` are arguments that count where the content has none.

    Raises:
        JsonTypeError: a value is not of its field's type.

    """
    known = {field.java_name: field for field in fields}
    found = defaults
    others: dict[str, Any] = {}
    for java_name, value in content.items():
        field = known.get(java_name)
        if field is None:
            others[str(java_name)] = value
        elif value is not None:
            try:
                found[field.name] = field.read(value)
            except JsonTypeError as error:
                raise JsonTypeError(f"{java_name}: {error}") from None
    if others:
        found["other_fields"] = others
    return found


def written_fields(
    fields: Sequence[JsonField], value: Any, defaults: Any, release: Release
) -> dict[str, Any]:
    """Return the fields of `value` by Java's names, sorted; None is left out."""
    written: dict[str, Any] = dict(value.other_fields)
    for field in fields:
        one = getattr(value, field.name)
        is_left_out = field.is_new and release is Release.V4
        if one is None or (is_left_out and one == getattr(defaults, field.name)):
            continue
        written[field.java_name] = one
    return dict(sorted(written.items()))
