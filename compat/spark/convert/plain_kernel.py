"""
The compiled loops that lead from plain records, where they stand in their file, to messages.

Plain is what most records are: not compressed, with a value, without headers, their key ASCII text
that a property can hold, or none. :func:`scan_plain` accepts nothing else; what stops it is looked
at, and judged, by the decoder of :mod:`logstore.segments.kafka.columns`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from logstore.compat.spark.convert.message_kernel import copied, is_plain, put
from logstore.segments.compiled.loops import Bytes, Int64s, Number, compiled, inlined, uncounted
from logstore.segments.compiled.machine_words import put_32, put_64, signed_32, signed_64
from logstore.segments.rocketmq.columns.kernel import crc32

Table = NDArray[np.int64]
#: what each row of the table of records says, a column a record
OFFSET, TIMESTAMP_MS, POSITION, KEY, KEY_BYTES, VALUE, VALUE_BYTES = range(7)
ROWS = 7
#: the same of the table of batches; the last is `previous` of :func:`scan_plain` in front of it
BATCH_START, BATCH_END, BATCH_CRC, BATCH_PREVIOUS = range(4)
BATCH_ROWS = 4

#: a message but for its topic with that one's length, its body and its properties
_FIXED_BYTES = 90
_HEADER_BYTES = 61
_RECORD_BYTES_MIN = 7
_CODEC, _LOG_APPEND_TIME, _CONTROL = 0x07, 0x08, 0x20
#: no number of a record takes more bytes than a time
_VARINT_BYTES_MAX = 9
#: as five characters in front of a key, and one behind it
_KEYS = np.frombuffer(b"KEYS\x01", np.uint8)
_KEYS_BYTES = 6
_NO_TIMESTAMP = -1


@inlined
def _varint(source: Bytes, position: Number, end: Number) -> tuple[Number, Number]:
    """Return (value, position behind it), or (0, -1) if it is cut short or too long."""
    at = np.int64(position)
    value = np.int64(0)
    for count in range(_VARINT_BYTES_MAX):
        if at >= end:
            break
        byte = np.int64(source[at])
        value |= (byte & 127) << (7 * count)
        at += 1
        if byte < 128:
            return (value >> 1) ^ -(value & 1), at
    return np.int64(0), np.int64(-1)


@inlined
def _scan_record(
    source: Bytes, position: Number, end: Number, table: Table, row: Number
) -> tuple[Number, Number, bool]:
    """Note where key and value stand; return (timestamp delta, offset delta, is it plain)."""
    time_delta, at = _varint(source, position, end)
    if at < 0:
        return 0, 0, False
    offset_delta, at = _varint(source, at, end)
    if at < 0:
        return 0, 0, False
    key_bytes, at = _varint(source, at, end)
    if at < 0 or key_bytes > end - at:
        return 0, 0, False
    table[KEY, row] = at
    table[KEY_BYTES, row] = max(key_bytes, np.int64(-1))
    if key_bytes >= 0:
        if not is_plain(source, at, at + key_bytes):
            return 0, 0, False
        at += key_bytes
    value_bytes, at = _varint(source, at, end)
    if at < 0 or value_bytes < 0 or value_bytes > end - at:
        return 0, 0, False
    table[VALUE, row] = at
    table[VALUE_BYTES, row] = value_bytes
    at += value_bytes
    has_no_headers = at + 1 == end and source[at] == 0
    return time_delta, offset_delta, bool(has_no_headers and 0 <= offset_delta < 1 << 31)


@uncounted
def _scan_batch(
    source: Bytes, start: Number, end: Number, span: tuple[int, int], table: Table, row: Number
) -> Number:
    """Note the wanted records of one batch from `row` on; return the row behind, -1: not plain."""
    count = signed_32(source, start + 57)
    attributes = np.int64(source[start + 22])
    base_offset = signed_64(source, start)
    base_ms = signed_64(source, start + 27)
    all_ms = signed_64(source, start + 35)
    at: Number = np.int64(start + _HEADER_BYTES)
    for _ in range(count):
        length, at = _varint(source, at, end)
        if at < 0 or length < 1 or length > end - at:
            return -1
        time_delta, offset_delta, is_sound = _scan_record(source, at + 1, at + length, table, row)
        if not is_sound:
            return -1
        at += length
        offset = base_offset + offset_delta
        if span[0] <= offset <= span[1]:
            table[OFFSET, row] = offset
            table[TIMESTAMP_MS, row] = base_ms + time_delta
            if attributes & _LOG_APPEND_TIME:
                table[TIMESTAMP_MS, row] = all_ms
            table[POSITION, row] = start
            row += 1
    return row if at == end else -1


@compiled
def scan_plain(
    source: Bytes,
    end: Number,
    span: tuple[int, int],
    previous: Number,
    table: Table,
    batches: Table,
) -> tuple[Number, Number, Number, Number, bool]:
    """
    Walk the whole batches of ``source[:end]`` and note their records with offsets in `span`.

    Control batches are passed over. `previous` is the last offset of the batch in front; none may
    come that is not behind it, or has no offset in `span`, of which both ends are in. Returns where
    it stopped, how many rows of `table` and of `batches` are filled, the last offset now, and
    whether what stands there is not plain, or damaged. It also stops where a table is full.
    """
    at = np.int64(0)
    row: Number = 0
    count: Number = 0
    while end - at >= _HEADER_BYTES:
        batch_end = at + 12 + signed_32(source, at + 8)
        attributes = np.int64(source[at + 22])
        if batch_end - at < _HEADER_BYTES or source[at + 16] != 2 or attributes & _CODEC:
            return at, row, count, previous, True
        if batch_end > end:
            break
        first_offset = signed_64(source, at)
        last_offset = first_offset + signed_32(source, at + 23)
        is_behind = first_offset > previous or previous < span[0]
        if not is_behind or first_offset > span[1] or last_offset < span[0]:
            return at, row, count, previous, True
        if not attributes & _CONTROL:
            record_count = signed_32(source, at + 57)
            room = (batch_end - at - _HEADER_BYTES) // _RECORD_BYTES_MIN
            if record_count < 0 or record_count > room:
                return at, row, count, previous, True
            if row + record_count > table.shape[1] or count == batches.shape[1]:
                break
            row_behind = _scan_batch(source, at, batch_end, span, table, row)
            if row_behind < 0:
                return at, row, count, previous, True
            batches[BATCH_START, count] = at
            batches[BATCH_END, count] = batch_end
            batches[BATCH_CRC, count] = signed_32(source, at + 17) & 0xFFFFFFFF
            batches[BATCH_PREVIOUS, count] = previous
            count += 1
            row = row_behind
        previous = last_offset
        at = batch_end
    return at, row, count, previous, False


@compiled
def measure_plain(
    table: Table, topic_bytes: Number, sizes: Int64s
) -> tuple[Number, Number, Number]:
    """
    Set how long each record is as a message; return (their sum, the longest, the newest time).

    `topic_bytes` are those of the topic with its length.
    """
    total = longest = np.int64(0)
    newest_ms = np.int64(_NO_TIMESTAMP)
    for row in range(len(sizes)):
        key_bytes = table[KEY_BYTES, row]
        size = _FIXED_BYTES + topic_bytes + table[VALUE_BYTES, row]
        size += key_bytes + _KEYS_BYTES if key_bytes >= 0 else np.int64(0)
        sizes[row] = size
        total += size
        longest = max(longest, size)
        newest_ms = max(newest_ms, table[TIMESTAMP_MS, row])
    return total, longest, newest_ms


@compiled
def pack_plain(
    first: Number,
    last: Number,
    source: Bytes,
    table: Table,
    sizes: Int64s,
    template: Bytes,
    topic: Bytes,
    topic_length_bytes: Number,
    queue_offsets: Int64s,
    store_ms: Int64s,
    physical_offset: Number,
    physical_offsets: Int64s,
    target: Bytes,
) -> None:
    """
    Write the messages of rows ``[first, last)`` back to back.

    `template` is the head of a message with all that is the same for every one of them.
    """
    at: Number = 0
    for row in range(first, last):
        body, body_bytes = table[VALUE, row], table[VALUE_BYTES, row]
        copied(template, 0, 88, target, at)
        put_32(target, at, sizes[row])
        put_32(target, at + 8, crc32(source, body, body + body_bytes) & 0x7FFFFFFF)
        put_64(target, at + 20, queue_offsets[row])
        put_64(target, at + 28, physical_offset + at)
        put_64(target, at + 40, table[TIMESTAMP_MS, row])
        put_64(target, at + 56, store_ms[row])
        put_32(target, at + 84, body_bytes)
        physical_offsets[row] = physical_offset + at
        place = copied(source, body, body_bytes, target, at + 88)
        put(target, place, len(topic), topic_length_bytes)
        place = copied(topic, 0, len(topic), target, place + topic_length_bytes)
        key_bytes = table[KEY_BYTES, row]
        if key_bytes < 0:
            put(target, place, 0, 2)
        else:
            put(target, place, key_bytes + _KEYS_BYTES, 2)
            copied(_KEYS, 0, 5, target, place + 2)
            place = copied(source, table[KEY, row], key_bytes, target, place + 7)
            target[place] = 2
        at += sizes[row]
