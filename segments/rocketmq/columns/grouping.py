"""
The loops over what a scan found: things numbered, units and index keys made, strings copied.

Compiled as those of :mod:`~logstore.segments.rocketmq.columns.kernel`; they go only where its
`scan` has been.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from logstore.segments.compiled.loops import Bytes, Int64s, Number, inlined, uncounted
from logstore.segments.compiled.machine_words import copy, put_32, put_64, word
from logstore.segments.rocketmq.columns.kernel import (
    KEYS,
    KEYS_BYTES,
    NO_UTF8,
    PHYSICAL_OFFSET,
    QUEUE_ID,
    QUEUE_OFFSET,
    SIZE,
    STORE_MS,
    SYS_FLAG,
    TAGS,
    TAGS_BYTES,
    TAGS_CODE,
    UNIQUE_KEY,
    UNIQUE_KEY_BYTES,
    Int32s,
    hash_text,
)


@inlined
def _is_same(source: Bytes, one: Number, other: Number, size: Number) -> bool:
    for index in range(size >> 3):
        if word(source, one + 8 * index) != word(source, other + 8 * index):
            return False
    rest = size & 7
    if rest == 0:
        return True
    # Whatever is compared has more than eight bytes of its record in front of it.
    shift = np.uint64(8 * (8 - rest))
    left, right = word(source, one + size - 8), word(source, other + size - 8)
    return bool(left >> shift == right >> shift)


@uncounted
def intern(
    source: Bytes, table: Int64s, place: Number, slots: Int32s, firsts: Int32s, codes: Int32s
) -> Number:
    """
    Number the different byte strings from 0 on, in the order in which they come.

    `place` is the row of `table` with their positions, lengths are in the next one. `slots`:
    zeros, a power of two of them, more than strings. `firsts`: the row in which each number came
    first. `codes`: the number of each row. Returns how many there are.
    """
    count: Number = 0
    mask = len(slots) - 1
    before, size_before, code = np.int64(0), np.int64(-1), np.int32(0)
    for row in range(table.shape[1]):
        at, size = np.int64(table[place, row]), np.int64(table[place + 1, row])
        if size_before == size and _is_same(source, before, at, size):
            codes[row] = code
            continue
        before, size_before = at, size
        value: Number = size
        for index in range(size):
            value = (value * 31 + source[at + index]) & 0xFFFFFFFF
        slot = (value ^ value >> 15) & mask
        while slots[slot] > 0:
            first = firsts[slots[slot] - 1]
            if table[place + 1, first] == size and _is_same(
                source, np.int64(table[place, first]), at, size
            ):
                break
            slot = (slot + 1) & mask
        if slots[slot] == 0:
            firsts[count] = row
            count += 1
            slots[slot] = count
        code = np.int32(slots[slot] - 1)
        codes[row] = code
    return count


@uncounted
def number_queues(
    topics: Int32s, table: Int64s, slots: Int32s, firsts: Int32s, queues: Int32s
) -> Number:
    """
    Number the different queues from 0 on; a row whose message gets no unit has -1.

    `topics` are numbers of topics, the rest is as in :func:`intern`. Returns how many there are.
    """
    count: Number = 0
    mask = len(slots) - 1
    for row in range(table.shape[1]):
        kind = table[SYS_FLAG, row] & 0xC
        if kind == 0x4 or kind == 0xC:
            queues[row] = -1
            continue
        queue_id = table[QUEUE_ID, row]
        value = topics[row] * 1000003 + queue_id
        slot = (value ^ value >> 15) & mask
        while slots[slot] > 0:
            first = firsts[slots[slot] - 1]
            if topics[first] == topics[row] and table[QUEUE_ID, first] == queue_id:
                break
            slot = (slot + 1) & mask
        if slots[slot] == 0:
            firsts[count] = row
            count += 1
            slots[slot] = count
        queues[row] = slots[slot] - 1
    return count


@uncounted
def fill_units(
    table: Int64s,
    firsts: Int32s,
    queues: Int32s,
    nexts: Int64s,
    units: Bytes,
    queue_offsets: Int64s,
    rows: Int64s,
    gaps: Int64s,
) -> None:
    """
    Put the consume queue unit of each row where its queue has its next place.

    `nexts` says where each queue begins among the units, and is counted up. `gaps`, zeros, counts
    for each queue the queue offsets that are not the ones after their neighbours'.
    """
    for row in range(len(queues)):
        queue = queues[row]
        if queue < 0:
            continue
        place = np.int64(nexts[queue])
        nexts[queue] = place + 1
        queue_offset = np.int64(table[QUEUE_OFFSET, row])
        if place > 0 and firsts[queue] != row and queue_offsets[place - 1] + 1 != queue_offset:
            gaps[queue] += 1
        at = 20 * place
        put_64(units, at, table[PHYSICAL_OFFSET, row])
        put_32(units, at + 8, table[SIZE, row])
        put_64(units, at + 12, table[TAGS_CODE, row])
        queue_offsets[place] = queue_offset
        rows[place] = row


@uncounted
def find_bounds(table: Int64s, place: Number, bounds: Int32s, is_null: NDArray[np.bool_]) -> Number:
    """
    Say where each string begins and ends if they stand back to back; return how many are null.

    `place` is the row of `table` with the strings' positions, as for :func:`intern`.
    """
    end, null_count = np.int64(0), np.int64(0)
    bounds[0] = 0
    for row in range(table.shape[1]):
        size = np.int64(table[place + 1, row])
        is_null[row] = size < 0
        if size < 0:
            null_count += 1
        else:
            end += size
        bounds[row + 1] = end
    return null_count


@uncounted
def gather(source: Bytes, table: Int64s, place: Number, bounds: Int32s, target: Bytes) -> None:
    """Copy strings back to back; `bounds` says where each one begins and ends in `target`."""
    for row in range(table.shape[1]):
        begin = np.int64(bounds[row])
        copy(source, table[place, row], bounds[row + 1] - begin, target, begin)


@uncounted
def key_room(table: Int64s) -> Number:
    """Return how many entries the keys of all rows can have at most."""
    room = np.int64(0)
    for row in range(table.shape[1]):
        room += 2 + max(np.int64(table[KEYS_BYTES, row]), np.int64(-1)) // 2 + 1
    return room


@inlined
def _hash_keys(
    source: Bytes, table: Int64s, row: int, prefix: Number, hashes: Int64s, count: Number
) -> Number:
    """Hash the unique key and the keys of a row; return how many hashes there are then."""
    size = table[UNIQUE_KEY_BYTES, row]
    if size >= 0:
        at = table[UNIQUE_KEY, row]
        hashes[count] = hash_text(source, at, at + size, prefix)
        count += 1
    at = table[KEYS, row]
    end = at + table[KEYS_BYTES, row]
    begin = at
    while at <= end:
        if at == end or source[at] == 32:
            if at > begin:
                hashes[count] = hash_text(source, begin, at, prefix)
                count += 1
            begin = at + 1
        at += 1
    return count


@uncounted
def index_keys(
    source: Bytes,
    table: Int64s,
    topics: Int32s,
    prefixes: Int64s,
    tag_prefixes: Int64s,
    has_tag_keys: bool,
    hashes: Int64s,
    rows: Int32s,
    physical_offsets: Int64s,
    store_timestamps_ms: Int64s,
) -> tuple[Number, Number]:
    """
    Hash what the index of messages has for each row: unique key, keys, and tags if they count.

    `topics` are the rows' numbers of topics, `prefixes` the hashes of ``topic#`` for each number,
    `tag_prefixes` those of ``topic#T#``. What was rolled back has no entries. A hash is NO_UTF8
    where Python must tell. Returns how many entries there are, and how many of these.
    """
    count: Number = 0
    odd_count: Number = 0
    for row in range(table.shape[1]):
        if table[SYS_FLAG, row] & 0xC == 0xC:
            continue
        first = count
        topic = int(topics[row])
        count = _hash_keys(source, table, row, int(prefixes[topic]), hashes, count)
        size = table[TAGS_BYTES, row]
        if has_tag_keys and size >= 0:
            at = table[TAGS, row]
            hashes[count] = hash_text(source, at, at + size, int(tag_prefixes[topic]))
            count += 1
        for entry in range(first, count):
            rows[entry] = row
            physical_offsets[entry] = table[PHYSICAL_OFFSET, row]
            store_timestamps_ms[entry] = table[STORE_MS, row]
            if hashes[entry] == NO_UTF8:
                odd_count += 1
    return count, odd_count
