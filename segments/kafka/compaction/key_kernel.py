"""
The loops of the map from keys to their last offsets, and the note of what it has superseded.

A key counts by its SipHash-2-4 of 128 bits, under a secret of each pass, as in Kafka it counts by
its MD5: no two keys meet by chance, and nobody can make them meet.

Looking a key up is the dearest step of a pass: the map is larger than any cache. So a put notes the
offset that it supersedes in a bit, and who filters what was mapped need not look up anything. That
takes offsets that rise from put to put; where they do not, the bits are given up.
"""

from __future__ import annotations

import numpy as np

from logstore.segments.compiled.loops import (
    Bytes,
    Int64s,
    Number,
    UInt64s,
    inlined,
    uncounted,
)
from logstore.segments.compiled.machine_words import word

#: what `counts` holds: keys that there are, and that may be; how far the log is known; the largest
#: offset that was put, _NO_ORDER if one was not; the offset of the first bit
KEYS, KEYS_MAX, LATEST_PUT, HIGHEST, FIRST = range(5)
NO_ORDER = 2**63 - 1


@inlined
def _rotated(value: np.uint64, bits: int) -> np.uint64:
    return (value << np.uint64(bits)) | (value >> np.uint64(64 - bits))


@inlined
def _round(
    a: np.uint64, b: np.uint64, c: np.uint64, d: np.uint64
) -> tuple[np.uint64, np.uint64, np.uint64, np.uint64]:
    a += b
    b = _rotated(b, 13) ^ a
    a = _rotated(a, 32)
    c += d
    d = _rotated(d, 16) ^ c
    a += d
    d = _rotated(d, 21) ^ a
    c += b
    b = _rotated(b, 17) ^ c
    c = _rotated(c, 32)
    return a, b, c, d


@uncounted
def hashed(
    source: Bytes, start: Number, size: Number, secret: UInt64s
) -> tuple[np.uint64, np.uint64]:
    """Return the SipHash-2-4 of 128 bits of ``source[start : start + size]``, low half first."""
    k0, k1 = secret[0], secret[1]
    a = k0 ^ np.uint64(0x736F6D6570736575)
    b = k1 ^ np.uint64(0x646F72616E646F6D) ^ np.uint64(0xEE)
    c = k0 ^ np.uint64(0x6C7967656E657261)
    d = k1 ^ np.uint64(0x7465646279746573)
    at, left = start, size
    while left >= 8:
        part = word(source, at)
        d ^= part
        a, b, c, d = _round(a, b, c, d)
        a, b, c, d = _round(a, b, c, d)
        a ^= part
        at, left = at + 8, left - 8
    part = np.uint64(size & 255) << np.uint64(56)
    tail = source[at : at + left]  # counted from zero: no negative index to think of
    for index in range(left):
        part |= np.uint64(tail[index]) << np.uint64(8 * index)
    d ^= part
    a, b, c, d = _round(a, b, c, d)
    a, b, c, d = _round(a, b, c, d)
    a ^= part
    c ^= np.uint64(0xEE)
    for _ in range(4):
        a, b, c, d = _round(a, b, c, d)
    low = a ^ b ^ c ^ d
    b ^= np.uint64(0xDD)
    for _ in range(4):
        a, b, c, d = _round(a, b, c, d)
    return low, a ^ b ^ c ^ d


# the map


@inlined
def _first_slot(table: UInt64s, low: np.uint64) -> Number:
    """Return the row of `table` where the search for a hash begins."""
    return np.int64(((low >> np.uint64(32)) * np.uint64(table.shape[0])) >> np.uint64(32))


@inlined
def _find_slot(table: UInt64s, low: np.uint64, high: np.uint64) -> Number:
    """Return the row of `table` with this hash, or the empty one where it belongs."""
    slot = _first_slot(table, low)
    while table[slot, 2] != 0 and (table[slot, 0] != low or table[slot, 1] != high):
        slot += 1
        if slot == table.shape[0]:
            slot = 0
    return slot


@inlined
def _put(
    table: UInt64s, counts: Int64s, superseded: Bytes, low: np.uint64, high: np.uint64,
    offset: Number,
) -> bool:  # fmt: skip
    """Note the offset of a hash, and that the one before is superseded; False if it is full."""
    if counts[KEYS] >= counts[KEYS_MAX]:
        return False
    bit_count = 8 * superseded.shape[0]
    if offset <= counts[HIGHEST] or offset - counts[FIRST] >= bit_count:
        counts[HIGHEST] = NO_ORDER
    else:
        counts[HIGHEST] = offset
    slot = _find_slot(table, low, high)
    if table[slot, 2] == 0:
        table[slot, 0] = low
        table[slot, 1] = high
        counts[KEYS] += 1
    else:
        bit = np.int64(table[slot, 2]) - 1 - counts[FIRST]
        if 0 <= bit < bit_count:
            superseded[bit >> 3] |= np.uint8(1 << (bit & 7))
    table[slot, 2] = np.uint64(offset + 1)
    counts[LATEST_PUT] = offset
    return True


@uncounted
def put_block(
    table: UInt64s, counts: Int64s, superseded: Bytes, hashes: UInt64s, offsets: Int64s,
    count: Number,
) -> bool:  # fmt: skip
    """
    Note the offsets of so many keys, in order; False once the map is full.

    All rows are read before any is judged, so that the processor waits for several at once.
    """
    seen = np.uint64(0)
    for index in range(count):
        seen |= table[_first_slot(table, hashes[0, index]), 2]
    if seen >> np.uint64(63):
        return False  # no offset is that large; but so nobody leaves the reads out
    for index in range(count):
        if not _put(table, counts, superseded, hashes[0, index], hashes[1, index], offsets[index]):
            return False
    return True


@uncounted
def put_key(
    table: UInt64s, counts: Int64s, superseded: Bytes, source: Bytes, start: Number, size: Number,
    offset: Number, secret: UInt64s,
) -> bool:  # fmt: skip
    """
    Note the offset of a key; False, and nothing noted, if the map is full.

    A row of `table` is the hash and the offset plus one, 0 where it is empty.
    """
    low, high = hashed(source, start, size, secret)
    return _put(table, counts, superseded, low, high, offset)


@uncounted
def get_key(table: UInt64s, source: Bytes, start: Number, size: Number, secret: UInt64s) -> Number:
    """Return the offset of a key, -1 if it is not known."""
    low, high = hashed(source, start, size, secret)
    return np.int64(table[_find_slot(table, low, high), 2]) - 1


@inlined
def is_superseded(superseded: Bytes, bit: Number) -> bool:
    """Tell whether a later record with the key of that one was put."""
    return bool(superseded[bit >> 3] >> (bit & 7) & 1 != 0)
