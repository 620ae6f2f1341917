"""
Typed reading of a request's ext fields.

Java fills header objects by reflection: a number is ``Integer.parseInt``, a flag is ``true`` in
any case. A field that must not be null and is missing, or a number that is none, leads to an
exception and the answer ``SYSTEM_ERROR`` there; here too, with a text that names the field.
Clients in C++ write flags as ``0`` and ``1``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.rocketmq.wire.codes import ResponseCode
from logstore.compat.rocketmq.wire.refusals import RefusedError

if TYPE_CHECKING:
    from collections.abc import Mapping

_INT_MAX = 0x7FFFFFFF
_LONG_MAX = 0x7FFFFFFFFFFFFFFF
#: numbers of so many digits fit in 32 and in 64 bits
_INT_DIGITS, _LONG_DIGITS = 9, 18


def read_text(fields: Mapping[str, str], name: str) -> str:
    """
    Return a text that must be there; it may be empty.

    Raises:
        RefusedError: SYSTEM_ERROR, ``the custom field <name> is null``.

    """
    value = fields.get(name)
    if value is None:
        raise _missing(name)
    return value


def read_int(fields: Mapping[str, str], name: str, default: int | None = None) -> int:
    """
    Return a 32-bit number; `default`, if one is given, where the field is missing.

    Raises:
        RefusedError: SYSTEM_ERROR; it is missing without a default, or no such number.

    """
    return _number(fields, name, default, _INT_MAX)


def read_long(fields: Mapping[str, str], name: str, default: int | None = None) -> int:
    """
    Return a 64-bit number; `default`, if one is given, where the field is missing.

    Raises:
        RefusedError: SYSTEM_ERROR; it is missing without a default, or no such number.

    """
    return _number(fields, name, default, _LONG_MAX)


def is_plain(ints: tuple[str, ...], longs: tuple[str, ...]) -> bool:
    """
    Tell whether `int` may read them all: digits alone, and surely of 32 and of 64 bits.

    It would take spaces and underscores, too, and numbers of any size.
    """
    return (
        "".join(ints + longs).isdecimal()
        and len(max(ints, key=len)) <= _INT_DIGITS
        and len(max(longs, key=len)) <= _LONG_DIGITS
    )


def read_flag(fields: Mapping[str, str], name: str, *, default: bool | None = None) -> bool:
    """
    Return a truth value: ``true`` in any case; everything else is false, as in Java also ``1``.

    Raises:
        RefusedError: SYSTEM_ERROR; it is missing without a default.

    """
    value = fields.get(name)
    if value is None:
        if default is None:
            raise _missing(name)
        return default
    return value == "true" or value.lower() == "true"


def as_fields(**values: str | int | bool | None) -> dict[str, str]:
    """Return ext fields as Java writes values: numbers in decimal, true or false, no nulls."""
    return {
        name: value if isinstance(value, str) else _text_of(value)
        for name, value in values.items()
        if value is not None
    }


def _text_of(value: int | bool) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(int(value))


def _number(fields: Mapping[str, str], name: str, default: int | None, value_max: int) -> int:
    value = fields.get(name)
    if value is None:
        if default is None:
            raise _missing(name)
        return default
    try:
        number = int(value)
    except ValueError:
        number = value_max + 1
    if not -value_max - 1 <= number <= value_max or not value.lstrip("+-").isdigit():
        raise RefusedError(
            ResponseCode.SYSTEM_ERROR, f"the custom field <{name}> is no number: {value!r}"
        )
    return number


def _missing(name: str) -> RefusedError:
    return RefusedError(ResponseCode.SYSTEM_ERROR, f"the custom field <{name}> is null")
