"""Java's int: a sum that is too large for 32 bits goes round."""

from __future__ import annotations

_HALF = 1 << 31


def as_java_int(number: int) -> int:
    """Return what Java's int makes of a number."""
    return (number + _HALF) % (2 * _HALF) - _HALF
