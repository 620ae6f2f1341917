"""Java's int and long: a sum that is too large for 32 or 64 bits goes round."""

from __future__ import annotations

_INT_HALF, _LONG_HALF = 1 << 31, 1 << 63


def as_java_int(number: int) -> int:
    """Return what Java's int makes of a number."""
    return (number + _INT_HALF) % (2 * _INT_HALF) - _INT_HALF


def as_java_long(number: int) -> int:
    """Return what Java's long makes of a number."""
    return (number + _LONG_HALF) % (2 * _LONG_HALF) - _LONG_HALF
