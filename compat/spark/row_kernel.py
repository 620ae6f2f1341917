"""The compiled loop that says where rows with keys go: Kafka's hash of each."""

from __future__ import annotations

from logstore.segments.compiled.loops import Bytes, Int64s, Number, compiled

_SEED, _M, _R = 0x9747B28C, 0x5BD1E995, 24
_MASK = 0xFFFF_FFFF


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
        value: Number = (_SEED ^ size) & _MASK
        while end - at >= 4:
            word: Number = int(data[at]) | int(data[at + 1]) << 8
            word |= int(data[at + 2]) << 16 | int(data[at + 3]) << 24
            word = word * _M & _MASK
            word = (word ^ (word >> _R)) * _M & _MASK
            value = (value * _M & _MASK) ^ word
            at += 4
        if at < end:
            rest: Number = 0
            for index in range(end - at):
                rest |= int(data[at + index]) << (8 * index)
            value = (value ^ rest) * _M & _MASK
        value = (value ^ (value >> 13)) * _M & _MASK
        hashes[row] = (value ^ (value >> 15)) & 0x7FFF_FFFF
