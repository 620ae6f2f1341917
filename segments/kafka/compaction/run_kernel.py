"""
The loops over the records of plain batches: keys mapped, records filtered, batches rebuilt.

A batch is plain if it has magic 2, no codec, and is neither transactional nor a marker. The kernels
stop at any other one, and at anything that is not well-formed: the way batch by batch deals with
those, and says what is wrong. Nothing is written outside of the arrays that they are given.

A key counts by its SipHash-2-4 of 128 bits, under a secret of each pass, as in Kafka it counts by
its MD5: no two keys meet by chance, and nobody can make them meet.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Int64s = NDArray[np.int64]
UInt64s = NDArray[np.uint64]
FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])
#: an integer of Python where the loops run as they are, one of 64 bits where they are compiled
Number = int | np.int64

#: why a kernel returned: a batch is cut short by the window, not plain, or the map is full
CUT, OTHER, FULL = range(3)
#: what `numbers` of :func:`filter_run` holds: what is known of the pass, then what is counted
LATEST, END, NOW, RETENTION, READ, KEPT, KEYLESS, ROWS, WRITTEN, HEADS = range(10)
NUMBERS = 10
#: the rows of `heads`, a column a source batch: where it is, its size
#: the rows of `rows`, a column a batch that stays: place, size, base and last offset, time, new?
PLACE, SIZE, BASE, LAST, TIME, IS_NEW = range(6)
ROW_KINDS = 6

_HEADER_BYTES = 61
_NOT_PLAIN = 0x07 | 0x10 | 0x20
_HORIZON = 0x40
_APPEND_TIME = 0x08


def _find_njit() -> Any:
    try:
        return importlib.import_module("numba").njit
    except ImportError:
        return None


_njit = _find_njit()


def is_available() -> bool:
    """Tell whether numba can be imported, so that the loops are fast."""
    return _njit is not None


def compiled(function: FunctionT) -> FunctionT:
    """Return `function` as numba compiles it at its first call, or as it is without numba."""
    if _njit is None:
        return function
    return cast("FunctionT", _njit(cache=True, nogil=True)(function))


def uncounted(function: FunctionT) -> FunctionT:
    """
    As :func:`compiled`, for what makes no arrays: it counts no references to those it is given.

    That costs as much as a short loop at every call, and those of the caller live on anyway.
    """
    if _njit is None:
        return function
    return cast("FunctionT", _njit(cache=True, nogil=True, _nrt=False)(function))


def inlined(function: FunctionT) -> FunctionT:
    """As :func:`uncounted`, for a step of every record: its code stands where it is called."""
    if _njit is None:
        return function
    return cast("FunctionT", _njit(cache=True, nogil=True, forceinline=True, _nrt=False)(function))


# numbers


@inlined
def get_integer(source: Bytes, position: Number, size: int) -> Number:
    """Return the signed big-endian integer of `size` bytes."""
    value = np.int64(np.int8(source[position]))
    for index in range(1, size):
        value = (value << 8) | np.int64(source[position + index])
    return value


@inlined
def put_integer(target: Bytes, position: Number, size: int, value: Number) -> None:
    """Write a signed big-endian integer of `size` bytes."""
    for index in range(size):
        target[position + index] = (value >> (8 * (size - 1 - index))) & 255


@inlined
def _varint(source: Bytes, position: Number, end: Number) -> tuple[Number, Number]:
    """Return (signed value of at most 64 bits, position after it), or (0, -1)."""
    if position < end and source[position] < 128:  # most have one byte
        small = np.int64(source[position])
        return (small >> 1) ^ -(small & 1), position + 1
    value = np.uint64(0)
    for count in range(10):
        if position + count >= end:
            return 0, -1
        byte = np.uint64(source[position + count])
        value |= (byte & np.uint64(127)) << np.uint64(7 * count)
        if byte < np.uint64(128):
            half = np.int64(value >> np.uint64(1))
            return half ^ -np.int64(value & np.uint64(1)), position + count + 1
    return 0, -1


@inlined
def put_varint(target: Bytes, position: Number, value: Number) -> Number:
    """Write a zig-zagged integer; return the position after it."""
    rest = (np.uint64(value) << np.uint64(1)) ^ np.uint64(np.int64(value) >> np.int64(63))
    while rest >= np.uint64(128):
        target[position] = np.uint8((rest & np.uint64(127)) | np.uint64(128))
        rest >>= np.uint64(7)
        position += 1
    target[position] = np.uint8(rest)
    return position + 1


@inlined
def varint_bytes(value: Number) -> Number:
    """Return how many bytes :func:`put_varint` writes."""
    rest = (np.uint64(value) << np.uint64(1)) ^ np.uint64(np.int64(value) >> np.int64(63))
    count = 1
    while rest >= np.uint64(128):
        rest >>= np.uint64(7)
        count += 1
    return count


@inlined
def copy_bytes(source: Bytes, start: Number, size: Number, target: Bytes, place: Number) -> None:
    """Copy ``source[start : start + size]`` to `place` of `target`."""
    piece, room = source[start : start + size], target[place : place + size]
    for index in range(size):
        room[index] = piece[index]


# keys


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
    key = source[start : start + size]  # counted from zero: no negative index to think of
    whole = size - size % 8
    for at in range(0, whole + 8, 8):
        word = np.uint64(0)
        if at < whole:
            for index in range(8):
                word |= np.uint64(key[at + index]) << np.uint64(8 * index)
        else:
            for index in range(size - whole):
                word |= np.uint64(key[at + index]) << np.uint64(8 * index)
            word |= np.uint64(size & 255) << np.uint64(56)
        d ^= word
        a, b, c, d = _round(a, b, c, d)
        a, b, c, d = _round(a, b, c, d)
        a ^= word
    c ^= np.uint64(0xEE)
    for _ in range(4):
        a, b, c, d = _round(a, b, c, d)
    low = a ^ b ^ c ^ d
    b ^= np.uint64(0xDD)
    for _ in range(4):
        a, b, c, d = _round(a, b, c, d)
    return low, a ^ b ^ c ^ d


@inlined
def find_slot(table: UInt64s, low: np.uint64, high: np.uint64) -> Number:
    """Return the row of `table` with this hash, or the empty one where it belongs."""
    capacity = np.uint64(table.shape[0])
    slot: Number = np.int64(((low >> np.uint64(32)) * capacity) >> np.uint64(32))
    while table[slot, 2] != 0 and (table[slot, 0] != low or table[slot, 1] != high):
        slot += 1
        if slot == table.shape[0]:
            slot = 0
    return slot


@uncounted
def put_key(
    table: UInt64s, counts: Int64s, source: Bytes, start: Number, size: Number, offset: Number,
    secret: UInt64s,
) -> bool:  # fmt: skip
    """
    Note the offset of a key; `counts` are the keys there are, how many may be, the latest offset.

    False, and nothing noted, if the map is full. A row of `table` is the hash and the offset plus
    one, 0 where it is empty.
    """
    if counts[0] >= counts[1]:
        return False
    low, high = hashed(source, start, size, secret)
    slot = find_slot(table, low, high)
    if table[slot, 2] == 0:
        table[slot, 0] = low
        table[slot, 1] = high
        counts[0] += 1
    table[slot, 2] = np.uint64(offset + 1)
    counts[2] = offset
    return True


@uncounted
def get_key(table: UInt64s, source: Bytes, start: Number, size: Number, secret: UInt64s) -> Number:
    """Return the offset of a key, -1 if it is not known."""
    low, high = hashed(source, start, size, secret)
    return np.int64(table[find_slot(table, low, high), 2]) - 1


# batches


@uncounted
def plain_end(source: Bytes, position: Number, end: Number) -> tuple[Number, int]:
    """Return (where the plain batch at `position` ends, 0), or (0, why there is none)."""
    if end - position < _HEADER_BYTES:
        return 0, CUT
    following = position + 12 + get_integer(source, position + 8, 4)
    if source[position + 16] != 2 or source[position + 22] & _NOT_PLAIN:
        return 0, OTHER
    if following < position + _HEADER_BYTES:
        return 0, OTHER
    if following > end:
        return 0, CUT
    count = get_integer(source, position + 57, 4)
    if count < 0 or count > (following - position - _HEADER_BYTES) // 7:
        return 0, OTHER
    return following, -1


@inlined
def find_record(source: Bytes, position: Number, end: Number, fields: Int64s) -> Number:
    """
    Find a record's fields; return where it ends, -1 if it is not well-formed.

    `fields` gets time delta, place of what is behind it, offset delta, place and size of the key,
    size of the value.
    """
    length, position = _varint(source, position, end)
    if position < 0 or length < 1 or length > end - position:
        return -1
    end = position + length
    fields[0], position = _varint(source, position + 1, end)
    if position < 0:
        return -1
    fields[1] = position
    fields[2], position = _varint(source, position, end)
    if position < 0:
        return -1
    size, position = _varint(source, position, end)
    if position < 0 or size > end - position:
        return -1
    fields[3], fields[4] = position, size
    size, position = _varint(source, position + max(size, 0), end)
    if position < 0 or size >= end - position:  # a header count follows
        return -1
    fields[5] = size
    return end


@compiled
def map_run(
    source: Bytes, position: Number, end: Number, start_offset: Number, table: UInt64s,
    counts: Int64s, secret: UInt64s, heads: Int64s,
) -> tuple[Number, int, int]:  # fmt: skip
    """
    Map the keys from `start_offset` on of all plain batches in ``source[position:end]``.

    Fills a column of `heads` (place, size) for each batch read, and returns at the latest when
    they are full. Returns (where it stopped, why, how many batches were read).
    """
    fields = np.empty(6, np.int64)
    batch = 0
    while batch < heads.shape[1]:
        following, reason = plain_end(source, position, end)
        if reason >= 0:
            return position, reason, batch
        base_offset = get_integer(source, position, 8)
        at: Number = position + _HEADER_BYTES
        for _ in range(get_integer(source, position + 57, 4)):
            at = find_record(source, at, following, fields)
            if at < 0:
                return position, OTHER, batch
            offset = base_offset + fields[2]
            is_wanted = fields[4] >= 0 and offset >= start_offset
            if is_wanted and not put_key(
                table, counts, source, fields[3], fields[4], offset, secret
            ):
                return position, FULL, batch
        if at != following:
            return position, OTHER, batch
        last_offset = base_offset + get_integer(source, position + 23, 4)
        if last_offset >= start_offset:
            counts[2] = last_offset
        heads[0, batch] = position
        heads[1, batch] = following - position
        batch += 1
        position = following
    return position, CUT, batch
