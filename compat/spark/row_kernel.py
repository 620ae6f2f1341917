"""The compiled loops that make Kafka's records of rows: hashes of keys, and what headers add."""

from __future__ import annotations

from logstore.compat.spark.convert.message_kernel import copied, put
from logstore.compat.spark.partitioning import FACTOR, MASK, SEED, SHIFT
from logstore.segments.compiled.loops import Bytes, Int64s, Number, compiled

Pieces = tuple[Bytes, Int64s, Int64s]
#: ``K1``, and whether the value is null
_REST_BYTES = 3
_LENGTH_BYTES = 4


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


@compiled
def size_rests(
    key_sizes: Int64s,
    header_bounds: tuple[Int64s, Int64s],
    name_sizes: Int64s,
    value_sizes: Int64s,
    bounds: Int64s,
) -> None:
    """Set where the rest of each row is to begin; see :func:`fill_rests`."""
    firsts, counts = header_bounds
    at: Number = 0
    bounds[0] = 0
    for row in range(len(key_sizes)):
        at += _REST_BYTES + _LENGTH_BYTES + max(key_sizes[row], 0)
        for header in range(firsts[row], firsts[row] + counts[row]):
            at += 2 * _LENGTH_BYTES + name_sizes[header] + max(value_sizes[header], 0)
        bounds[row + 1] = at


@compiled
def fill_rests(
    keys: Pieces,
    value_sizes: Int64s,
    header_bounds: tuple[Int64s, Int64s],
    names: Pieces,
    contents: Pieces,
    bounds: Int64s,
    target: Bytes,
) -> None:
    """Write key and headers of each row as rests of records, which ``MAPPING.md`` describes."""
    firsts, counts = header_bounds
    for row in range(len(value_sizes)):
        at: Number = bounds[row]
        target[at] = 75
        target[at + 1] = 49
        target[at + 2] = 1 if value_sizes[row] < 0 else 0
        at = _put_piece(keys, row, target, at + _REST_BYTES)
        for header in range(firsts[row], firsts[row] + counts[row]):
            at = _put_piece(names, header, target, at)
            at = _put_piece(contents, header, target, at)


@compiled
def _put_piece(pieces: Pieces, row: Number, target: Bytes, at: Number) -> Number:
    """Write a length, -1 for null, and so many bytes; return the position behind them."""
    data, starts, sizes = pieces
    size = sizes[row]
    put(target, at, size, _LENGTH_BYTES)
    at += _LENGTH_BYTES
    return copied(data, starts[row], size, target, at) if size > 0 else at
