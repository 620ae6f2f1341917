"""Numbers as both formats write them: big-endian, and zigzag in as few bytes as will do."""

from __future__ import annotations

import numpy as np

from logstore.segments.compiled.loops import Bytes, Number, compiled

#: bytes of a number of 64 bits at most
_VARINT_BYTES_MAX = 10


@compiled
def get_big_endian(source: Bytes, at: Number, size_bytes: Number) -> Number:
    """Return the number with a sign of 4 or 8 bytes, or the one without of 1 or 2, at `at`."""
    value = np.uint64(0)
    for index in range(size_bytes):
        value = value << np.uint64(8) | np.uint64(source[np.uint64(at) + np.uint64(index)])
    if size_bytes == 4 and value >= np.uint64(1 << 31):
        return np.int64(value) - (1 << 32)
    return np.int64(value)


@compiled
def put_big_endian(target: Bytes, at: Number, value: Number, size_bytes: Number) -> None:
    """Write the lowest `size_bytes` bytes of a number."""
    rest = np.uint64(np.int64(value))
    for index in range(size_bytes):
        target[np.uint64(at) + np.uint64(size_bytes - 1 - index)] = np.uint8(rest & np.uint64(255))
        rest = rest >> np.uint64(8)


@compiled
def get_varint(source: Bytes, at: Number, end: Number) -> tuple[Number, Number]:
    """Return the signed number at `at` and the place behind it, which is -1 if it runs on."""
    value = np.uint64(0)
    for index in range(_VARINT_BYTES_MAX):
        if at + index >= end:
            return 0, -1
        byte = np.uint64(source[np.uint64(at + index)])
        value |= (byte & np.uint64(127)) << np.uint64(7 * index)
        if byte < np.uint64(128):
            half = np.int64(value >> np.uint64(1))
            return half ^ -np.int64(value & np.uint64(1)), at + index + 1
    return 0, -1


@compiled
def put_varint(target: Bytes, at: Number, value: Number) -> Number:
    """Write a signed number; return the place behind it."""
    signed = np.int64(value)
    rest = np.uint64(signed << np.int64(1)) ^ np.uint64(signed >> np.int64(63))
    while rest >= np.uint64(128):
        target[np.uint64(at)] = np.uint8(rest & np.uint64(127) | np.uint64(128))
        rest = rest >> np.uint64(7)
        at += 1
    target[np.uint64(at)] = np.uint8(rest)
    return at + 1


@compiled
def varint_bytes(value: Number) -> Number:
    """Return how many bytes :func:`put_varint` writes."""
    signed = np.int64(value)
    rest = np.uint64(signed << np.int64(1)) ^ np.uint64(signed >> np.int64(63))
    count: Number = 1
    while rest >= np.uint64(128):
        rest = rest >> np.uint64(7)
        count += 1
    return count


@compiled
def copy(source: Bytes, start: Number, size_bytes: Number, target: Bytes, at: Number) -> Number:
    """Copy bytes; return the place behind them."""
    # Slices that begin at zero: the compiler need not think of indices below it.
    piece, place = source[start : start + size_bytes], target[at : at + size_bytes]
    for index in range(size_bytes):
        place[index] = piece[index]
    return at + size_bytes


@compiled
def is_text(source: Bytes, start: Number, end: Number, text: Bytes) -> bool:
    """Tell whether the bytes between `start` and `end` are those of `text`."""
    if end - start != text.shape[0]:
        return False
    for index in range(text.shape[0]):  # noqa: SIM110 - compiled
        if source[np.uint64(start + index)] != text[index]:
            return False
    return True
