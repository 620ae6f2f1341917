"""
The loops over the records of plain batches: keys mapped, records filtered, batches rebuilt.

A batch is plain if it has magic 2, no codec, and is neither transactional nor a marker. The kernels
stop at any other one, and at anything that is not well-formed: the way batch by batch deals with
those, and says what is wrong. Nothing is written outside of the arrays that they are given.
"""

from __future__ import annotations

import numpy as np

from logstore.segments.compiled.loops import (
    Bytes,
    Int64s,
    Number,
    UInt64s,
    compiled,
    inlined,
    uncounted,
)
from logstore.segments.compiled.machine_words import signed_32, signed_64
from logstore.segments.kafka.compaction.key_kernel import LATEST_PUT, hashed, put_block

#: why a kernel returned: a batch is cut short by the window, not plain, or the map is full
CUT, OTHER, FULL = range(3)
#: what `numbers` of :func:`filter_run` holds: what is known of the pass, then what is counted
LATEST, END, NOW, RETENTION, READ, KEPT, KEYLESS, ROWS, WRITTEN, HEADS, MARKED_FROM = range(11)
NUMBERS = 11
#: the rows of `heads`, a column a source batch: where it is, its size
#: the rows of `rows`, a column a batch that stays: place, size, base and last offset, time, new?
PLACE, SIZE, BASE, LAST, TIME, IS_NEW = range(6)
ROW_KINDS = 6

_HEADER_BYTES = 61
_NOT_PLAIN = 0x07 | 0x10 | 0x20
#: the keys of so many records are looked up together
_BLOCK_RECORDS = 256


# numbers


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


# batches


@uncounted
def plain_end(source: Bytes, position: Number, end: Number) -> tuple[Number, int]:
    """Return (where the plain batch at `position` ends, 0), or (0, why there is none)."""
    if end - position < _HEADER_BYTES:
        return 0, CUT
    following = position + 12 + signed_32(source, position + 8)
    if source[position + 16] != 2 or source[position + 22] & _NOT_PLAIN:
        return 0, OTHER
    if following < position + _HEADER_BYTES:
        return 0, OTHER
    if following > end:
        return 0, CUT
    count = signed_32(source, position + 57)
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
    counts: Int64s, superseded: Bytes, secret: UInt64s, heads: Int64s,
) -> tuple[Number, int, int]:  # fmt: skip
    """
    Map the keys from `start_offset` on of all plain batches in ``source[position:end]``.

    Fills a column of `heads` (place, size) for each batch read, and returns at the latest when
    they are full. Returns (where it stopped, why, how many batches were read).
    """
    fields = np.empty(6, np.int64)
    hashes = np.empty((2, _BLOCK_RECORDS), np.uint64)
    offsets = np.empty(_BLOCK_RECORDS, np.int64)
    batch = 0
    while batch < heads.shape[1]:
        following, reason = plain_end(source, position, end)
        if reason >= 0:
            return position, reason, batch
        base_offset = signed_64(source, position)
        at: Number = position + _HEADER_BYTES
        left = signed_32(source, position + 57)
        while left > 0:
            count = 0
            for _ in range(min(left, _BLOCK_RECORDS)):
                at = find_record(source, at, following, fields)
                if at < 0:
                    return position, OTHER, batch
                offset = base_offset + fields[2]
                if fields[4] >= 0 and offset >= start_offset:
                    low, high = hashed(source, fields[3], fields[4], secret)
                    hashes[0, count], hashes[1, count], offsets[count] = low, high, offset
                    count += 1
            if not put_block(table, counts, superseded, hashes, offsets, count):
                return position, FULL, batch
            left -= _BLOCK_RECORDS
        if at != following:
            return position, OTHER, batch
        last_offset = base_offset + signed_32(source, position + 23)
        if last_offset >= start_offset:
            counts[LATEST_PUT] = last_offset
        heads[0, batch] = position
        heads[1, batch] = following - position
        batch += 1
        position = following
    return position, CUT, batch
