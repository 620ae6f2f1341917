"""The compiled loop that makes messages of records that were messages once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from logstore.compat.spark.convert.message_kernel import copied
from logstore.segments.compiled.loops import Bytes, Int64s, Number, compiled
from logstore.segments.rocketmq.columns.kernel import Int32s

Table = NDArray[np.uint8]


@compiled
def _put(target: Bytes, at: Number, value: Number, size: Number) -> Number:
    """Write a number of `size` bytes; return the position behind it."""
    for index in range(size):
        target[at + index] = (value >> (8 * (size - 1 - index))) & 255
    return at + size


@compiled
def pack_restored(
    first: Number,
    last: Number,
    magic: Number,
    queue_id: Number,
    topic: Bytes,
    topic_length_bytes: Number,
    numbers: NDArray[np.int64],
    hosts: Table,
    host_sizes: Int64s,
    bodies: Bytes,
    body_bounds: Int32s,
    texts: Bytes,
    text_bounds: Int32s,
    queue_offsets: Int64s,
    sizes: Int64s,
    physical_offset: Number,
    physical_offsets: Int64s,
    target: Bytes,
) -> Number:
    """
    Write the messages of rows ``[first, last)`` back to back; return how many bytes they have.

    `numbers` has a row for each of: flag, system flag, CRC of the body, born and store time,
    reconsume times, prepared transaction offset, born and store host as rows of `hosts`.
    """
    at: Number = 0
    for row in range(first, last):
        physical_offsets[row] = physical_offset + at
        head = (sizes[row], magic, numbers[2, row], queue_id, numbers[0, row])
        for value in head:
            at = _put(target, at, value, 4)
        at = _put(target, at, queue_offsets[row], 8)
        at = _put(target, at, physical_offsets[row], 8)
        at = _put(target, at, numbers[1, row], 4)
        for time, host in ((3, 7), (4, 8)):
            at = _put(target, at, numbers[time, row], 8)
            code = numbers[host, row]
            at = copied(hosts[code], 0, np.int64(host_sizes[code]), target, at)
        at = _put(target, at, numbers[5, row], 4)
        at = _put(target, at, numbers[6, row], 8)
        start, end = np.int64(body_bounds[row]), np.int64(body_bounds[row + 1])
        at = _put(target, at, end - start, 4)
        at = copied(bodies, start, end - start, target, at)
        at = _put(target, at, len(topic), topic_length_bytes)
        at = copied(topic, 0, len(topic), target, at)
        start, end = np.int64(text_bounds[row]), np.int64(text_bounds[row + 1])
        at = _put(target, at, end - start, 2)
        at = copied(texts, start, end - start, target, at)
    return at
