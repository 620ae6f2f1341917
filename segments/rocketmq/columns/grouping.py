"""
The loops over what a scan found: things numbered, units and index keys made, strings copied.

Compiled as those of :mod:`~logstore.segments.rocketmq.columns.kernel`; they go only where its
`scan` has been.
"""

from __future__ import annotations

import numpy as np

from logstore.segments.rocketmq.columns.kernel import (
    KEYS,
    KEYS_BYTES,
    PHYSICAL_OFFSET,
    QUEUE_ID,
    QUEUE_OFFSET,
    SIZE,
    SYS_FLAG,
    TAGS,
    TAGS_BYTES,
    TAGS_CODE,
    UNIQUE_KEY,
    UNIQUE_KEY_BYTES,
    Bytes,
    Int32s,
    Int64s,
    Number,
    compiled,
    hash_text,
)


@compiled
def _is_same(source: Bytes, one: Number, other: Number, size: Number) -> bool:
    left, right = source[one : one + size], source[other : other + size]
    for index in range(size):  # noqa: SIM110
        if left[index] != right[index]:
            return False
    return True


@compiled
def intern(
    source: Bytes, starts: Int64s, sizes: Int64s, slots: Int32s, firsts: Int32s, codes: Int32s
) -> Number:
    """
    Number the different byte strings from 0 on, in the order in which they come.

    `slots`: zeros, a power of two of them, more than strings. `firsts`: the row in which each
    number came first. `codes`: the number of each row. Returns how many there are.
    """
    count: Number = 0
    mask = len(slots) - 1
    for row in range(len(starts)):
        at, size = np.int64(starts[row]), np.int64(sizes[row])
        if row and sizes[row - 1] == size and _is_same(source, starts[row - 1], at, size):
            codes[row] = codes[row - 1]
            continue
        value: Number = size
        for index in range(size):
            value = (value * 31 + source[at + index]) & 0xFFFFFFFF
        slot = (value ^ value >> 15) & mask
        while slots[slot] > 0:
            first = firsts[slots[slot] - 1]
            if sizes[first] == size and _is_same(source, np.int64(starts[first]), at, size):
                break
            slot = (slot + 1) & mask
        if slots[slot] == 0:
            firsts[count] = row
            count += 1
            slots[slot] = count
        codes[row] = slots[slot] - 1
    return count


@compiled
def number_queues(
    topics: Int32s, table: Int64s, slots: Int32s, firsts: Int32s, queues: Int32s
) -> Number:
    """
    Number the different queues from 0 on; a row whose message gets no unit has -1.

    `topics` are numbers of topics, the rest is as in :func:`intern`. Returns how many there are.
    """
    count: Number = 0
    mask = len(slots) - 1
    for row in range(table.shape[0]):
        kind = table[row, SYS_FLAG] & 0xC
        if kind == 0x4 or kind == 0xC:
            queues[row] = -1
            continue
        queue_id = table[row, QUEUE_ID]
        value = topics[row] * 1000003 + queue_id
        slot = (value ^ value >> 15) & mask
        while slots[slot] > 0:
            first = firsts[slots[slot] - 1]
            if topics[first] == topics[row] and table[first, QUEUE_ID] == queue_id:
                break
            slot = (slot + 1) & mask
        if slots[slot] == 0:
            firsts[count] = row
            count += 1
            slots[slot] = count
        queues[row] = slots[slot] - 1
    return count


@compiled
def put_32(target: Bytes, at: Number, value: Number) -> None:
    """Write four bytes, the highest first."""
    for index in range(4):
        target[at + index] = (value >> (24 - 8 * index)) & 255


@compiled
def put_64(target: Bytes, at: Number, value: Number) -> None:
    """Write eight bytes, the highest first."""
    for index in range(8):
        target[at + index] = (value >> (56 - 8 * index)) & 255


@compiled
def fill_units(
    table: Int64s,
    queues: Int32s,
    nexts: Int64s,
    units: Bytes,
    queue_offsets: Int64s,
    rows: Int64s,
) -> None:
    """
    Put the consume queue unit of each row where its queue has its next place.

    `nexts` says where each queue begins among the units, and is counted up.
    """
    for row in range(len(queues)):
        queue = queues[row]
        if queue < 0:
            continue
        place = np.int64(nexts[queue])
        nexts[queue] = place + 1
        at = 20 * place
        put_64(units, at, table[row, PHYSICAL_OFFSET])
        put_32(units, at + 8, table[row, SIZE])
        put_64(units, at + 12, table[row, TAGS_CODE])
        queue_offsets[place] = table[row, QUEUE_OFFSET]
        rows[place] = row


@compiled
def gather(source: Bytes, starts: Int64s, bounds: Int32s, target: Bytes) -> None:
    """Copy strings back to back; `bounds` says where each one begins and ends in `target`."""
    for row in range(len(starts)):
        at = starts[row]
        begin, size = bounds[row], bounds[row + 1] - bounds[row]
        found, kept = source[at : at + size], target[begin : begin + size]
        for index in range(size):
            kept[index] = found[index]


@compiled
def index_keys(
    source: Bytes,
    table: Int64s,
    prefixes: Int64s,
    tag_prefixes: Int64s,
    has_tag_keys: bool,
    hashes: Int64s,
    rows: Int32s,
) -> Number:
    """
    Hash what the index of messages has for each row: unique key, keys, and tags if they count.

    `prefixes` are the hashes of ``topic#`` for each row, `tag_prefixes` those of ``topic#T#``.
    A hash is NO_UTF8 where Python must tell. Returns how many entries there are.
    """
    count: Number = 0
    for row in range(table.shape[0]):
        prefix = prefixes[row]
        size = table[row, UNIQUE_KEY_BYTES]
        if size >= 0:
            at = table[row, UNIQUE_KEY]
            hashes[count] = hash_text(source, at, at + size, prefix)
            rows[count] = row
            count += 1
        at = table[row, KEYS]
        end = at + table[row, KEYS_BYTES]
        begin = at
        while at <= end:
            if at == end or source[at] == 32:
                if at > begin:
                    hashes[count] = hash_text(source, begin, at, prefix)
                    rows[count] = row
                    count += 1
                begin = at + 1
            at += 1
        size = table[row, TAGS_BYTES]
        if has_tag_keys and size >= 0:
            at = table[row, TAGS]
            hashes[count] = hash_text(source, at, at + size, tag_prefixes[row])
            rows[count] = row
            count += 1
    return count
