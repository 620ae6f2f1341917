"""
The loops over stored messages: where every field stands, tags codes, checksums, and copies.

Plain Python over numpy arrays, made fast by numba, whose compiled form is kept on disk and runs
without the interpreter's lock. :func:`scan` reads nothing outside of a record before it knows that
the record lies inside of the source, and accepts less than :func:`~logstore.segments.rocketmq.
messages.dispatch_request.read_dispatch_request` does: what is odd is left to that.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Int32s = NDArray[np.int32]
Int64s = NDArray[np.int64]
FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])
#: an integer of Python where the loops run as they are, one of 64 bits where they are compiled
Number = int | np.int64

#: why :func:`count_records` and :func:`scan` stopped
ALL_READ, BLANK, CUT, FOREIGN, ODD, BAD_CRC = range(6)

#: what each row of the table that :func:`scan` fills says; starts are positions in the source
(
    START,
    SIZE,
    BODY_CRC,
    QUEUE_ID,
    FLAG,
    QUEUE_OFFSET,
    PHYSICAL_OFFSET,
    SYS_FLAG,
    BORN_MS,
    BORN_HOST,
    BORN_HOST_BYTES,
    STORE_MS,
    STORE_HOST,
    STORE_HOST_BYTES,
    RECONSUME_TIMES,
    PREPARED_OFFSET,
    BODY,
    BODY_BYTES,
    TOPIC,
    TOPIC_BYTES,
    TEXT,
    TEXT_BYTES,
    TAGS,
    TAGS_BYTES,
    KEYS,
    KEYS_BYTES,
    UNIQUE_KEY,
    UNIQUE_KEY_BYTES,
    DELAY,
    DELAY_BYTES,
    MULTI_DISPATCH,
    MULTI_DISPATCH_BYTES,
    TAGS_CODE,
) = range(33)
ROWS = 33

#: how many texts of properties are kept to compare others with, and how long they may be
_SHAPES = 64
_SHAPE_BYTES_MAX = 1024

#: what :func:`hash_text` returns of bytes that are no UTF-8: no hash has 33 bits
NO_UTF8 = 1 << 32

_NAME_TAGS = np.frombuffer(b"TAGS", np.uint8)
_NAME_KEYS = np.frombuffer(b"KEYS", np.uint8)
_NAME_DELAY = np.frombuffer(b"DELAY", np.uint8)
_NAME_UNIQUE_KEY = np.frombuffer(b"UNIQ_KEY", np.uint8)
_NAME_MULTI_DISPATCH = np.frombuffer(b"INNER_MULTI_DISPATCH", np.uint8)


def _crc_tables() -> NDArray[np.uint32]:
    """Return the eight tables that take eight bytes into a CRC-32 at once."""
    tables = np.zeros((8, 256), np.uint32)
    for index in range(256):
        value = index
        for _ in range(8):
            value = value >> 1 ^ (0xEDB88320 if value & 1 else 0)
        tables[0, index] = value
    for depth in range(1, 8):
        before = tables[depth - 1]
        tables[depth] = before >> np.uint32(8) ^ tables[0][before & np.uint32(255)]
    return tables


_CRC_TABLES = _crc_tables()
_1, _2, _3, _4 = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)
_5, _6, _7, _8 = np.uint64(5), np.uint64(6), np.uint64(7), np.uint64(8)


def is_available() -> bool:
    """Tell whether numba can be imported, so that the loops are fast."""
    return _njit is not None


def _find_njit() -> Any:
    try:
        return importlib.import_module("numba").njit
    except ImportError:
        return None


_njit = _find_njit()


def compiled(function: FunctionT) -> FunctionT:
    """Return a function as numba compiles it at its first call, or as it is without numba."""
    if _njit is None:
        return function
    return cast("FunctionT", _njit(cache=True, nogil=True)(function))


@compiled
def _unsigned_32(source: Bytes, at: Number) -> Number:
    # Numba counts signed indices below zero from the end; without a sign it reads at once.
    first = np.uint64(at)
    return (
        np.int64(source[first]) << 24
        | np.int64(source[first + _1]) << 16
        | np.int64(source[first + _2]) << 8
        | np.int64(source[first + _3])
    )


@compiled
def _signed_32(source: Bytes, at: Number) -> Number:
    value = _unsigned_32(source, at)
    return value - 4294967296 if value >= 2147483648 else value


@compiled
def _signed_64(source: Bytes, at: Number) -> Number:
    return _signed_32(source, at) * 4294967296 + _unsigned_32(source, at + 4)


@compiled
def crc32(source: Bytes, start: Number, end: Number) -> Number:
    """Return the CRC-32 of ``source[start:end]``, as zlib computes it."""
    tables = _CRC_TABLES
    crc = np.uint32(0xFFFFFFFF)
    at, stop = np.uint64(start), np.uint64(end)
    while at + _8 <= stop:
        low = crc ^ (
            np.uint32(source[at])
            | np.uint32(source[at + _1]) << np.uint32(8)
            | np.uint32(source[at + _2]) << np.uint32(16)
            | np.uint32(source[at + _3]) << np.uint32(24)
        )
        crc = np.uint32(
            tables[7, low & np.uint32(255)]
            ^ tables[6, low >> np.uint32(8) & np.uint32(255)]
            ^ tables[5, low >> np.uint32(16) & np.uint32(255)]
            ^ tables[4, low >> np.uint32(24)]
            ^ tables[3, source[at + _4]]
            ^ tables[2, source[at + _5]]
            ^ tables[1, source[at + _6]]
            ^ tables[0, source[at + _7]]
        )
        at += _8
    while at < stop:
        index = (crc ^ np.uint32(source[at])) & np.uint32(255)
        crc = np.uint32(crc >> np.uint32(8) ^ tables[0, index])
        at += _1
    return np.int64(crc ^ np.uint32(0xFFFFFFFF))


@compiled
def _is_message(source: Bytes, at: Number) -> bool:
    last = source[at + 7]
    return bool(
        source[at + 4] == 0xDA
        and source[at + 5] == 0xA3
        and source[at + 6] == 0x20
        and (last == 0xA7 or last == 0xAB)
    )


@compiled
def count_records(source: Bytes, start: Number, end: Number) -> tuple[Number, Number, Number]:
    """
    Follow the sizes of the messages from `start` on.

    Returns (how many there are, position behind the last one, why it ends there).
    """
    count: Number = 0
    at = start
    while at < end:
        if at + 8 > end:
            return count, at, CUT
        size = _signed_32(source, at)
        if not _is_message(source, at):
            is_blank = (
                source[at + 4] == 0xCB
                and source[at + 5] == 0xD4
                and source[at + 6] == 0x31
                and source[at + 7] == 0x94
            )
            return count, at, (BLANK if is_blank else FOREIGN)
        if size < 91:
            return count, at, ODD
        if at + size > end:
            return count, at, CUT
        count += 1
        at += size
    return count, at, ALL_READ


@compiled
def _has_name(source: Bytes, at: Number, name: Bytes) -> bool:
    for index in range(len(name)):  # noqa: SIM110
        if source[at + index] != name[index]:
            return False
    return True


@compiled
def _note_property(
    source: Bytes, item: Number, separator: Number, end: Number, table: Int64s, row: int
) -> None:
    """Take note of where a value stands, if anybody wants to know."""
    name_bytes = separator - item
    place: Number = -1
    if name_bytes == 4:
        if _has_name(source, item, _NAME_TAGS):
            place = TAGS
        elif _has_name(source, item, _NAME_KEYS):
            place = KEYS
    elif name_bytes == 5:
        if _has_name(source, item, _NAME_DELAY):
            place = DELAY
    elif name_bytes == 8:
        if _has_name(source, item, _NAME_UNIQUE_KEY):
            place = UNIQUE_KEY
    elif name_bytes == 20 and _has_name(source, item, _NAME_MULTI_DISPATCH):
        place = MULTI_DISPATCH
    if place >= 0:
        table[row, place] = separator + 1
        table[row, place + 1] = end - separator - 1


@compiled
def _scan_text(source: Bytes, start: Number, end: Number, table: Int64s, row: int) -> None:
    """Take note of the properties between `start` and `end`; of a name twice the last counts."""
    for place in (TAGS, KEYS, DELAY, UNIQUE_KEY, MULTI_DISPATCH):
        table[row, place] = start
        table[row, place + 1] = -1
    item = start
    separator: Number = -1
    for at in range(start, end):
        byte = source[np.uint64(at)]
        if byte == 2:
            if item < separator < at - 1:
                _note_property(source, item, separator, at, table, row)
            item = at + 1
            separator = -1
        elif byte == 1 and separator < 0:
            separator = at
    if item < separator < end - 1:
        _note_property(source, item, separator, end, table, row)


@compiled
def _cover(text: Bytes, mask: Bytes) -> Number:
    """
    Mark all but the values in a text of properties; return how many bytes are separators.

    -1 if there is one inside of a value, or a zero: others cannot be compared with such a text.
    """
    covered: Number = 0
    in_value = False
    for at in range(len(text)):
        if text[at] == 2:
            in_value = False
        if text[at] < 3:
            if in_value or text[at] == 0:
                return -1
            covered += 1
        mask[at] = 0 if in_value else 255
        if text[at] == 1:
            in_value = True
    return covered


@compiled
def _is_alike(
    source: Bytes, start: Number, model: Number, masks: Bytes, mask: Number, size: Number
) -> Number:
    """
    Return how many bytes of a text separate, -1 if it has other names than another text.

    Nothing but values may differ, and these may hold no separators: many bytes are compared in
    one step of the processor, where looking for separators takes one step a byte.
    """
    # Without slices and signs, which cost as much as the comparison itself.
    one, other, cover = np.uint64(start), np.uint64(model), np.uint64(mask)
    different = np.uint8(0)
    found = np.int64(0)
    for index in range(np.uint64(size)):
        byte = source[one + index]
        different |= (byte ^ source[other + index]) & masks[cover + index]
        found += byte < 3
    return found if different == 0 else np.int64(-1)


@compiled
def _scan_texts(source: Bytes, table: Int64s, count: int) -> None:
    """
    Take note of the properties of all rows.

    Texts of one producer look alike but for some values. Each is compared with the last one of
    its size before its bytes are looked at one by one.
    """
    masks = np.zeros(_SHAPES * _SHAPE_BYTES_MAX, np.uint8)
    models = np.full(_SHAPES, -1, np.int64)
    fews = np.zeros(_SHAPES, np.int64)
    for row in range(count):
        start, size = np.int64(table[row, TEXT]), np.int64(table[row, TEXT_BYTES])
        shape = size % _SHAPES
        model, mask = models[shape], shape * _SHAPE_BYTES_MAX
        if model >= 0 and table[model, TEXT_BYTES] == size:
            before = np.int64(table[model, TEXT])
            if _is_alike(source, start, before, masks, mask, size) == fews[shape]:
                for place in range(TAGS, MULTI_DISPATCH + 1, 2):
                    table[row, place] = table[model, place] - before + start
                    table[row, place + 1] = table[model, place + 1]
                continue
        _scan_text(source, start, start + size, table, row)
        if size <= _SHAPE_BYTES_MAX:
            fews[shape] = _cover(source[start : start + size], masks[mask : mask + size])
            models[shape] = row if fews[shape] >= 0 else -1


@compiled
def hash_text(source: Bytes, start: Number, end: Number, value: Number) -> Number:
    """
    Return Java's hash of the UTF-8 between `start` and `end`, going on from the hash `value`.

    The result has a sign. NO_UTF8 if the bytes are none: Java puts U+FFFD there, Python will tell.
    """
    at = start
    value &= 0xFFFFFFFF
    while at < end:
        while at + 4 <= end:  # four letters in one step: 31 * 31 = 961, ...
            first = np.uint64(at)
            one, two = np.int64(source[first]), np.int64(source[first + _1])
            three, four = np.int64(source[first + _2]), np.int64(source[first + _3])
            if one | two | three | four > 127:
                break
            value = (923521 * value + 29791 * one + 961 * two + 31 * three + four) & 0xFFFFFFFF
            at += 4
        if at == end:
            break
        byte = np.int64(source[at])
        if byte < 128:
            value = (31 * value + byte) & 0xFFFFFFFF
            at += 1
            continue
        more = 1 if 0xC2 <= byte < 0xE0 else 2 if byte & 0xF0 == 0xE0 else 3
        if byte < 0xC2 or byte > 0xF4 or at + more >= end:
            return NO_UTF8
        point = byte & (0x3F >> more)
        for index in range(1, more + 1):
            following = np.int64(source[at + index])
            if following & 0xC0 != 0x80:
                return NO_UTF8
            point = point << 6 | following & 0x3F
        if (more == 2 and (point < 0x800 or 0xD800 <= point < 0xE000)) or (
            more == 3 and not 0x10000 <= point < 0x110000
        ):
            return NO_UTF8
        if more == 3:
            point -= 0x10000
            value = (31 * value + 0xD800 + (point >> 10)) & 0xFFFFFFFF
            point = 0xDC00 + (point & 0x3FF)
        value = (31 * value + point) & 0xFFFFFFFF
        at += more + 1
    return value - 4294967296 if value >= 2147483648 else value


@compiled
def _find_parts(
    source: Bytes, at: Number, end: Number
) -> tuple[Number, Number, Number, Number, Number]:
    """Return (where the body begins and ends, the topic and the properties begin, 0 or ODD)."""
    sys_flag = _signed_32(source, at + 36)
    body = at + 88 + (12 if sys_flag & 0x10 else 0) + (12 if sys_flag & 0x20 else 0)
    topic_width = 1 if source[at + 7] == 0xA7 else 2
    if body + topic_width + 2 > end:
        return body, body, body, body, ODD
    body_bytes = _signed_32(source, body - 4)
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


@compiled
def _scan_record(
    source: Bytes, at: Number, size: Number, table: Int64s, row: int, verify_crc: bool
) -> Number:
    """Take note of one record that lies whole in the source; return why not, 0 if it is fine."""
    body, body_end, topic, text, fault = _find_parts(source, at, at + size)
    if fault:
        return fault
    body_crc = _signed_32(source, at + 8)
    if verify_crc and body_end > body:
        found_crc = crc32(source, body, body_end) & 0x7FFFFFFF
        if found_crc != body_crc:
            return BAD_CRC
    sys_flag = _signed_32(source, at + 36)
    born_bytes = 20 if sys_flag & 0x10 else 8
    store_at = at + 48 + born_bytes
    table[row, START] = at
    table[row, SIZE] = size
    table[row, BODY_CRC] = body_crc
    table[row, QUEUE_ID] = _signed_32(source, at + 12)
    table[row, FLAG] = _signed_32(source, at + 16)
    table[row, QUEUE_OFFSET] = _signed_64(source, at + 20)
    table[row, PHYSICAL_OFFSET] = _signed_64(source, at + 28)
    table[row, SYS_FLAG] = sys_flag
    table[row, BORN_MS] = _signed_64(source, at + 40)
    table[row, BORN_HOST] = at + 48
    table[row, BORN_HOST_BYTES] = born_bytes
    table[row, STORE_MS] = _signed_64(source, store_at)
    table[row, STORE_HOST] = store_at + 8
    table[row, STORE_HOST_BYTES] = body - store_at - 24
    table[row, RECONSUME_TIMES] = _signed_32(source, body - 16)
    table[row, PREPARED_OFFSET] = _signed_64(source, body - 12)
    table[row, BODY] = body
    table[row, BODY_BYTES] = body_end - body
    table[row, TOPIC] = topic
    table[row, TOPIC_BYTES] = text - topic - 2
    table[row, TEXT] = text
    table[row, TEXT_BYTES] = at + size - text
    return 0


@compiled
def scan(
    source: Bytes, start: Number, table: Int64s, verify_crc: bool
) -> tuple[Number, Number, Number]:
    """
    Fill the columns of `table` with the records that :func:`count_records` counted from `start`.

    Returns (how many are sound, position behind the last one, why it ends there).
    """
    at = start
    count = table.shape[0]
    fault: Number = ALL_READ
    for row in range(table.shape[0]):
        size = _signed_32(source, at)
        fault = _scan_record(source, at, size, table, row, verify_crc)
        if fault:
            count = row
            break
        at += size
    _scan_texts(source, table, count)
    for row in range(count):
        tags = table[row, TAGS]
        table[row, TAGS_CODE] = hash_text(source, tags, tags + table[row, TAGS_BYTES], 0)
    return count, at, fault
