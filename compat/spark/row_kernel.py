"""The compiled loop that says where rows with keys go: Kafka's hash of each."""

from __future__ import annotations

from logstore.compat.spark.partitioning import FACTOR, MASK, SEED, SHIFT
from logstore.segments.compiled.loops import Bytes, Int64s, Number, compiled


@compiled
def hash_keys(data: Bytes, starts: Int64s, sizes: Int64s, hashes: Int64s) -> None:
    """Hash keys as Kafka's partitioner does (``Utils.murmur2``, positive); -1 for no key."""
    for row in range(len(starts)):
        size: Number = int(sizes[row])
        if size < 0:
            hashes[row] = -1
            continue
        at: Number = int(starts[row])
        end = at + size
        value: Number = (SEED ^ size) & MASK
        while end - at >= 4:
            word: Number = int(data[at]) | int(data[at + 1]) << 8
            word |= int(data[at + 2]) << 16 | int(data[at + 3]) << 24
            word = word * FACTOR & MASK
            word = (word ^ (word >> SHIFT)) * FACTOR & MASK
            value = (value * FACTOR & MASK) ^ word
            at += 4
        if at < end:
            rest: Number = 0
            for index in range(end - at):
                rest |= int(data[at + index]) << (8 * index)
            value = (value ^ rest) * FACTOR & MASK
        value = (value ^ (value >> 13)) * FACTOR & MASK
        hashes[row] = (value ^ (value >> 15)) & 0x7FFF_FFFF
