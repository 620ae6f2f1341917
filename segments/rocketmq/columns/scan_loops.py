"""
The loop that looks at each of many records: where every field stands, checksums, tags codes.

:func:`scan` reads nothing outside of a record before it knows that the record lies inside of the
source, and accepts less than :func:`~logstore.segments.rocketmq.messages.dispatch_request.
read_dispatch_request` does: what is odd is left to that.
"""

from __future__ import annotations

import numpy as np

from logstore.segments.compiled.loops import Bytes, Int64s, Number, compiled, inlined, uncounted
from logstore.segments.compiled.machine_words import signed_32, signed_64
from logstore.segments.rocketmq.columns.kernel import (
    ALL_READ,
    BAD_CRC,
    BODY,
    BODY_BYTES,
    BODY_CRC,
    BORN_HOST,
    BORN_HOST_BYTES,
    BORN_MS,
    FLAG,
    ODD,
    PHYSICAL_OFFSET,
    PREPARED_OFFSET,
    QUEUE_ID,
    QUEUE_OFFSET,
    RECONSUME_TIMES,
    SIZE,
    START,
    STORE_HOST,
    STORE_HOST_BYTES,
    STORE_MS,
    SYS_FLAG,
    TAGS,
    TAGS_BYTES,
    TAGS_CODE,
    TEXT,
    TEXT_BYTES,
    TOPIC,
    TOPIC_BYTES,
    crc32,
    hash_text,
)
from logstore.segments.rocketmq.columns.property_loops import (
    SHAPE_PLACES,
    SHAPE_WORDS_MAX,
    SHAPES,
    Words,
    is_known,
    learn_places,
    take_places,
)

#: why :func:`_scan_known` stopped, besides the reasons of a scan
NOT_KNOWN = -1


@inlined
def _find_parts(
    source: Bytes, at: Number, end: Number
) -> tuple[Number, Number, Number, Number, Number]:
    """Return (where the body begins and ends, the topic and the properties begin, 0 or ODD)."""
    sys_flag = signed_32(source, at + 36)
    body = at + 88 + (12 if sys_flag & 0x10 else 0) + (12 if sys_flag & 0x20 else 0)
    topic_width = 1 if source[at + 7] == 0xA7 else 2
    if body + topic_width + 2 > end:
        return body, body, body, body, ODD
    body_bytes = signed_32(source, body - 4)
    topic = body + body_bytes + topic_width
    if body_bytes < 0 or topic + 2 > end:
        return body, body, body, body, ODD
    topic_bytes = np.int64(source[topic - 1])
    if topic_width == 2:
        topic_bytes |= np.int64(source[topic - 2]) << 8
    text = topic + topic_bytes + 2
    if topic_bytes >> (8 * topic_width - 1) or text > end:
        return body, body, body, body, ODD
    text_bytes = np.int64(source[text - 2]) << 8 | np.int64(source[text - 1])
    if text_bytes > 0x7FFF or text + text_bytes != end:
        return body, body, body, body, ODD
    return body, body + body_bytes, topic, text, 0


@inlined
def _scan_record(
    source: Bytes, at: Number, size: Number, table: Int64s, row: int, verify_crc: bool
) -> Number:
    """Take note of one record that lies whole in the source; return why not, 0 if it is fine."""
    body, body_end, topic, text, fault = _find_parts(source, at, at + size)
    if fault:
        return fault
    body_crc = signed_32(source, at + 8)
    if verify_crc and body_end > body:
        found_crc = crc32(source, body, body_end) & 0x7FFFFFFF
        if found_crc != body_crc:
            return BAD_CRC
    sys_flag = signed_32(source, at + 36)
    born_bytes = 20 if sys_flag & 0x10 else 8
    store_at = at + 48 + born_bytes
    table[START, row] = at
    table[SIZE, row] = size
    table[BODY_CRC, row] = body_crc
    table[QUEUE_ID, row] = signed_32(source, at + 12)
    table[FLAG, row] = signed_32(source, at + 16)
    table[QUEUE_OFFSET, row] = signed_64(source, at + 20)
    table[PHYSICAL_OFFSET, row] = signed_64(source, at + 28)
    table[SYS_FLAG, row] = sys_flag
    table[BORN_MS, row] = signed_64(source, at + 40)
    table[BORN_HOST, row] = at + 48
    table[BORN_HOST_BYTES, row] = born_bytes
    table[STORE_MS, row] = signed_64(source, store_at)
    table[STORE_HOST, row] = store_at + 8
    table[STORE_HOST_BYTES, row] = body - store_at - 24
    table[RECONSUME_TIMES, row] = signed_32(source, body - 16)
    table[PREPARED_OFFSET, row] = signed_64(source, body - 12)
    table[BODY, row] = body
    table[BODY_BYTES, row] = body_end - body
    table[TOPIC, row] = topic
    table[TOPIC_BYTES, row] = text - topic - 2
    table[TEXT, row] = text
    table[TEXT_BYTES, row] = at + size - text
    return 0


@inlined
def _tags_code(source: Bytes, table: Int64s, row: Number) -> Number:
    tags, tags_bytes = table[TAGS, row], table[TAGS_BYTES, row]
    return hash_text(source, tags, tags + tags_bytes, 0) if tags_bytes > 0 else 0


@uncounted
def _scan_known(
    source: Bytes,
    start: Number,
    table: Int64s,
    first: Number,
    verify_crc: bool,
    shapes: tuple[Words, Words, Int64s],
) -> tuple[Number, Number, Number]:
    """
    Fill `table` from row `first` on, up to the first row whose properties are not known.

    Returns (row where it ends, where its record starts, why: NOT_KNOWN if it is that).
    """
    words, masks, places = shapes
    at = np.int64(start)
    for row in range(first, table.shape[1]):
        size = signed_32(source, at)
        fault = _scan_record(source, at, size, table, row, verify_crc)
        if fault:
            return row, at, fault
        text, text_bytes = table[TEXT, row], table[TEXT_BYTES, row]
        if not is_known(source, text, text_bytes, words, masks, places):
            return row, at, NOT_KNOWN
        take_places(text, text_bytes, places, table, row)
        table[TAGS_CODE, row] = _tags_code(source, table, row)
        at += size
    return table.shape[1], at, ALL_READ


@compiled
def scan(
    source: Bytes, start: Number, table: Int64s, verify_crc: bool
) -> tuple[Number, Number, Number]:
    """
    Fill the columns of `table` with the records that `count_records` counted from `start` on.

    Returns (how many are sound, position behind the last one, why it ends there).
    """
    words = np.empty(SHAPES * SHAPE_WORDS_MAX, np.uint64)
    masks = np.empty(SHAPES * SHAPE_WORDS_MAX, np.uint64)
    shapes = np.full((SHAPES, SHAPE_PLACES), -1, np.int64)
    row, at, fault = _scan_known(source, start, table, 0, verify_crc, (words, masks, shapes))
    while fault == NOT_KNOWN:
        learn_places(source, table, row, words, masks, shapes)
        table[TAGS_CODE, row] = _tags_code(source, table, row)
        at += table[SIZE, row]
        row, at, fault = _scan_known(source, at, table, row + 1, verify_crc, (words, masks, shapes))
    return row, at, fault
