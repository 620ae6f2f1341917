"""
The compiled loops that make Kafka records of the columns of messages.

What there is of each message comes as tuples of arrays. Texts and bodies are (bytes, where each row
starts, how long it is), rests are (bytes, bounds, the rest of each row or -1), and measures what
:func:`measure_records` fills: where keys start, their sizes, numbers of headers, sizes of records.
"""

from __future__ import annotations

import numpy as np

from logstore.compat.spark.convert.message_kernel import copied, put
from logstore.segments.compiled.loops import Bytes, Int64s, Number, compiled

Pieces = tuple[Bytes, Int64s, Int64s]
Measures = tuple[Int64s, Int64s, Int64s, Int64s]
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
def measure_records(texts_of: Pieces, body_sizes: Int64s, measures: Measures) -> None:
    """
    Find the key of every message and count its headers.

    Sizes become those of the records but for length and both deltas; a key of -1 bytes is null.
    """
    texts, text_starts, text_sizes = texts_of
    key_starts, key_sizes, header_counts, sizes = measures
    for row in range(len(sizes)):
        key_sizes[row] = -1
        header_counts[row] = 0
        size: Number = 1
        at: Number = text_starts[row]
        end = at + text_sizes[row]
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
        size += _field_bytes(key_sizes[row]) + _field_bytes(body_sizes[row])
        sizes[row] = size + _zigzag_bytes(header_counts[row])


@compiled
def _field_bytes(size: Number) -> Number:
    """Return how many bytes a string takes with its length; -1 is null."""
    return _zigzag_bytes(size) + max(size, np.int64(0))


@compiled
def _next_piece(rests: Bytes, at: Number, end: Number) -> tuple[Number, Number]:
    """Return (size or -1 for null, start) of the string at a place of a rest; (-2, 0): none."""
    if at + 4 > end:
        return np.int64(-2), np.int64(0)
    size = np.int64(0)
    for index in range(4):
        size = size << 8 | np.int64(rests[at + index])
    if size == 0xFFFFFFFF:
        return np.int64(-1), at + 4
    if size > end - at - 4:
        return np.int64(-2), np.int64(0)
    return size, at + 4


@compiled
def measure_rests(rests_of: Pieces, body_sizes: Int64s, measures: Measures) -> Number:
    """
    Measure the records of which a rest was kept, as ``MAPPING.md`` describes it.

    Returns the first row whose rest is none of a record, -1 if there is no such row.
    """
    rests, bounds, rest_rows = rests_of
    _, key_sizes, header_counts, sizes = measures
    for row in range(len(sizes)):
        rest = rest_rows[row]
        if rest < 0:
            continue
        at: Number = int(bounds[rest])
        end = int(bounds[rest + 1])
        if end - at < 7 or rests[at] != 75 or rests[at + 1] != 49:
            return row
        value_bytes = np.int64(-1) if rests[at + 2] else body_sizes[row]
        key_bytes, start = _next_piece(rests, at + 3, end)
        if key_bytes < -1:
            return row
        size = 1 + _field_bytes(key_bytes) + _field_bytes(value_bytes)
        at = start + max(key_bytes, np.int64(0))
        count = np.int64(0)
        while at < end:
            name_bytes, start = _next_piece(rests, at, end)
            if name_bytes < -1:
                return row
            at = start + max(name_bytes, np.int64(0))
            content_bytes, start = _next_piece(rests, at, end)
            if content_bytes < -1:
                return row
            at = start + max(content_bytes, np.int64(0))
            size += _field_bytes(max(name_bytes, np.int64(0))) + _field_bytes(content_bytes)
            count += 1
        key_sizes[row] = key_bytes
        header_counts[row] = count
        sizes[row] = size + _zigzag_bytes(count)
    return -1


@compiled
def _put_headers_of_rest(
    target: Bytes, place: Number, rests: Bytes, start: Number, end: Number
) -> Number:
    at = start
    while at < end:
        size, piece = _next_piece(rests, at, end)
        place = _put_bytes(target, place, rests, piece, max(size, np.int64(0)))
        at = piece + max(size, np.int64(0))
        size, piece = _next_piece(rests, at, end)
        place = _put_bytes(target, place, rests, piece, size)
        at = piece + max(size, np.int64(0))
    return place


@compiled
def _put_bytes(target: Bytes, at: Number, source: Bytes, start: Number, size: Number) -> Number:
    at = _put_zigzag(target, at, size)
    return copied(source, start, size, target, at) if size > 0 else at


@compiled
def _put_headers(target: Bytes, at: Number, texts: Bytes, start: Number, end: Number) -> Number:
    """Write all properties but KEYS; return the position behind them."""
    place = start
    while True:
        name, separator, value_end, place = _next_property(texts, place, end)
        if name < 0:
            return at
        if not _is_keys(texts, name, separator):
            at = _put_bytes(target, at, texts, name, separator - name)
            at = _put_bytes(target, at, texts, separator + 1, value_end - separator - 1)


@compiled
def _pack_records(
    first: Number,
    last: Number,
    numbers: tuple[Int64s, Int64s],
    texts_of: Pieces,
    bodies_of: Pieces,
    rests_of: Pieces,
    measures: Measures,
    target: Bytes,
    start: Number,
) -> Number:
    """Write rows ``[first, last)`` as the records of one batch; return where they end."""
    offsets, timestamps_ms = numbers
    texts, text_starts, text_sizes = texts_of
    bodies, body_starts, body_sizes = bodies_of
    rests, rest_bounds, rest_rows = rests_of
    key_starts, key_sizes, header_counts, sizes = measures
    at: Number = start
    for row in range(first, last):
        time_delta = timestamps_ms[row] - timestamps_ms[first]
        offset_delta = offsets[row] - offsets[first]
        size = sizes[row] + _zigzag_bytes(time_delta) + _zigzag_bytes(offset_delta)
        at = _put_zigzag(target, at, size)
        target[at] = 0
        at = _put_zigzag(target, at + 1, time_delta)
        at = _put_zigzag(target, at, offset_delta)
        rest = rest_rows[row]
        if rest >= 0:
            head: Number = int(rest_bounds[rest])
            end = int(rest_bounds[rest + 1])
            at = _put_bytes(target, at, rests, head + 7, key_sizes[row])
            value_bytes = np.int64(-1) if rests[head + 2] else body_sizes[row]
            at = _put_bytes(target, at, bodies, body_starts[row], value_bytes)
            at = _put_zigzag(target, at, header_counts[row])
            head += 7 + max(key_sizes[row], np.int64(0))
            at = _put_headers_of_rest(target, at, rests, head, end)
            continue
        at = _put_bytes(target, at, texts, key_starts[row], key_sizes[row])
        at = _put_bytes(target, at, bodies, body_starts[row], body_sizes[row])
        at = _put_zigzag(target, at, header_counts[row])
        end = text_starts[row] + text_sizes[row]
        at = _put_headers(target, at, texts, text_starts[row], end)
    return at


@compiled
def pack_batches(
    cuts: Int64s,
    template: Bytes,
    numbers: tuple[Int64s, Int64s],
    texts: Pieces,
    bodies: Pieces,
    rests: Pieces,
    measures: Measures,
    target: Bytes,
    bounds: Int64s,
) -> None:
    """
    Write batches back to back: of the rows up to each of `cuts`, without CRC.

    `template` is a header with all that is the same for every one of them. `numbers` are offsets
    and timestamps. `bounds` become where they stand, and where the last one ends.
    """
    offsets, timestamps_ms = numbers
    at: Number = 0
    first: Number = 0
    for index in range(len(cuts)):
        last = cuts[index]
        bounds[index] = at
        records = copied(template, 0, len(template), target, at)
        end = _pack_records(first, last, numbers, texts, bodies, rests, measures, target, records)
        newest_ms = timestamps_ms[first]
        for row in range(first, last):
            newest_ms = max(newest_ms, timestamps_ms[row])
        put(target, at, offsets[first], 8)
        put(target, at + 8, end - at - 12, 4)
        put(target, at + 23, offsets[last - 1] - offsets[first], 4)
        put(target, at + 27, timestamps_ms[first], 8)
        put(target, at + 35, newest_ms, 8)
        put(target, at + 57, last - first, 4)
        at, first = end, last
    bounds[len(cuts)] = at


@compiled
def gather_records(
    source: Bytes, starts: Int64s, sizes: Int64s, first: Number, last: Number, target: Bytes
) -> Number:
    """Copy records that stand anywhere in `source` back to back; return how many bytes."""
    at: Number = 0
    for row in range(first, last):
        at = copied(source, starts[row], sizes[row], target, at)
    return at
