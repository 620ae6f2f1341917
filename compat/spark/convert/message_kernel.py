"""The compiled loops that make RocketMQ messages of the columns of records."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from logstore.segments.compiled.loops import Bytes, Int64s, Number, compiled
from logstore.segments.rocketmq.columns.kernel import Int32s, crc32

Flags = NDArray[np.bool_]

#: total size to length of the body, both hosts IPv4
HEAD_BYTES = 88
#: the same with what every message has besides: the lengths of topic and properties
FIXED_BYTES = 91
#: a longer one does not fit into properties, or nearly so
KEY_BYTES_MAX = 32_000
_KEYS = np.frombuffer(b"KEYS\x01", np.uint8)


@compiled
def is_plain(key: Bytes, start: Number, end: Number) -> bool:
    """Tell whether bytes are ASCII text that a property can hold; of others Python must tell."""
    if end - start > KEY_BYTES_MAX:
        return False
    for at in range(start, end):
        if key[at] < 3 or key[at] > 127:
            return False
    return bool(end > start)


@compiled
def find_odd(
    keys: Bytes,
    key_bounds: Int32s,
    is_key_null: Flags,
    is_value_null: Flags,
    header_bounds: Int32s,
    odd: Flags,
) -> None:
    """Mark the records that no natural message holds, or that have headers."""
    for row in range(len(odd)):
        is_keyed = not is_key_null[row]
        odd[row] = (
            is_value_null[row]
            or header_bounds[row + 1] > header_bounds[row]
            or (is_keyed and not is_plain(keys, key_bounds[row], key_bounds[row + 1]))
        )


@compiled
def size_texts(key_bounds: Int32s, is_key_null: Flags, odd: Flags, sizes: Int64s) -> None:
    """Set how long the properties are of every record that is not odd."""
    for row in range(len(odd)):
        if not odd[row]:
            is_null = is_key_null[row]
            sizes[row] = 0 if is_null else key_bounds[row + 1] - key_bounds[row] + 6


@compiled
def fill_texts(keys: Bytes, key_bounds: Int32s, odd: Flags, bounds: Int64s, texts: Bytes) -> None:
    """Write the properties of every record that is not odd: its key, if it has one."""
    for row in range(len(odd)):
        at = bounds[row]
        if odd[row] or bounds[row + 1] == at:
            continue
        for index in range(5):
            texts[at + index] = _KEYS[index]
        at += 5
        for source in range(key_bounds[row], key_bounds[row + 1]):
            texts[at] = keys[source]
            at += 1
        texts[at] = 2


@compiled
def put(target: Bytes, at: Number, value: Number, size: Number) -> None:
    """Write a number of so many bytes, the highest first."""
    for index in range(size):
        target[at + index] = (value >> (8 * (size - 1 - index))) & 255


@compiled
def copied(source: Bytes, start: Number, size_bytes: Number, target: Bytes, at: Number) -> Number:
    """Copy bytes; return the position behind them."""
    # Slices that count from zero leave no negative index to think of, and memory is copied as wide
    # as it goes: six times as fast as an assignment of one slice to the other.
    piece, place = source[start : start + size_bytes], target[at : at + size_bytes]
    for index in range(size_bytes):
        place[index] = piece[index]
    return at + size_bytes


@compiled
def pack_messages(
    first: Number,
    last: Number,
    template: Bytes,
    topic: Bytes,
    topic_length_bytes: Number,
    bodies: Bytes,
    body_bounds: Int32s,
    texts: Bytes,
    text_bounds: Int64s,
    queue_offsets: Int64s,
    born_ms: Int64s,
    store_ms: Int64s,
    physical_offset: Number,
    physical_offsets: Int64s,
    target: Bytes,
) -> Number:
    """
    Write the messages of rows ``[first, last)`` back to back; return how many bytes they have.

    `template` is the head of a message with all that is the same for every one of them.
    """
    at: Number = 0
    for row in range(first, last):
        start, end = body_bounds[row], body_bounds[row + 1]
        text_start, text_end = text_bounds[row], text_bounds[row + 1]
        size = 88 + (end - start) + topic_length_bytes + len(topic) + 2 + (text_end - text_start)
        copied(template, 0, 88, target, at)
        put(target, at, size, 4)
        put(target, at + 8, crc32(bodies, start, end) & 0x7FFFFFFF, 4)
        put(target, at + 20, queue_offsets[row], 8)
        put(target, at + 28, physical_offset + at, 8)
        put(target, at + 40, born_ms[row], 8)
        put(target, at + 56, store_ms[row], 8)
        put(target, at + 84, end - start, 4)
        physical_offsets[row] = physical_offset + at
        place = copied(bodies, np.int64(start), np.int64(end - start), target, at + 88)
        put(target, place, len(topic), topic_length_bytes)
        place = copied(topic, 0, len(topic), target, place + topic_length_bytes)
        put(target, place, text_end - text_start, 2)
        copied(texts, text_start, text_end - text_start, target, place + 2)
        at += size
    return at
