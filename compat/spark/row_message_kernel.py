"""The compiled loops that make messages of rows, and give them their places in a commit log."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from logstore.compat.spark.convert.message_kernel import copied, is_plain, put
from logstore.compat.spark.row_kernel import Pieces
from logstore.segments.compiled.loops import Bytes, Int64s, Number, compiled
from logstore.segments.compiled.machine_words import put_32, put_64
from logstore.segments.rocketmq.columns.kernel import crc32, hash_text

Flags = NDArray[np.bool_]
HeaderBounds = tuple[Int64s, Int64s]

#: total size to length of the body, both hosts IPv4
HEAD_BYTES = 88
#: rows with more are looked at in Python: each name is compared with all in front of it
_HEADERS_MAX = 32
_KEYS = np.frombuffer(b"KEYS", np.uint8)
_SEPARATORS_BYTES = 2


@compiled
def hash_texts(keys: Pieces, hashes: Int64s) -> None:
    """
    Hash keys as ``SelectMessageQueueByHash`` does, without a sign.

    -1 for none; NO_UTF8 for one that is no text.
    """
    data, starts, sizes = keys
    for row in range(len(starts)):
        hashes[row] = -1
        if sizes[row] >= 0:
            found = hash_text(data, starts[row], starts[row] + sizes[row], 0)
            hashes[row] = max(found, -found)


@compiled
def _is_same(data: Bytes, start: Number, size: Number, other: Bytes, place: Number) -> bool:
    for index in range(size):  # noqa: SIM110
        if data[start + index] != other[place + index]:
            return False
    return True


@compiled
def _are_plain(bounds: HeaderBounds, row: Number, names: Pieces, contents: Pieces) -> bool:
    """Tell whether the headers of a row are properties as they stand, each of another name."""
    data, starts, sizes = names
    values, value_starts, value_sizes = contents
    first, count = bounds[0][row], bounds[1][row]
    if count > _HEADERS_MAX:
        return False
    for header in range(first, first + count):
        start, size, value_start = starts[header], sizes[header], value_starts[header]
        if not is_plain(data, start, start + size):
            return False
        if not is_plain(values, value_start, value_start + value_sizes[header]):
            return False
        if size == len(_KEYS) and _is_same(data, start, size, _KEYS, 0):
            return False
        for other in range(first, header):
            if sizes[other] == size and _is_same(data, start, size, data, starts[other]):
                return False
    return True


@compiled
def measure_texts(
    keys: Pieces, bounds: HeaderBounds, names: Pieces, contents: Pieces, sizes: Int64s
) -> None:
    """Set how long key and headers of each row are as properties, -1 where Python must tell."""
    data, starts, key_sizes = keys
    for row in range(len(sizes)):
        size: Number = 0
        if key_sizes[row] >= 0:
            if not is_plain(data, starts[row], starts[row] + key_sizes[row]):
                sizes[row] = -1
                continue
            size = len(_KEYS) + key_sizes[row] + _SEPARATORS_BYTES
        if not _are_plain(bounds, row, names, contents):
            sizes[row] = -1
            continue
        for header in range(bounds[0][row], bounds[0][row] + bounds[1][row]):
            size += names[2][header] + contents[2][header] + _SEPARATORS_BYTES
        sizes[row] = size


@compiled
def _put_value(source: Bytes, start: Number, size: Number, target: Bytes, at: Number) -> Number:
    target[at] = 1
    at = copied(source, start, size, target, at + 1)
    target[at] = 2
    return at + 1


@compiled
def fill_texts(
    keys: Pieces,
    bounds: HeaderBounds,
    names: Pieces,
    contents: Pieces,
    odd: Flags,
    text_starts: Int64s,
    target: Bytes,
) -> None:
    """Write the properties of every row that is not odd: its key first, as one by one."""
    for row in range(len(odd)):
        if odd[row]:
            continue
        at: Number = text_starts[row]
        if keys[2][row] >= 0:
            at = copied(_KEYS, 0, len(_KEYS), target, at)
            at = _put_value(keys[0], keys[1][row], keys[2][row], target, at)
        for header in range(bounds[0][row], bounds[0][row] + bounds[1][row]):
            at = copied(names[0], names[1][header], names[2][header], target, at)
            at = _put_value(contents[0], contents[1][header], contents[2][header], target, at)


@compiled
def pack_messages(
    rows: Int64s,
    template: Bytes,
    topic: Bytes,
    bodies: Pieces,
    texts: Pieces,
    born_ms: Int64s,
    bounds: Int64s,
    target: Bytes,
) -> None:
    """
    Write the messages of some rows back to back, each where `bounds` says.

    `template` is the head of a message, `topic` that with its length in front; places and the time
    when they are stored are left as they are in the template.
    """
    for number in range(len(rows)):
        row: Number = int(rows[number])
        at: Number = int(bounds[number])
        body: Number = int(bodies[1][row])
        body_bytes: Number = max(int(bodies[2][row]), 0)
        text_bytes: Number = int(texts[2][row])
        copied(template, 0, HEAD_BYTES, target, at)
        put_32(target, at, int(bounds[number + 1]) - at)
        put_32(target, at + 8, crc32(bodies[0], body, body + body_bytes) & 0x7FFFFFFF)
        put_64(target, at + 40, int(born_ms[row]))
        put_32(target, at + 84, body_bytes)
        place = copied(bodies[0], body, body_bytes, target, at + HEAD_BYTES)
        place = copied(topic, 0, len(topic), target, place)
        put(target, place, text_bytes, 2)
        copied(texts[0], int(texts[1][row]), text_bytes, target, place + 2)


@compiled
def place_messages(
    data: Bytes, starts: Int64s, physical_offset: Number, queue_offset: Number, store_ms: Number
) -> None:
    """Say of messages that follow one another where the first stands, and when all are stored."""
    for number in range(len(starts)):
        at = starts[number]
        put_64(data, at + 20, queue_offset + number)
        put_64(data, at + 28, physical_offset + at)
        put_64(data, at + 56, store_ms)
