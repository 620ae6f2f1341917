"""
The loop that copies plain batches without the records that are superseded.

It does what :class:`~logstore.segments.kafka.compaction.batch_filter.BatchFilter` does, to the
byte, but for the CRC of a batch that was rebuilt: the caller writes that.
"""

from __future__ import annotations

import numpy as np

from logstore.segments.compiled.loops import (
    Bytes,
    Int64s,
    Number,
    UInt64s,
    compiled,
    uncounted,
)
from logstore.segments.compiled.machine_words import copy, put_32, put_64, signed_32, signed_64
from logstore.segments.kafka.compaction.key_kernel import get_key, is_superseded
from logstore.segments.kafka.compaction.run_kernel import (
    BASE,
    CUT,
    END,
    HEADS,
    IS_NEW,
    KEPT,
    KEYLESS,
    LAST,
    LATEST,
    MARKED_FROM,
    NOW,
    OTHER,
    PLACE,
    READ,
    RETENTION,
    ROWS,
    SIZE,
    TIME,
    WRITTEN,
    find_record,
    plain_end,
    put_varint,
    varint_bytes,
)

_HEADER_BYTES = 61
_HORIZON = 0x40
_APPEND_TIME = 0x08
_KNOWN_BITS = 0x7F


@compiled
def _must_stay(source: Bytes, position: Number, last: Number, end: Number, lasts: Int64s) -> bool:
    """Tell whether at least the header stays: `lasts` are producers, sorted, and last offsets."""
    if last + 1 == end:
        return True
    producer_id = signed_64(source, position + 43)
    if producer_id < 0:
        return False
    slot = np.searchsorted(lasts[0], producer_id)
    if slot == lasts.shape[1]:
        return False
    return bool(lasts[0, slot] == producer_id and lasts[1, slot] == last)


@compiled
def _judge(
    source: Bytes, position: Number, following: Number, table: UInt64s,
    superseded: Bytes, secret: UInt64s, numbers: Int64s, kept: Int64s,
) -> tuple[Number, Number]:  # fmt: skip
    """
    Note the records that stay in columns of `kept`: timestamp, start and end of what is copied.

    Returns (how many, how many of them are tombstones), or (-1, 0) at a bad record.
    """
    base_offset, base_ms = signed_64(source, position), signed_64(source, position + 27)
    is_marked = source[position + 22] & _HORIZON != 0
    keeps_tombstones = not is_marked or numbers[NOW] < base_ms
    is_append_time = source[position + 22] & _APPEND_TIME != 0
    max_ms = signed_64(source, position + 35)
    latest, marked_from = numbers[LATEST], numbers[MARKED_FROM]
    fields = np.empty(6, np.int64)
    at: Number = position + _HEADER_BYTES
    count = tombstones = keyless = 0
    for _ in range(signed_32(source, position + 57)):
        at = find_record(source, at, following, fields)
        if at < 0:
            return -1, 0
        offset = base_offset + fields[2]
        if offset <= latest:
            if fields[4] < 0:
                keyless += 1
                continue
            if fields[5] < 0 and not keeps_tombstones:
                continue
            if offset >= marked_from:
                if is_superseded(superseded, offset - marked_from):
                    continue
            elif offset < get_key(table, source, fields[3], fields[4], secret):
                continue
        tombstones += fields[5] < 0
        kept[0, count] = max_ms if is_append_time else base_ms + fields[0]
        kept[1, count] = fields[1]
        kept[2, count] = at
        count += 1
    if at != following:
        return -1, 0
    numbers[KEYLESS] += keyless
    return count, tombstones


@uncounted
def _rebuild(
    source: Bytes, position: Number, kept: Int64s, count: Number, horizon: Number, target: Bytes,
    place: Number,
) -> tuple[Number, Number]:  # fmt: skip
    """Write the batch with `count` records of `kept`; return (where it ends, its largest time)."""
    copy(source, position, _HEADER_BYTES, target, place)
    horizon = horizon if count else -1
    base_ms: Number = horizon if horizon >= 0 else kept[0, 0] if count else -1
    attributes = source[position + 22] & _KNOWN_BITS & ~_HORIZON
    if horizon >= 0:
        attributes |= _HORIZON
    target[place + 21] = 0
    target[place + 22] = attributes
    max_ms = signed_64(source, position + 35)
    if count and not source[position + 22] & _APPEND_TIME:
        max_ms = np.int64(-1)
        for row in range(count):
            max_ms = max(max_ms, kept[0, row])
    put_64(target, place + 27, base_ms)
    put_64(target, place + 35, max_ms)
    put_32(target, place + 57, count)
    at: Number = place + _HEADER_BYTES
    for row in range(count):
        delta = kept[0, row] - base_ms
        size = kept[2, row] - kept[1, row]
        at = put_varint(target, at, 1 + varint_bytes(delta) + size)
        target[at] = 0
        at = put_varint(target, at + 1, delta)
        copy(source, kept[1, row], size, target, at)
        at += size
    put_32(target, place + 8, at - place - 12)
    return at, max_ms


@compiled
def filter_run(
    source: Bytes, position: Number, end: Number, table: UInt64s, superseded: Bytes,
    secret: UInt64s, lasts: Int64s, numbers: Int64s, kept: Int64s, target: Bytes, heads: Int64s,
    rows: Int64s,
) -> tuple[Number, int]:  # fmt: skip
    """
    Copy what stays of all plain batches in ``source[position:end]`` to `target`.

    `target` has room for three times as much. Fills a column of `heads` for each batch read and
    one of `rows` for each that stays; returns at the latest when `heads` are full. Returns (where
    it stopped, why).
    """
    place: Number = numbers[WRITTEN]
    while numbers[HEADS] < heads.shape[1]:
        following, reason = plain_end(source, position, end)
        if reason >= 0:
            return position, reason
        size = following - position
        if place + 3 * size + _HEADER_BYTES > target.shape[0]:
            return position, CUT
        record_count = signed_32(source, position + 57)
        if record_count > kept.shape[1]:
            return position, OTHER
        count, tombstones = _judge(
            source, position, following, table, superseded, secret, numbers, kept)  # fmt: skip
        if count < 0:
            return position, OTHER
        base_offset = signed_64(source, position)
        last = base_offset + signed_32(source, position + 23)
        heads[0, numbers[HEADS]], heads[1, numbers[HEADS]] = position, size
        numbers[HEADS], numbers[READ] = numbers[HEADS] + 1, numbers[READ] + record_count
        if count or _must_stay(source, position, last, numbers[END], lasts):
            is_marked = source[position + 22] & _HORIZON != 0
            horizon: Number = signed_64(source, position + 27) if is_marked else -1
            is_new = count < record_count or count == 0
            if tombstones and not is_marked:
                horizon, is_new = numbers[NOW] + numbers[RETENTION], True
            ending, max_ms = place + size, signed_64(source, position + 35)
            if is_new:
                ending, max_ms = _rebuild(source, position, kept, count, horizon, target, place)
            else:
                copy(source, position, size, target, place)
            row = rows[:, numbers[ROWS]]
            row[PLACE], row[SIZE], row[BASE], row[LAST] = place, ending - place, base_offset, last
            row[TIME], row[IS_NEW] = max_ms, is_new
            numbers[ROWS], numbers[KEPT] = numbers[ROWS] + 1, numbers[KEPT] + count
            place = ending
        numbers[WRITTEN] = place
        position = following
    return position, CUT
