"""
XXH3 in its 64-bit form, with the usual secret and seed 0.

Kafka's coordinators hash with it what a group subscribes to. It is asked for when topics change,
not on any hot path.

Source: the specification and ``xxhash.h`` of https://github.com/Cyan4973/xxHash.
"""

from __future__ import annotations

import struct

_MASK = 0xFFFF_FFFF_FFFF_FFFF
_PRIME32_1, _PRIME32_2, _PRIME32_3 = 0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D
_PRIME64_1, _PRIME64_2 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F
_PRIME64_3, _PRIME64_4 = 0x165667B19E3779F9, 0x85EBCA77C2B2AE63
_PRIME64_5 = 0x27D4EB2F165667C5
_PRIME_MX1, _PRIME_MX2 = 0x165667919E3779F9, 0x9FB21C651E98DF25
_SECRET = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671f"
    "cb79e64eccc0e578825ad07dccff7221b8084674f743248ee03590e6813a264c"
    "3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364"
    "eac5ac8334d3ebc3c581a0fffa1363eb170ddd51b7f0da49d316552629d4689e"
    "2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e"
)
_SHORT_MAX, _MIDDLE_MAX = 128, 240
_STRIPE_BYTES = 64
_STRIPES_A_BLOCK = (len(_SECRET) - _STRIPE_BYTES) // 8
_LANES = struct.Struct("<8Q")


def xxh3_64(data: bytes) -> int:
    """Return the hash as a signed number, as Java has it."""
    if len(data) <= 16:
        hashed = _tiny(data)
    elif len(data) <= _SHORT_MAX:
        hashed = _short(data)
    elif len(data) <= _MIDDLE_MAX:
        hashed = _middle(data)
    else:
        hashed = _long(data)
    return hashed - (1 << 64) if hashed >> 63 else hashed


def _word(data: bytes, position: int, size_bytes: int = 8) -> int:
    return int.from_bytes(data[position : position + size_bytes], "little")


def _key(position: int) -> int:
    return _word(_SECRET, position)


def _folded(one: int, other: int) -> int:
    product = one * other
    return (product & _MASK) ^ (product >> 64)


def _mixed(data: bytes, position: int, key: int) -> int:
    return _folded(_word(data, position) ^ _key(key), _word(data, position + 8) ^ _key(key + 8))


def _avalanche(hashed: int) -> int:
    hashed &= _MASK
    hashed = (hashed ^ hashed >> 37) * _PRIME_MX1 & _MASK
    return hashed ^ hashed >> 32


def _avalanche_of_xxh64(hashed: int) -> int:
    hashed = (hashed ^ hashed >> 33) * _PRIME64_2 & _MASK
    hashed = (hashed ^ hashed >> 29) * _PRIME64_3 & _MASK
    return hashed ^ hashed >> 32


def _rotated(word: int, bits: int) -> int:
    return (word << bits | word >> (64 - bits)) & _MASK


def _tiny(data: bytes) -> int:
    size = len(data)
    if size > 8:
        low = _word(data, 0) ^ _key(24) ^ _key(32)
        high = _word(data, size - 8) ^ _key(40) ^ _key(48)
        swapped = int.from_bytes(low.to_bytes(8, "little"), "big")
        return _avalanche(size + swapped + high + _folded(low, high))
    if size > 3:
        both = _word(data, size - 4, 4) + (_word(data, 0, 4) << 32)
        hashed = both ^ _key(8) ^ _key(16)
        hashed ^= _rotated(hashed, 49) ^ _rotated(hashed, 24)
        hashed = hashed * _PRIME_MX2 & _MASK
        hashed = (hashed ^ (hashed >> 35) + size) * _PRIME_MX2 & _MASK
        return hashed ^ hashed >> 28
    if size:
        both = data[0] << 16 | data[size >> 1] << 24 | data[-1] | size << 8
        return _avalanche_of_xxh64(both ^ _word(_SECRET, 0, 4) ^ _word(_SECRET, 4, 4))
    return _avalanche_of_xxh64(_key(56) ^ _key(64))


def _short(data: bytes) -> int:
    """Mix 16 bytes from the front and 16 from the back, until they meet."""
    size = len(data)
    hashed = size * _PRIME64_1
    for turn in range((size - 1) // 32 + 1):
        hashed += _mixed(data, 16 * turn, 32 * turn)
        hashed += _mixed(data, size - 16 * (turn + 1), 32 * turn + 16)
    return _avalanche(hashed)


def _middle(data: bytes) -> int:
    size = len(data)
    hashed = size * _PRIME64_1
    for turn in range(8):
        hashed += _mixed(data, 16 * turn, 16 * turn)
    hashed = _avalanche(hashed)
    for turn in range(8, size // 16):
        hashed += _mixed(data, 16 * turn, 16 * (turn - 8) + 3)
    return _avalanche(hashed + _mixed(data, size - 16, 136 - 17))


def _long(data: bytes) -> int:
    """Take the bytes stripe by stripe into eight lanes, which are scrambled after each block."""
    lanes = [
        _PRIME32_3, _PRIME64_1, _PRIME64_2, _PRIME64_3,
        _PRIME64_4, _PRIME32_2, _PRIME64_5, _PRIME32_1,
    ]  # fmt: skip
    size = len(data)
    for number in range((size - 1) // _STRIPE_BYTES):
        turn = number % _STRIPES_A_BLOCK
        _accumulate(lanes, data, number * _STRIPE_BYTES, 8 * turn)
        if turn == _STRIPES_A_BLOCK - 1:
            keys = _LANES.unpack_from(_SECRET, len(_SECRET) - _STRIPE_BYTES)
            for lane, key in enumerate(keys):
                word = lanes[lane]
                lanes[lane] = (word ^ word >> 47 ^ key) * _PRIME32_1 & _MASK
    _accumulate(lanes, data, size - _STRIPE_BYTES, len(_SECRET) - _STRIPE_BYTES - 7)
    hashed = size * _PRIME64_1
    for turn in range(4):
        one, other = lanes[2 * turn], lanes[2 * turn + 1]
        hashed += _folded(one ^ _key(11 + 16 * turn), other ^ _key(19 + 16 * turn))
    return _avalanche(hashed)


def _accumulate(lanes: list[int], data: bytes, position: int, key_position: int) -> None:
    words = _LANES.unpack_from(data, position)
    keys = _LANES.unpack_from(_SECRET, key_position)
    for lane, (word, key) in enumerate(zip(words, keys, strict=True)):
        keyed = word ^ key
        lanes[lane ^ 1] = (lanes[lane ^ 1] + word) & _MASK
        lanes[lane] = (lanes[lane] + (keyed & 0xFFFF_FFFF) * (keyed >> 32)) & _MASK
