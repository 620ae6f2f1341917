"""
Rows of one form, taken apart and put together many at a time.

A call of `struct` costs as much as a handful of the values that it moves. So rows go by powers of
two: 32 of them take one call, 33 take two, and no more than seven forms of a row are kept.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

#: rows of one call at most, a power of two
_TOGETHER_MAX = 64
_FORMS_MAX = 256


def unpack_rows(form: str, data: bytes, count: int) -> Sequence[Any]:
    """
    Return the values of `count` rows, those of one behind those of the one before.

    `form` is what `struct` calls the format of a row, without a byte order: the highest byte comes
    first. `data` is as long as so many rows are.
    """
    if count in _POWERS:
        return _rows_of(form, count).unpack(data)
    values: list[Any] = []
    position = 0
    for part in _parts_of(count):
        rows = _rows_of(form, part)
        values += rows.unpack_from(data, position)
        position += rows.size
    return values


def pack_rows(form: str, values: Sequence[Any], count: int) -> bytes:
    """Return the bytes of `count` rows of these values, as :func:`unpack_rows` returns them."""
    if count in _POWERS:
        return _rows_of(form, count).pack(*values)
    pieces: list[bytes] = []
    width = len(values) // count if count else 0
    start = 0
    for part in _parts_of(count):
        end = start + part * width
        pieces.append(_rows_of(form, part).pack(*values[start:end]))
        start = end
    return b"".join(pieces)


_POWERS = frozenset(1 << shift for shift in range(_TOGETHER_MAX.bit_length()))


@lru_cache(maxsize=_FORMS_MAX)
def _rows_of(form: str, count: int) -> struct.Struct:
    return struct.Struct(f">{form * count}")


@lru_cache(maxsize=_FORMS_MAX)
def _parts_of(count: int) -> tuple[int, ...]:
    """Return powers of two that add up to `count`, the largest first."""
    whole, rest = divmod(count, _TOGETHER_MAX)
    powers = (1 << shift for shift in reversed(range(_TOGETHER_MAX.bit_length() - 1)))
    return (*[_TOGETHER_MAX] * whole, *[power for power in powers if rest & power])
