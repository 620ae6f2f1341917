"""The loop that adds many entries to an index file at once."""

from __future__ import annotations

import numpy as np

from logstore.segments.compiled.loops import Bytes, Int64s, Number, uncounted
from logstore.segments.compiled.machine_words import put_32, put_64
from logstore.segments.rocketmq.columns.kernel import Int32s

_SECONDS_MAX = 2**31 - 1


@uncounted
def fill_entries(
    hashes: Int64s,
    physical_offsets: Int64s,
    store_timestamps_ms: Int64s,
    slots: Int32s,
    dirty_blocks: Bytes,
    block_shift: Number,
    first_number: Number,
    begin_ms: Number,
    target: Bytes,
) -> Number:
    """
    Write an entry of 20 bytes for each hash, chain it to its slot; return how many slots are new.

    `hashes` have no sign. `slots` are those of the file, in the machine's order of bytes;
    `dirty_blocks` gets a 1 for each 2 to the power of `block_shift` slots that change. Entries
    are numbered from `first_number` on. `begin_ms` is the begin timestamp of the file; the first
    entry of all sets another, from which on those behind it count.
    """
    used: Number = 0
    number = first_number
    for index in range(len(hashes)):
        slot = hashes[index] % len(slots)
        previous = np.int64(slots[slot])
        if previous <= 0 or previous > number:
            previous = np.int64(0)
            used += 1
        stored_ms = store_timestamps_ms[index]
        seconds = np.int64(0)
        if 0 < begin_ms < stored_ms:
            seconds = min((stored_ms - begin_ms) // 1000, np.int64(_SECONDS_MAX))
        at = 20 * index
        put_32(target, at, hashes[index])
        put_64(target, at + 4, physical_offsets[index])
        put_32(target, at + 12, seconds)
        put_32(target, at + 16, previous)
        slots[slot] = number
        dirty_blocks[slot >> block_shift] = 1
        if number <= 1:
            begin_ms = stored_ms
        number += 1
    return used


def without_sign(hashes: Int64s) -> Int64s:
    """Return Java's hashes as index entries have them: the smallest one, too, has no sign."""
    found: Int64s = np.abs(hashes)
    found[found > _SECONDS_MAX] = 0
    return found
