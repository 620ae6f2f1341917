"""The compiled loops that make Kafka records of the columns of messages."""

from __future__ import annotations

import numpy as np

from logstore.segments.rocketmq.columns.kernel import Bytes, Int32s, Int64s, Number, compiled

_NAME, _VALUE = 1, 2


@compiled
def _zigzag_bytes(value: Number) -> Number:
    """Return how many bytes a number takes as a varint."""
    rest = (value << 1) ^ (value >> 63)
    count: Number = 1
    while rest >= 128 or rest < 0:
        rest = (rest >> 7) & 0x01FF_FFFF_FFFF_FFFF
        count += 1
    return count


@compiled
def _put_zigzag(target: Bytes, at: Number, value: Number) -> Number:
    """Write a varint; return the position behind it."""
    rest = (value << 1) ^ (value >> 63)
    while rest >= 128 or rest < 0:
        target[at] = (rest & 127) | 128
        rest = (rest >> 7) & 0x01FF_FFFF_FFFF_FFFF
        at += 1
    target[at] = rest
    return at + 1


@compiled
def _is_keys(texts: Bytes, start: Number, end: Number) -> bool:
    return bool(
        end - start == 4
        and texts[start] == 75
        and texts[start + 1] == 69
        and texts[start + 2] == 89
        and texts[start + 3] == 83
    )


@compiled
def _next_property(
    texts: Bytes, start: Number, end: Number
) -> tuple[Number, Number, Number, Number]:
    """Return (start of the name, its end, end of the value, start of the next), -1 at the end."""
    while start < end:
        separator: Number = -1
        at = start
        while at < end and texts[at] != _VALUE:
            if texts[at] == _NAME and separator < 0:
                separator = at
            at += 1
        if separator > start and at > separator + 1:
            return start, separator, at, at + 1
        start = at + 1
    return -1, -1, -1, end


@compiled
def measure_records(
    texts: Bytes,
    text_bounds: Int32s,
    body_bounds: Int32s,
    key_starts: Int64s,
    key_sizes: Int64s,
    header_counts: Int32s,
    sizes: Int64s,
) -> None:
    """
    Find the key of every message and count its headers.

    `sizes` become those of the records but for length and both deltas; a key of -1 bytes is null.
    """
    for row in range(len(sizes)):
        key_sizes[row] = -1
        header_counts[row] = 0
        size: Number = 1
        at: Number = np.int64(text_bounds[row])
        end = np.int64(text_bounds[row + 1])
        while True:
            name, separator, value_end, at = _next_property(texts, at, end)
            if name < 0:
                break
            name_bytes, value_bytes = separator - name, value_end - separator - 1
            if _is_keys(texts, name, separator):
                key_starts[row] = separator + 1
                key_sizes[row] = value_bytes
            else:
                header_counts[row] += 1
                size += _zigzag_bytes(name_bytes) + name_bytes
                size += _zigzag_bytes(value_bytes) + value_bytes
        body_bytes = np.int64(body_bounds[row + 1] - body_bounds[row])
        size += _zigzag_bytes(key_sizes[row]) + max(key_sizes[row], np.int64(0))
        size += _zigzag_bytes(body_bytes) + body_bytes
        sizes[row] = size + _zigzag_bytes(np.int64(header_counts[row]))


@compiled
def _put_bytes(target: Bytes, at: Number, source: Bytes, start: Number, size: Number) -> Number:
    at = _put_zigzag(target, at, size)
    if size > 0:
        target[at : at + size] = source[start : start + size]
        return at + size
    return at


@compiled
def pack_records(
    first: Number,
    last: Number,
    offsets: Int64s,
    timestamps_ms: Int64s,
    texts: Bytes,
    text_bounds: Int32s,
    bodies: Bytes,
    body_bounds: Int32s,
    key_starts: Int64s,
    key_sizes: Int64s,
    header_counts: Int32s,
    sizes: Int64s,
    target: Bytes,
) -> Number:
    """Write rows ``[first, last)`` as the records of one batch; return how many bytes they have."""
    at: Number = 0
    for row in range(first, last):
        time_delta = timestamps_ms[row] - timestamps_ms[first]
        offset_delta = offsets[row] - offsets[first]
        size = sizes[row] + _zigzag_bytes(time_delta) + _zigzag_bytes(offset_delta)
        at = _put_zigzag(target, at, size)
        target[at] = 0
        at = _put_zigzag(target, at + 1, time_delta)
        at = _put_zigzag(target, at, offset_delta)
        at = _put_bytes(target, at, texts, key_starts[row], key_sizes[row])
        body = np.int64(body_bounds[row])
        at = _put_bytes(target, at, bodies, body, np.int64(body_bounds[row + 1]) - body)
        at = _put_zigzag(target, at, np.int64(header_counts[row]))
        place: Number = np.int64(text_bounds[row])
        end = np.int64(text_bounds[row + 1])
        while True:
            name, separator, value_end, place = _next_property(texts, place, end)
            if name < 0:
                break
            if not _is_keys(texts, name, separator):
                at = _put_bytes(target, at, texts, name, separator - name)
                at = _put_bytes(target, at, texts, separator + 1, value_end - separator - 1)
    return at


@compiled
def gather_records(
    source: Bytes, starts: Int64s, sizes: Int64s, first: Number, last: Number, target: Bytes
) -> Number:
    """Copy records that stand anywhere in `source` back to back; return how many bytes."""
    at: Number = 0
    for row in range(first, last):
        target[at : at + sizes[row]] = source[starts[row] : starts[row] + sizes[row]]
        at += sizes[row]
    return at
