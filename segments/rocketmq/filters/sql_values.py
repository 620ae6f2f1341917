"""
Values of SQL92 filters, and how Java compares them.

A property is a string. Constants are strings, booleans, 32-bit integers, 64-bit integers or
doubles. Where two values of different kinds meet, a string is read as what the other one is and a
narrow number is widened; what cannot be read is an error, not a mismatch
(``ComparisonExpression.__compare``).
"""

from __future__ import annotations

import re
import struct
from typing import TypeAlias

from logstore.errors import LogStoreError

__all__ = ["Long", "SqlEvaluationError", "Value", "compare", "double_of", "equals", "integer_of"]

_INTEGER = re.compile(r"[+-]?[\d]+", re.UNICODE)
_DOUBLE = re.compile(
    r"[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[fFdD]?|NaN|Infinity)"
)
_HEX_DOUBLE = re.compile(
    r"([+-]?0[xX](?:[0-9a-fA-F]+\.?|[0-9a-fA-F]*\.[0-9a-fA-F]+)[pP][+-]?[0-9]+)[fFdD]?"
)
#: what Java's ``String.trim`` takes off
_TRIMMED = "".join(map(chr, range(0x21)))
_INT_MIN, _INT_MAX = -(1 << 31), (1 << 31) - 1
_LONG_MIN, _LONG_MAX = -(1 << 63), (1 << 63) - 1
_DIGITS_MAX = 4000
#: numbers of fewer digits are 32-bit integers
_INT_DIGITS = 10


class SqlEvaluationError(LogStoreError):
    """An expression cannot be evaluated over these properties; the message does not match."""


class Long(int):
    """A 64-bit integer; a bare ``int`` is one of 32 bits."""

    __slots__ = ()

    def __neg__(self) -> Long:
        """Return its negative, which is a 64-bit integer too."""
        return Long(int.__neg__(self))


#: None is SQL's NULL
Value: TypeAlias = str | bool | int | float | None


def integer_of(text: str, low: int = _INT_MIN, high: int = _INT_MAX) -> int:
    """
    Return the number that `text` spells (``Integer.valueOf``, ``Long.valueOf``).

    Raises:
        SqlEvaluationError: it is not decimal digits with at most a sign, or out of range.

    """
    if text.isdecimal() and text.isascii() and len(text) < _INT_DIGITS:
        return int(text)
    if _INTEGER.fullmatch(text) and len(text) <= _DIGITS_MAX and max(text) <= "\uffff":
        value = int(text)
        if low <= value <= high:
            return value
    raise SqlEvaluationError(f"{text!r} is no integer in {low}..{high}")


def double_of(text: str) -> float:
    """
    Return the double that `text` spells (``Double.valueOf``).

    Space around it, a suffix ``d`` or ``f``, hexadecimal, NaN and Infinity are all fine in Java.

    Raises:
        SqlEvaluationError: it spells none.

    """
    bare = text.strip(_TRIMMED)
    if _DOUBLE.fullmatch(bare):
        return float(bare.rstrip("fFdD") if bare[-1] in "fFdD" else bare)
    found = _HEX_DOUBLE.fullmatch(bare)
    if found:
        try:
            return float.fromhex(found[1])
        except OverflowError:
            return float("-inf" if bare.startswith("-") else "inf")
    raise SqlEvaluationError(f"{text!r} is no number")


def equals(left: str | bool | float, right: str | bool | float) -> bool:
    """Tell whether two values are equal; raises SqlEvaluationError where one cannot be read."""
    if type(left) is type(right) is str:
        return left == right
    return compare(left, right) == 0


def compare(left: str | bool | float, right: str | bool | float) -> int:
    """
    Return a negative number, 0 or a positive one, as Java's ``compareTo`` of the two.

    -1 where the two cannot be compared at all.

    Raises:
        SqlEvaluationError: a string is not a number of the other's kind, or a boolean stands left
            of a string, which Java cannot cast.

    """
    if type(left) is not type(right):
        if isinstance(left, str):
            left = _read_as(left, right)
        elif isinstance(right, str):
            if isinstance(left, bool):
                raise SqlEvaluationError(f"{left} stands left of the string {right!r}")
            right = _read_as(right, left)
        elif isinstance(left, bool) or isinstance(right, bool):
            return -1
        elif isinstance(left, float) or isinstance(right, float):
            left, right = float(left), float(right)
    if isinstance(left, float) and isinstance(right, float):
        return _compare_doubles(left, right)
    return (left > right) - (left < right)  # type: ignore[operator]  # both of one kind by now


def _read_as(text: str, other: str | bool | float) -> str | bool | float:
    """Return what `text` spells, read as a value of the kind of `other`."""
    if isinstance(other, bool):
        return text.lower() == "true"
    if isinstance(other, Long):
        return integer_of(text, _LONG_MIN, _LONG_MAX)
    if isinstance(other, int):
        return integer_of(text)
    return double_of(text)


def _compare_doubles(left: float, right: float) -> int:
    """Compare as ``Double.compare``: NaN is above all and equal to itself, -0.0 is below 0.0."""
    if left < right:
        return -1
    if left > right:
        return 1
    if left != left or right != right:
        return (left != left) - (right != right)
    left_bits, right_bits = struct.pack(">d", left)[0], struct.pack(">d", right)[0]
    return (left_bits < right_bits) - (left_bits > right_bits) if left == 0 else 0
