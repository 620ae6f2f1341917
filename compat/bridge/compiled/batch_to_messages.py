"""
The records of a batch as messages of a queue: the loops.

They do what :mod:`logstore.compat.bridge.kafka_over_rocketmq.record_drafts` does of plain records:
those with a value, a key that can be a property as it is (or none), and no headers.
"""

from __future__ import annotations

import numpy as np

from logstore.compat.bridge.compiled.numbers import copy, get_varint, put_big_endian
from logstore.segments.compiled.loops import Bytes, Int64s, Number, compiled
from logstore.segments.rocketmq.columns.kernel import crc32, hash_text

#: what the rows of a table say of a record: its time, where key and value stand and how long
BORN_MS, KEY, KEY_BYTES, VALUE, VALUE_BYTES = range(5)
COLUMNS = 5
#: there is a record that is not plain, or that cannot be
NOT_PLAIN = -1
#: ``KEYS``, U+0001 before a key, and U+0002 behind it
_KEYS = np.frombuffer(b"KEYS\x01", np.uint8)
_AROUND_KEY_BYTES = 6
_KEY_BYTES_MAX = 1024


@compiled
def _is_plain_key(source: Bytes, start: Number, size_bytes: Number) -> bool:
    """Tell whether a key is one key of the index, and can be a property: ASCII, no separators."""
    if not 0 < size_bytes <= _KEY_BYTES_MAX:
        return False
    for index in range(size_bytes):
        byte = source[np.uint64(start + index)]
        if byte >= 128 or byte == 1 or byte == 2 or byte == 32:
            return False
    return True


@compiled
def scan_batch(
    source: Bytes, base_timestamp_ms: Number, table: Int64s
) -> tuple[Number, Number, Number]:
    """
    Fill a row of `table` for each record.

    `source` are the records of a batch, uncompressed. Returns how many bytes the texts of all
    properties have, how many all values, and how many the longest key; NOT_PLAIN for the first if
    a record is not plain, or if there are fewer records or more bytes than there should be.
    """
    at: Number = 0
    end = source.shape[0]
    text_bytes: Number = 0
    body_bytes: Number = 0
    key_bytes_max: Number = 0
    for row in range(table.shape[0]):
        length, at = get_varint(source, at, end)
        if at < 0 or length < 0 or length > end - at:
            return NOT_PLAIN, 0, 0
        record_end = at + length
        delta_ms, at = get_varint(source, at + 1, record_end)
        if at < 0:
            return NOT_PLAIN, 0, 0
        table[row, BORN_MS] = base_timestamp_ms + delta_ms
        offset_delta, at = get_varint(source, at, record_end)
        if at < 0 or offset_delta != row:
            return NOT_PLAIN, 0, 0
        size_bytes, at = get_varint(source, at, record_end)
        if at < 0 or size_bytes < -1 or size_bytes > record_end - at:
            return NOT_PLAIN, 0, 0
        table[row, KEY] = at
        table[row, KEY_BYTES] = size_bytes
        if size_bytes != -1:
            if not _is_plain_key(source, at, size_bytes):
                return NOT_PLAIN, 0, 0
            text_bytes += size_bytes + _AROUND_KEY_BYTES
            key_bytes_max = max(key_bytes_max, size_bytes)
            at += size_bytes
        size_bytes, at = get_varint(source, at, record_end)
        if at < 0 or size_bytes <= 0 or size_bytes > record_end - at:
            return NOT_PLAIN, 0, 0
        table[row, VALUE] = at
        table[row, VALUE_BYTES] = size_bytes
        body_bytes += size_bytes
        at += size_bytes
        if at != record_end - 1 or source[np.uint64(at)] != 0:
            return NOT_PLAIN, 0, 0
        at = record_end
    return text_bytes if at == end else NOT_PLAIN, body_bytes, key_bytes_max


@compiled
def write_messages(
    source: Bytes,
    table: Int64s,
    head: Bytes,
    topic_field: Bytes,
    first: tuple[int, int],
    target: Bytes,
    units: Bytes,
    physical_offsets: Int64s,
) -> None:
    """
    Write the messages of a scanned batch to `target`, and their units to `units`.

    `head` is what all have up to the size of the body, with zeros where they differ; `first` are
    physical and queue offset of the first one.
    """
    at: Number = 0
    for row in range(table.shape[0]):
        value, value_bytes = table[row, VALUE], table[row, VALUE_BYTES]
        key_bytes = table[row, KEY_BYTES]
        text_bytes = key_bytes + _AROUND_KEY_BYTES if key_bytes > 0 else 0
        size_bytes = head.shape[0] + value_bytes + topic_field.shape[0] + 2 + text_bytes
        physical_offset = first[0] + at
        copy(head, 0, head.shape[0], target, at)
        put_big_endian(target, at, size_bytes, 4)
        crc = crc32(source, value, value + value_bytes) & 0x7FFFFFFF
        put_big_endian(target, at + 8, crc, 4)
        put_big_endian(target, at + 20, first[1] + row, 8)
        put_big_endian(target, at + 28, physical_offset, 8)
        put_big_endian(target, at + 40, table[row, BORN_MS], 8)
        put_big_endian(target, at + head.shape[0] - 4, value_bytes, 4)
        place = copy(source, value, value_bytes, target, at + head.shape[0])
        place = copy(topic_field, 0, topic_field.shape[0], target, place)
        put_big_endian(target, place, text_bytes, 2)
        if key_bytes > 0:
            place = copy(_KEYS, 0, 5, target, place + 2)
            place = copy(source, table[row, KEY], key_bytes, target, place)
            target[place] = 2
        put_big_endian(units, 20 * row, physical_offset, 8)
        put_big_endian(units, 20 * row + 8, size_bytes, 4)
        put_big_endian(units, 20 * row + 12, 0, 8)  # no tags
        physical_offsets[row] = physical_offset
        at += size_bytes


@compiled
def hash_keys(source: Bytes, table: Int64s, topic_hash: Number, hashes: Int64s) -> Number:
    """Fill in Java's hash of ``topic#key`` for each key, -1 for none; return how many there are."""
    count: Number = 0
    for row in range(table.shape[0]):
        key, key_bytes = table[row, KEY], table[row, KEY_BYTES]
        hashes[row] = 0
        if key_bytes > 0:
            hashes[row] = hash_text(source, key, key + key_bytes, topic_hash)
            count += 1
    return count
