"""
The records of batches as stored messages: the loops.

They do what :mod:`logstore.compat.bridge.rocketmq_over_kafka.record_messages` does of plain
records: messages whose rest has neither properties nor a body of its own, and records whose key
and headers are ASCII and can all be properties.
"""

from __future__ import annotations

import numpy as np

from logstore.compat.bridge.compiled.numbers import (
    copy,
    get_big_endian,
    get_varint,
    is_text,
    put_big_endian,
)
from logstore.segments.compiled.loops import Bytes, Int64s, Number, compiled
from logstore.segments.rocketmq.columns.kernel import crc32, hash_text

#: what the rows of batches say: where the records begin and end and how many there are, the first
#: offset, the time of the first, and whether that is the time of all
START, END, COUNT, BASE_OFFSET, BASE_MS, IS_ONE_TIME = range(6)
COLUMNS = 6
#: what the rows of messages say: offset, where it ends in what was written, tags code
OFFSET, MESSAGE_END, TAGS_CODE = range(3)
MESSAGE_COLUMNS = 3
#: of a record: where key and value stand, each with its size behind it, -1 for null; its deltas;
#: how many headers are properties; where the rest of a message begins, 0 for none
KEY, _, VALUE, _, DELTA_MS, OFFSET_DELTA, HEADER_COUNT, REST = range(8)
_FIELDS = 8
#: there is a record that is not plain
NOT_PLAIN = -1
#: a message takes so much more than its record, beside the topic
FRAME_BYTES_MAX = 160
_HEADERS_MAX = 32
_REST_NAME = np.frombuffer(b"__rocketmq_message", np.uint8)
_KEYS = np.frombuffer(b"KEYS", np.uint8)
_TAGS = np.frombuffer(b"TAGS", np.uint8)
_V1 = np.frombuffer(bytes.fromhex("daa320a7"), np.uint8)
#: of a rest: bytes between its first two and the hosts
_REST_FIELDS_BYTES = 35
_PROPERTIES_BYTES_MAX = 32767


@compiled
def _is_text(source: Bytes, start: Number, end: Number) -> bool:
    """Tell whether bytes can be a part of a property: ASCII, no separators, at least one."""
    for index in range(start, end):
        byte = source[np.uint64(index)]
        if byte >= 128 or byte == 1 or byte == 2:
            return False
    return bool(end > start)


@compiled
def _read_headers(source: Bytes, at: Number, end: Number, count: Number, found: Int64s) -> bool:
    """Note start and end of name and value of each header; False if one is null or cut short."""
    for row in range(count):
        for column in (0, 2):
            size_bytes, at = get_varint(source, at, end)
            if at < 0 or size_bytes < 0 or size_bytes > end - at:
                return False
            found[row, column] = at
            found[row, column + 1] = at + size_bytes
            at += size_bytes
    return bool(at == end)


@compiled
def _are_properties(
    source: Bytes, found: Int64s, count: Number, steering: Bytes, bounds: Int64s
) -> bool:
    """Tell whether headers of a record that was no message are all properties of their names."""
    for row in range(count):
        start, end = found[row, 0], found[row, 1]
        if not _is_text(source, start, end) or not _is_text(source, found[row, 2], found[row, 3]):
            return False
        if is_text(source, start, end, _KEYS):
            return False
        for other in range(row):
            if is_text(source, start, end, source[found[other, 0] : found[other, 1]]):
                return False
        for index in range(bounds.shape[0] - 1):
            if is_text(source, start, end, steering[bounds[index] : bounds[index + 1]]):
                return False
    return True


@compiled
def _is_plain_rest(source: Bytes, start: Number, end: Number, topic_bytes: Number) -> bool:
    """Tell whether a rest is of a message with this topic, without properties or body."""
    if end - start < 2 + _REST_FIELDS_BYTES + 2 * 12 + 8:
        return False
    if source[np.uint64(start)] != 0x52 or source[np.uint64(start + 1)] != 0x31:  # R1
        return False
    width = source[np.uint64(start + 2)]
    if width != 2 and (width != 1 or topic_bytes > 127):
        return False
    if source[np.uint64(start + 10)] & 1:  # compressed
        return False
    at = start + 2 + _REST_FIELDS_BYTES
    for _ in range(2):
        size_bytes = get_big_endian(source, at, 4)
        if (size_bytes != 8 and size_bytes != 20) or at + 4 + size_bytes > end:
            return False
        at += 4 + size_bytes
    return bool(
        at + 8 == end and get_big_endian(source, at, 4) == -1
        and get_big_endian(source, at + 4, 4) == -1
    )  # fmt: skip


@compiled
def _put_property(
    source: Bytes, name: tuple[int, int], value: tuple[int, int], target: Bytes, at: Number
) -> Number:
    at = copy(source, name[0], name[1] - name[0], target, at)
    target[at] = 1
    at = copy(source, value[0], value[1] - value[0], target, at + 1)
    target[at] = 2
    return at + 1


@compiled
def _put_head_of_rest(source: Bytes, rest: Number, target: Bytes, at: Number) -> Number:
    """Write what a rest says of the head; return the place of the size of the body."""
    copy(_V1, 0, 4, target, at + 4)
    if source[np.uint64(rest + 2)] == 2:
        target[at + 7] = 0xAB
    copy(source, rest + 31, 4, target, at + 8)  # CRC of the body
    copy(source, rest + 3, 4, target, at + 16)  # flag
    copy(source, rest + 7, 4, target, at + 36)  # system flag
    born = rest + 2 + _REST_FIELDS_BYTES
    born_bytes = get_big_endian(source, born, 4)
    stored = born + 4 + born_bytes
    stored_bytes = get_big_endian(source, stored, 4)
    place = copy(source, born + 4, born_bytes, target, at + 48)
    place = copy(source, rest + 11, 8, target, place)  # store time
    place = copy(source, stored + 4, stored_bytes, target, place)
    return copy(source, rest + 19, 12, target, place)  # reconsume times, prepared offset


@compiled
def _put_head(
    head: Bytes, source: Bytes, value: tuple[int, int], born_ms: Number, target: Bytes, at: Number
) -> Number:
    """Write the head of a record that was no message; return the place of the body's size."""
    copy(head, 0, head.shape[0], target, at)
    crc = crc32(source, value[0], value[1]) & 0x7FFFFFFF
    put_big_endian(target, at + 8, crc, 4)
    place: Number = at + head.shape[0] - 4
    host_bytes = (head.shape[0] - 72) // 2
    put_big_endian(target, at + 48 + host_bytes, born_ms, 8)  # stored when it was born
    return place


@compiled
def _read_record(source: Bytes, at: Number, end: Number, fields: Int64s, found: Int64s) -> bool:
    """Note where the fields of the record between `at` and `end` stand; False if that cannot be."""
    fields[DELTA_MS], at = get_varint(source, at + 1, end)
    if at < 0:
        return False
    fields[OFFSET_DELTA], at = get_varint(source, at, end)
    if at < 0:
        return False
    for place in (KEY, VALUE):
        size_bytes, at = get_varint(source, at, end)
        if at < 0 or size_bytes < -1 or size_bytes > end - at:
            return False
        fields[place] = at
        fields[place + 1] = size_bytes
        at += max(size_bytes, 0)
    count, at = get_varint(source, at, end)
    fields[HEADER_COUNT] = count
    if at < 0 or count < 0 or count > _HEADERS_MAX:
        return False
    return _read_headers(source, at, end, count, found)


@compiled
def _find_rest(
    source: Bytes,
    fields: Int64s,
    found: Int64s,
    topic_bytes: Number,
    steering: tuple[Bytes, Int64s],
) -> bool:
    """Note where the rest of a record stands, 0 for none; False if it is not plain."""
    count = fields[HEADER_COUNT]
    fields[REST] = 0
    if count and is_text(source, found[count - 1, 0], found[count - 1, 1], _REST_NAME):
        fields[HEADER_COUNT] = count - 1
        fields[REST] = found[count - 1, 2]
        return _is_plain_rest(source, found[count - 1, 2], found[count - 1, 3], topic_bytes)
    key, key_bytes = fields[KEY], fields[KEY + 1]
    if key_bytes >= 0 and not _is_text(source, key, key + key_bytes):
        return False
    return _are_properties(source, found, count, steering[0], steering[1])


@compiled
def _put_text(source: Bytes, fields: Int64s, found: Int64s, target: Bytes, at: Number) -> Number:
    """Write key and headers as properties; return the place behind them."""
    count = fields[HEADER_COUNT]
    keys_index: Number = -1
    if fields[KEY + 1] >= 0:
        keys_index = 0
        if fields[REST]:
            keys_index = min(np.int64(get_big_endian(source, fields[REST] + 35, 2)), count)
    for row in range(count + 1):
        if row == keys_index:
            at = copy(_KEYS, 0, 4, target, at)
            target[at] = 1
            at = copy(source, fields[KEY], fields[KEY + 1], target, at + 1)
            target[at] = 2
            at += 1
        if row < count:
            name, value = (found[row, 0], found[row, 1]), (found[row, 2], found[row, 3])
            at = _put_property(source, name, value, target, at)
    return at


@compiled
def _tags_code(source: Bytes, found: Int64s, count: Number) -> Number:
    """Return Java's hash of the tags, 0 without tags."""
    for row in range(count):
        if is_text(source, found[row, 0], found[row, 1], _TAGS):
            return hash_text(source, found[row, 2], found[row, 3], 0)
    return 0


@compiled
def _put_message(
    source: Bytes,
    fields: Int64s,
    found: Int64s,
    frame: tuple[Bytes, Bytes, Number],
    numbers: tuple[Number, Number, Number],
    target: Bytes,
    start: Number,
) -> Number:
    """Write a message; return the place behind it, NOT_PLAIN if there is no room."""
    head, topic, queue_id = frame
    offset, physical_offset, born_ms = numbers
    value, value_bytes, rest = fields[VALUE], max(fields[VALUE + 1], 0), fields[REST]
    if rest:
        place = _put_head_of_rest(source, rest, target, start)
    else:
        ends = (value, value + value_bytes)
        place = _put_head(head, source, ends, born_ms, target, start)
    put_big_endian(target, start + 12, queue_id, 4)
    put_big_endian(target, start + 20, offset, 8)
    put_big_endian(target, start + 28, physical_offset, 8)
    put_big_endian(target, start + 40, born_ms, 8)
    put_big_endian(target, place, value_bytes, 4)
    place = copy(source, value, value_bytes, target, place + 4)
    width: Number = 1 if target[start + 7] == 0xA7 else 2
    put_big_endian(target, place, topic.shape[0], width)
    text = copy(topic, 0, topic.shape[0], target, place + width) + 2
    place = _put_text(source, fields, found, target, text)
    if place - text > _PROPERTIES_BYTES_MAX:
        return NOT_PLAIN
    put_big_endian(target, text - 2, place - text, 2)
    put_big_endian(target, start, place - start, 4)
    return place


@compiled
def write_stored(
    source: Bytes,
    batches: Int64s,
    first_offset: Number,
    first_place: Number,
    frame: tuple[Bytes, Bytes, Number],
    steering: tuple[Bytes, Int64s],
    target: Bytes,
    messages: Int64s,
) -> Number:
    """
    Write the messages that the records from `first_offset` on are; fill a row of each.

    `frame` is what a record that was no message has up to the size of its body, with zeros where
    such messages differ, then topic and queue; `steering` are the names that no header may have,
    joined, and where each begins. Returns how many messages there are; NOT_PLAIN if a record is
    not plain. `target` has FRAME_BYTES_MAX and the topic's for each record beside its own bytes.
    """
    found = np.empty((_HEADERS_MAX, 4), np.int64)
    fields = np.empty(_FIELDS, np.int64)
    row = 0
    place: Number = 0
    for batch in range(batches.shape[0]):
        at, end = batches[batch, START], batches[batch, END]
        for _ in range(batches[batch, COUNT]):
            length, at = get_varint(source, at, end)
            if at < 0 or length < 0 or length > end - at:
                return NOT_PLAIN
            if not _read_record(source, at, at + length, fields, found):
                return NOT_PLAIN
            at += length
            offset = batches[batch, BASE_OFFSET] + fields[OFFSET_DELTA]
            if offset < first_offset:
                continue
            if not _find_rest(source, fields, found, frame[1].shape[0], steering):
                return NOT_PLAIN
            delta_ms = 0 if batches[batch, IS_ONE_TIME] else fields[DELTA_MS]
            numbers = offset, first_place + offset, batches[batch, BASE_MS] + delta_ms
            place = _put_message(source, fields, found, frame, numbers, target, place)
            if place < 0:
                return NOT_PLAIN
            messages[row, OFFSET] = offset
            messages[row, MESSAGE_END] = place
            messages[row, TAGS_CODE] = _tags_code(source, found, fields[HEADER_COUNT])
            row += 1
    return row
