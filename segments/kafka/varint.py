"""
Variable-length integers as Kafka writes them: little groups of seven bits, lowest first.

Signed ones are zig-zagged (0, -1, 1, -2 become 0, 1, 2, 3), so that small negative numbers stay
short. A *varint* carries 32 bits in at most five bytes, a *varlong* 64 bits in at most ten. As in
Java, bits of the last byte that do not fit are dropped; a last byte that asks for yet another one
is an error.

Worked example, 300: zig-zag 600 = 0b100_1011000, so ``d8 04``: 0x58 with the "more" bit, then 4.

Source: ``org.apache.kafka.common.utils.ByteUtils``.
"""

from __future__ import annotations

from collections.abc import Sequence

from logstore.errors import LogStoreError

_VARINT_BYTES_MAX = 5
_VARLONG_BYTES_MAX = 10
_ONE_BYTE = tuple(bytes((value,)) for value in range(128))


class VarintError(LogStoreError, ValueError):
    """A variable-length integer runs on too long, out of its buffer, or out of its range."""


def encode_unsigned_varint(value: int) -> bytes:
    """Return `value` in 0..2^32-1 as one to five bytes."""
    if 0 <= value < 128:
        return _ONE_BYTE[value]
    if not 0 <= value < 1 << 32:
        raise VarintError(f"{value} is no unsigned 32-bit integer")
    return _encode(value)


def encode_unsigned_varlong(value: int) -> bytes:
    """Return `value` in 0..2^64-1 as one to ten bytes."""
    if 0 <= value < 128:
        return _ONE_BYTE[value]
    if not 0 <= value < 1 << 64:
        raise VarintError(f"{value} is no unsigned 64-bit integer")
    return _encode(value)


def encode_varint(value: int) -> bytes:
    """Return the signed 32-bit `value`, zig-zagged, as one to five bytes."""
    if -64 <= value < 64:
        return _ONE_BYTE[(value << 1) ^ (value >> 31)]
    if not -(1 << 31) <= value < 1 << 31:
        raise VarintError(f"{value} is no signed 32-bit integer")
    return _encode((value << 1) ^ (value >> 31))


def encode_varlong(value: int) -> bytes:
    """Return the signed 64-bit `value`, zig-zagged, as one to ten bytes."""
    if -64 <= value < 64:
        return _ONE_BYTE[(value << 1) ^ (value >> 63)]
    if not -(1 << 63) <= value < 1 << 63:
        raise VarintError(f"{value} is no signed 64-bit integer")
    return _encode((value << 1) ^ (value >> 63))


def wrapped_long(value: int) -> int:
    """
    Return the 64-bit integer that Java's arithmetic makes of `value`.

    Deltas of times that are far apart run over; there and back they come out right.
    """
    if -(1 << 63) <= value < 1 << 63:
        return value
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)


def decode_unsigned_varint(buffer: Sequence[int], position: int) -> tuple[int, int]:
    """Return (value in 0..2^32-1, position after it). Raises VarintError."""
    value, position = _decode(buffer, position, _VARINT_BYTES_MAX)
    return value & 0xFFFF_FFFF, position


def decode_unsigned_varlong(buffer: Sequence[int], position: int) -> tuple[int, int]:
    """Return (value in 0..2^64-1, position after it). Raises VarintError."""
    value, position = _decode(buffer, position, _VARLONG_BYTES_MAX)
    return value & 0xFFFF_FFFF_FFFF_FFFF, position


def decode_small_varint(data: bytes | memoryview, position: int) -> tuple[int, int]:
    """
    Return what :func:`decode_varint` does; the integers of one and two bytes, most of all, faster.

    Raises :class:`VarintError` as that does, or IndexError where `data` ends.
    """
    byte = data[position]
    if byte < 128:
        return (byte >> 1) ^ -(byte & 1), position + 1
    second = data[position + 1]
    if second < 128:
        value = byte & 127 | second << 7
        return (value >> 1) ^ -(value & 1), position + 2
    return decode_varint(data, position)


def decode_varint(buffer: Sequence[int], position: int) -> tuple[int, int]:
    """Return (signed 32-bit value, position after it). Raises VarintError."""
    value, position = _decode(buffer, position, _VARINT_BYTES_MAX)
    value &= 0xFFFF_FFFF
    return (value >> 1) ^ -(value & 1), position


def decode_varlong(buffer: Sequence[int], position: int) -> tuple[int, int]:
    """Return (signed 64-bit value, position after it). Raises VarintError."""
    value, position = _decode(buffer, position, _VARLONG_BYTES_MAX)
    value &= 0xFFFF_FFFF_FFFF_FFFF
    return (value >> 1) ^ -(value & 1), position


def _encode(value: int) -> bytes:
    encoded = bytearray()
    while value >= 128:
        encoded.append(value & 127 | 128)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def _decode(buffer: Sequence[int], position: int, bytes_max: int) -> tuple[int, int]:
    """Return (unmasked value, position after it) of at most `bytes_max` bytes at `position`."""
    try:
        byte = buffer[position]
        if byte < 128:
            return byte, position + 1
        value = byte & 127
        for count in range(1, bytes_max):
            byte = buffer[position + count]
            value |= (byte & 127) << 7 * count
            if byte < 128:
                return value, position + count + 1
    except IndexError:
        raise VarintError(f"the buffer ends inside the integer at {position}") from None
    raise VarintError(f"the integer at {position} has more than {bytes_max} bytes")
