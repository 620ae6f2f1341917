"""The loops that hold entries of an index against chains and messages; needs numba to be fast."""

from __future__ import annotations

import numpy as np

from logstore.segments.compiled.loops import Bytes, Int64s, Number, compiled
from logstore.segments.rocketmq.columns.kernel import Int32s

#: the columns of entries that were read
FILE, NUMBER, KEY_HASH, PHYSICAL_OFFSET, SECONDS = range(5)
ENTRY_COLUMNS = 5
#: the columns of what headers say, a row for each file
BEGIN_MS, END_MS, BEGIN_OFFSET, NEXT_NUMBER = range(4)
#: what an entry says of a message that is younger than the begin by more
SECONDS_MAX = 2**31 - 1
#: the columns of entries whose chains are not right
ODD_ROW, ODD_PREVIOUS, ODD_EXPECTED = range(3)


@compiled
def _signed(data: Bytes, at: Number, size: Number) -> Number:
    value = np.int64(data[at])
    if value > 127:
        value -= 256
    for index in range(1, size):
        value = value * 256 + np.int64(data[at + index])
    return value


@compiled
def read_entries(
    data: Bytes, file: Number, first_number: Number, newest: Int32s, entries: Int64s, odd: Int64s
) -> Number:
    """
    Decode entries of 20 bytes and follow their chains; return how many lead where they must not.

    `newest` has the number of the newest entry of each slot, and is brought up to date. `odd` gets
    row, number that the entry leads to, and the one that it must lead to.
    """
    count: Number = 0
    for row in range(entries.shape[0]):
        at = 20 * row
        key_hash = _signed(data, at, 4)
        entries[row, FILE] = file
        entries[row, NUMBER] = first_number + row
        entries[row, KEY_HASH] = key_hash
        entries[row, PHYSICAL_OFFSET] = _signed(data, at + 4, 8)
        entries[row, SECONDS] = _signed(data, at + 12, 4)
        previous = _signed(data, at + 16, 4)
        slot = key_hash % len(newest)
        if previous != newest[slot]:
            odd[count, ODD_ROW] = row
            odd[count, ODD_PREVIOUS] = previous
            odd[count, ODD_EXPECTED] = newest[slot]
            count += 1
        newest[slot] = first_number + row
    return count


@compiled
def count_alike(
    entries: Int64s,
    start: Number,
    hashes: Int64s,
    physical_offsets: Int64s,
    store_timestamps_ms: Int64s,
    headers: Int64s,
) -> Number:
    """
    Return how many entries from row `start` on are those that messages must have.

    Hashes, places, seconds since the begin of their file, and what its header says of the first and
    last entry. There are as many rows behind `start` as there are hashes.
    """
    for index in range(len(hashes)):
        row = start + index
        stored_ms, place = store_timestamps_ms[index], physical_offsets[index]
        if entries[row, KEY_HASH] != hashes[index] or entries[row, PHYSICAL_OFFSET] != place:
            return index
        file, number = entries[row, FILE], entries[row, NUMBER]
        begin_ms = headers[file, BEGIN_MS]
        if number == 1:
            if begin_ms != stored_ms or headers[file, BEGIN_OFFSET] != place:
                return index
        elif entries[row, SECONDS] != min(max((stored_ms - begin_ms) // 1000, 0), SECONDS_MAX):
            return index
        if number == headers[file, NEXT_NUMBER] - 1 and headers[file, END_MS] != stored_ms:
            return index
    return len(hashes)
