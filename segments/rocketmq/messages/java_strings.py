"""
What RocketMQ's files owe to Java: the hash of a string, and the order of a hash map.

Tags codes, index slots and the order of stored properties depend on both.
"""

from __future__ import annotations

import struct
import unicodedata
from functools import lru_cache

_MASK = 0xFFFF_FFFF
_TAIL_CHARACTERS = 12
_TAIL_FACTOR: int = 31**_TAIL_CHARACTERS
_PREFIXES_MAX = 4096
_PREFIX_CHARACTERS_MAX = 256
#: what Java takes for whitespace, and does not
_BLANK_CONTROLS = frozenset("\t\n\v\f\r\x1c\x1d\x1e\x1f")
_BLANK_CATEGORIES = ("Zs", "Zl", "Zp")
_UNBROKEN_SPACES = "\u00a0\u2007\u202f"
#: hashes of what stands before the last characters, times what those shift them by
_prefixes: dict[str, int] = {}


def _low_lanes(lane_bytes: int) -> int:
    """Return a mask of 16 bytes that keeps the low half of each lane."""
    half = lane_bytes // 2
    return int.from_bytes((b"\0" * half + b"\xff" * half) * (16 // lane_bytes))


_LOW_1, _LOW_2, _LOW_4 = _low_lanes(2), _low_lanes(4), _low_lanes(8)
_P2, _P4, _P8 = 31**2, 31**4, 31**8


def java_hash(text: str) -> int:
    """
    Return ``text.hashCode()`` of Java: a signed 32-bit integer.

    Keys that differ in their last few characters only, as the unique keys of one client do, cost
    a third of others: the hash of what stands before is kept.
    """
    if not text.isascii():
        return _hash_units(text)
    if len(text) <= _TAIL_CHARACTERS:
        value = 0
        for character in text.encode():
            value = 31 * value + character
        value &= _MASK
        return value - (1 << 32) if value >> 31 else value
    prefix = text[:-_TAIL_CHARACTERS]
    start = _prefixes.get(prefix)
    if start is None:
        start = _keep_prefix(prefix)
    # Neighbours are joined pairwise, all at once, in lanes that grow too wide to overflow.
    lanes = int.from_bytes(text[-_TAIL_CHARACTERS:].encode(), "big")
    lanes = ((lanes >> 8) & _LOW_1) * 31 + (lanes & _LOW_1)
    lanes = ((lanes >> 16) & _LOW_2) * _P2 + (lanes & _LOW_2)
    lanes = ((lanes >> 32) & _LOW_4) * _P4 + (lanes & _LOW_4)
    value = ((lanes >> 64) * _P8 + lanes + start) & _MASK
    return value - (1 << 32) if value >> 31 else value


def _keep_prefix(prefix: str) -> int:
    """Hash what stands before the last characters; what is long would fill the memory."""
    if len(prefix) > _PREFIX_CHARACTERS_MAX:
        return _hash_units(prefix) * _TAIL_FACTOR & _MASK
    if len(_prefixes) >= _PREFIXES_MAX:
        _prefixes.clear()
    value = java_hash(prefix) * _TAIL_FACTOR & _MASK
    _prefixes[prefix] = value
    return value


def _hash_units(text: str) -> int:
    """Hash UTF-16 code units: what Java takes for characters."""
    data = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for unit in struct.unpack(f">{len(data) // 2}H", data):
        value = 31 * value + unit & _MASK
    return value - (1 << 32) if value >> 31 else value


def java_length(text: str) -> int:
    """Return ``text.length()`` of Java: how many UTF-16 code units it has."""
    return len(text) if text.isascii() else len(text.encode("utf-16-be", "surrogatepass")) // 2


@lru_cache(maxsize=4096)
def is_java_blank(text: str) -> bool:
    """Tell whether ``Character.isWhitespace`` of Java holds for all of a text, or it is empty."""
    if "!" <= text[:1] <= "~":
        return False
    return all(
        letter in _BLANK_CONTROLS
        or (letter not in _UNBROKEN_SPACES and unicodedata.category(letter) in _BLANK_CATEGORIES)
        for letter in text
    )


@lru_cache(maxsize=256)
def java_hash_map_order(names: tuple[str, ...], capacity: int) -> tuple[str, ...]:
    """
    Return `names` in the order in which a Java ``HashMap`` yields its keys.

    Args:
        names: in the order in which they were put, each once.
        capacity: of the map when it was made, as asked for: 16 by default. It grows.

    A bucket of more than eight, which Java turns into a tree in large maps, keeps the order of
    insertion here. Messages of one kind have the same names: their order is remembered.

    """
    size = 1
    while size < capacity:
        size *= 2
    hashes = [java_hash(name) & _MASK for name in names]
    spread = [value ^ value >> 16 for value in hashes]
    filled: dict[int, int] = {}
    for count, value in enumerate(spread, 1):
        bucket = value & size - 1
        filled[bucket] = filled.get(bucket, 0) + 1
        crowded = filled[bucket] > 8 and size < 64
        if count > size * 3 // 4 or crowded:
            size *= 2
            filled = {}
            for earlier in spread[:count]:
                filled[earlier & size - 1] = filled.get(earlier & size - 1, 0) + 1
    order = sorted(range(len(names)), key=lambda index: spread[index] & size - 1)
    return tuple(names[index] for index in order)
