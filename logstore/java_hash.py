"""
Java's hash of a string, which both brokers' files and answers depend on.

It says in which partition a group lives and in which order Kafka walks its tables; RocketMQ's tags
codes, index slots and shards are made of it.
"""

from __future__ import annotations

import struct

_MASK = 0xFFFF_FFFF
_TAIL_CHARACTERS = 12
_TAIL_FACTOR: int = 31**_TAIL_CHARACTERS
_PREFIXES_MAX = 4096
_PREFIX_CHARACTERS_MAX = 256
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
