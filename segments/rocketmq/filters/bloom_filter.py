"""
The bloom filter over consumer groups, whose bits stand in the consume queue extension.

When a message is dispatched the expressions of all groups are evaluated, and the bits of those
that it matches are set. A pull then skips messages in which a bit of its group is missing without
reading them. (``org.apache.rocketmq.filter.util.BloomFilter``, Guava's ``murmur3_128``)
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Sequence
from functools import lru_cache

import attrs

from logstore.errors import LogStoreError

__all__ = ["BloomFilter", "BloomFilterMismatchError", "murmur3_low_64"]

_MASK = (1 << 64) - 1
_C1, _C2 = 0x87C37B91114253D5, 0x4CF5AD432745937F
_PAIR = struct.Struct("<QQ")
#: every pull that brings an expression asks for the bits of its group
_KEPT_MAX = 1024


class BloomFilterMismatchError(LogStoreError):
    """A bit map has not the length of the filter it is used with."""


@attrs.frozen
class BloomFilter:
    """
    How many bits a bit map has, and how many of them each group sets.

    `error_percent` is how often a message may pass that does not match, if no more than
    `group_count` groups filter.
    """

    hash_count: int
    bit_count: int
    error_percent: int
    group_count: int

    @classmethod
    def sized(cls, error_percent: int = 20, group_count: int = 32) -> BloomFilter:
        """
        Return the filter for these; the defaults are the broker's.

        (``createByFn``; maxErrorRateOfBloomFilter, expectConsumerNumUseFilter)

        Raises:
            ValueError: the error is not in 1..99, or there is no group.

        """
        if not 1 <= error_percent < 100:
            raise ValueError(f"an error of {error_percent} percent is not in 1..99")
        if group_count < 1:
            raise ValueError(f"{group_count} groups are too few: 1 at least")
        # In Java's order of operations: the results are rounded up, a last bit matters.
        rate = error_percent / 100.0
        hash_count = math.ceil(math.log(rate) / math.log(0.5))
        log2_of_rest = math.log(1 / rate) / math.log(2)
        log2_of_e = math.log(math.e) / math.log(2)
        bit_count = 8 * math.ceil(math.ceil(group_count * log2_of_rest * log2_of_e) / 8)
        return cls(hash_count, bit_count, error_percent, group_count)

    @property
    def size_bytes(self) -> int:
        """Length of a bit map."""
        return self.bit_count // 8

    def bit_positions(self, text: str) -> tuple[int, ...]:
        """Return the bits of `text`; for a group it is ``group#topic`` (``calcBitPositions``)."""
        return _bit_positions(text, self.hash_count, self.bit_count)

    def is_valid(self, bit_count: int, bit_positions: Sequence[int] | None) -> bool:
        """Tell whether bits that were kept somewhere were made with such a filter."""
        return (
            bit_count == self.bit_count
            and bit_positions is not None
            and len(bit_positions) == self.hash_count
            and all(0 <= position < bit_count for position in bit_positions)
        )

    def bit_map(self, matching: Iterable[Sequence[int]]) -> bytes:
        """Return a bit map with all these bits set."""
        bits = bytearray(self.size_bytes)
        for positions in matching:
            for position in positions:
                bits[position >> 3] |= 1 << (position & 7)
        return bytes(bits)

    def is_hit(self, bit_positions: Iterable[int], bit_map: bytes) -> bool:
        """
        Tell whether all these bits are set (``isHit``).

        Raises:
            BloomFilterMismatchError: the bit map has another length.

        """
        if len(bit_map) != self.size_bytes:
            raise BloomFilterMismatchError(
                f"a bit map of {len(bit_map)} bytes is none of a filter of {self.size_bytes}"
            )
        return all(bit_map[position >> 3] >> (position & 7) & 1 for position in bit_positions)


@lru_cache(maxsize=_KEPT_MAX)
def _bit_positions(text: str, hash_count: int, bit_count: int) -> tuple[int, ...]:
    hashed = murmur3_low_64(text.encode("utf-8", "replace"))
    low, high = hashed & 0xFFFFFFFF, hashed >> 32
    positions: list[int] = []
    for index in range(1, hash_count + 1):
        combined = (low + index * high) & 0xFFFFFFFF
        if combined >> 31:
            combined ^= 0xFFFFFFFF
        positions.append(combined % bit_count)
    return tuple(positions)


def murmur3_low_64(data: bytes) -> int:
    """Return the first 64 bits of MurmurHash3 x64 128 with seed 0 (Guava: ``asLong``)."""
    h1 = h2 = 0
    whole = len(data) & ~15
    for k1, k2 in _PAIR.iter_unpack(data[:whole]):
        h1 ^= _mixed(k1, _C1, 31, _C2)
        h1 = ((_rotated(h1, 27) + h2) * 5 + 0x52DCE729) & _MASK
        h2 ^= _mixed(k2, _C2, 33, _C1)
        h2 = ((_rotated(h2, 31) + h1) * 5 + 0x38495AB5) & _MASK
    if whole < len(data):
        k1, k2 = _PAIR.unpack(data[whole:].ljust(16, b"\0"))
        h1 ^= _mixed(k1, _C1, 31, _C2)
        h2 ^= _mixed(k2, _C2, 33, _C1)
    h1 ^= len(data)
    h2 ^= len(data)
    h1 = (h1 + h2) & _MASK
    h2 = (h2 + h1) & _MASK
    return (_finished(h1) + _finished(h2)) & _MASK


def _rotated(value: int, bits: int) -> int:
    value &= _MASK
    return (value << bits | value >> (64 - bits)) & _MASK


def _mixed(value: int, first: int, bits: int, second: int) -> int:
    return _rotated(value * first, bits) * second & _MASK


def _finished(value: int) -> int:
    value = (value ^ value >> 33) * 0xFF51AFD7ED558CCD & _MASK
    value = (value ^ value >> 33) * 0xC4CEB9FE1A85EC53 & _MASK
    return value ^ value >> 33
