"""
Stored messages as a record batch: the loops.

They do what :mod:`logstore.compat.bridge.kafka_over_rocketmq.message_rows` does of plain messages:
those with hosts of IPv4 and a body that is not compressed, whose properties are ASCII, well-formed,
of different names, and without a rest.
"""

from __future__ import annotations

import numpy as np

from logstore.compat.bridge.compiled.numbers import (
    copy,
    get_big_endian,
    is_text,
    put_varint,
    varint_bytes,
)
from logstore.segments.compiled.loops import Bytes, Int64s, Number, compiled

#: there is a message that is not plain
NOT_PLAIN = -1
#: system flags of messages that are not: compressed, or with a host of IPv6
_UNUSUAL = 0x31
_HEAD_BYTES = 88
_KEYS = np.frombuffer(b"KEYS", np.uint8)
_REST = np.frombuffer(b"__KAFKA_RECORD", np.uint8)
_PROPERTIES_MAX = 32


@compiled
def _split(source: Bytes, start: Number, end: Number, pairs: Int64s) -> Number:
    """
    Note where the properties between `start` and `end` stand; return how many, or NOT_PLAIN.

    `pairs` gets three numbers of each: start of the name, of the value, and end.
    """
    count: Number = 0
    at = start
    while at < end:
        separator: Number = -1
        begin = at
        while at < end and source[np.uint64(at)] != 2:
            byte = source[np.uint64(at)]
            if byte >= 128:
                return NOT_PLAIN
            if byte == 1 and separator < 0:
                separator = at
            at += 1
        if separator <= begin or separator + 1 >= at or count == _PROPERTIES_MAX:
            return NOT_PLAIN
        size_bytes = separator - begin
        for other in range(count):
            if pairs[other, 1] - 1 - pairs[other, 0] == size_bytes and is_text(
                source, begin, separator, source[pairs[other, 0] : pairs[other, 1] - 1]
            ):
                return NOT_PLAIN
        if is_text(source, begin, separator, _REST):
            return NOT_PLAIN
        pairs[count, 0] = begin
        pairs[count, 1] = separator + 1
        pairs[count, 2] = at
        count += 1
        at += 1
    return count


@compiled
def _field_bytes(size_bytes: Number) -> Number:
    return varint_bytes(size_bytes) + size_bytes


@compiled
def _put_field(
    source: Bytes, start: Number, size_bytes: Number, target: Bytes, at: Number
) -> Number:
    return copy(source, start, size_bytes, target, put_varint(target, at, size_bytes))


@compiled
def _count_bytes(pairs: Int64s, count: Number, key: Number, body_bytes: Number) -> Number:
    """Return how many bytes key, value and headers of a record have."""
    size_bytes = _field_bytes(body_bytes) + varint_bytes(count - (1 if key >= 0 else 0))
    for row in range(count):
        size_bytes += _field_bytes(pairs[row, 2] - pairs[row, 1])
        if row != key:
            size_bytes += _field_bytes(pairs[row, 1] - 1 - pairs[row, 0])
    return size_bytes if key >= 0 else size_bytes + 1


@compiled
def _put_record(
    source: Bytes,
    body: tuple[Number, Number],
    pairs: Int64s,
    count: Number,
    key: Number,
    target: Bytes,
    at: Number,
) -> Number:
    """Write key, value and headers; return the place behind them."""
    if key < 0:
        at = put_varint(target, at, -1)
    else:
        value = pairs[key, 1]
        at = _put_field(source, value, pairs[key, 2] - value, target, at)
    at = _put_field(source, body[0], body[1], target, at)
    at = put_varint(target, at, count - (1 if key >= 0 else 0))
    for row in range(count):
        if row != key:
            start, value, stop = pairs[row, 0], pairs[row, 1], pairs[row, 2]
            at = _put_field(source, start, value - 1 - start, target, at)
            at = _put_field(source, value, stop - value, target, at)
    return at


@compiled
def _find_key(source: Bytes, pairs: Int64s, count: Number) -> Number:
    for row in range(count):
        if is_text(source, pairs[row, 0], pairs[row, 1] - 1, _KEYS):
            return row
    return -1


@compiled
def write_records(source: Bytes, places: Int64s, target: Bytes, times: Int64s) -> Number:
    """
    Write a record for each of the messages that begin at `places`, with deltas to the first.

    `times` gets the time of the first, and the largest. Returns how many bytes were written;
    NOT_PLAIN if a message is not plain, or `target` too short.
    """
    pairs = np.empty((_PROPERTIES_MAX, 3), np.int64)
    place: Number = 0
    end = source.shape[0]
    for row in range(places.shape[0]):
        at = places[row]
        next_at = at + get_big_endian(source, at, 4)
        if source[np.uint64(at + 39)] & _UNUSUAL or next_at > end or next_at < at + _HEAD_BYTES:
            return NOT_PLAIN
        born_ms = get_big_endian(source, at + 40, 8)
        body = (at + _HEAD_BYTES, get_big_endian(source, at + 84, 4))
        topic = body[0] + body[1]
        width: Number = 1 if source[np.uint64(at + 7)] == 0xA7 else 2
        if body[1] < 0 or topic + width + 2 > next_at:
            return NOT_PLAIN
        text = topic + width + get_big_endian(source, topic, width) + 2
        count = _split(source, text, next_at, pairs)
        if text > next_at or count < 0:
            return NOT_PLAIN
        if row == 0:
            times[0] = times[1] = born_ms
        times[1] = max(times[1], born_ms)
        key = _find_key(source, pairs, count)
        delta_ms = born_ms - times[0]
        length = 1 + varint_bytes(delta_ms) + varint_bytes(row)
        length += _count_bytes(pairs, count, key, body[1])
        if place + varint_bytes(length) + length > target.shape[0]:
            return NOT_PLAIN
        place = put_varint(target, place, length)
        target[place] = 0
        place = put_varint(target, place + 1, delta_ms)
        place = put_varint(target, place, row)
        place = _put_record(source, body, pairs, count, key, target, place)
    return place
