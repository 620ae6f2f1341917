"""
The terms of the loops over stored messages, and the smallest of them: sizes, checksums, hashes.

Plain Python over numpy arrays, made fast by numba, whose compiled form is kept on disk and runs
without the interpreter's lock.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from logstore.segments.compiled.loops import Bytes, Number, compiled, inlined, uncounted
from logstore.segments.compiled.machine_words import CAN_FOLD, fold_crc32, signed_32, word

Int32s = NDArray[np.int32]

#: why :func:`count_records` and a scan stopped
ALL_READ, BLANK, CUT, FOREIGN, ODD, BAD_CRC = range(6)

#: what each row of the table of a scan says, a column a message; starts are positions in the source
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

#: what :func:`hash_text` returns of bytes that are no UTF-8: no hash has 33 bits
NO_UTF8 = 1 << 32

#: shorter bytes are not worth the way there and back
FOLDED_BYTES_MIN = 64


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
_BYTE = np.uint32(255)
_1, _2, _3 = np.uint64(1), np.uint64(2), np.uint64(3)


@inlined
def take_word(crc: np.uint32, value: np.uint64) -> np.uint32:
    """Take eight bytes into a CRC."""
    tables = _CRC_TABLES
    low = np.uint32(value & np.uint64(0xFFFFFFFF)) ^ crc
    high = np.uint32(value >> np.uint64(32))
    return np.uint32(
        tables[7, low & _BYTE]
        ^ tables[6, low >> np.uint32(8) & _BYTE]
        ^ tables[5, low >> np.uint32(16) & _BYTE]
        ^ tables[4, low >> np.uint32(24)]
        ^ tables[3, high & _BYTE]
        ^ tables[2, high >> np.uint32(8) & _BYTE]
        ^ tables[1, high >> np.uint32(16) & _BYTE]
        ^ tables[0, high >> np.uint32(24)]
    )


@inlined
def crc32(source: Bytes, start: Number, end: Number) -> Number:
    """Return the CRC-32 of ``source[start:end]``, as zlib computes it."""
    at = np.int64(start)
    crc = np.uint32(0xFFFFFFFF)
    if CAN_FOLD and end - at >= FOLDED_BYTES_MIN:
        count = (end - at) >> 4
        low, high = fold_crc32(source, at, count)
        crc = take_word(take_word(np.uint32(0), low), high)
        at += count << 4
    while at + 8 <= end:
        crc = take_word(crc, word(source, at))
        at += 8
    while at < end:
        index = (crc ^ np.uint32(source[at])) & _BYTE
        crc = np.uint32(crc >> np.uint32(8) ^ _CRC_TABLES[0, index])
        at += 1
    return np.int64(crc ^ np.uint32(0xFFFFFFFF))


@inlined
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
        size = signed_32(source, at)
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


@uncounted
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
