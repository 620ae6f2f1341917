"""Texts that stand for numbers of 32 bits, as Java reads them (``Integer.parseInt``)."""

from __future__ import annotations

import re

_NUMBER = re.compile(r"[+-]?\d+")
_MIN, _MAX = -(2**31), 2**31 - 1


def java_int(text: str) -> int | None:
    """Return the number that a text stands for, None if it is none or has too many bits."""
    if not _NUMBER.fullmatch(text):
        return None
    number = int(text)
    return number if _MIN <= number <= _MAX else None
