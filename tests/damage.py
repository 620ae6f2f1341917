"""Damage to bytes, of the kinds that disks, networks and careless programs do."""

from __future__ import annotations

import random

BAD_BYTES = (0x00, 0x01, 0x7F, 0x80, 0xFE, 0xFF)
BAD_INTEGERS = (
    b"\x7f\xff\xff\xff",
    b"\x80\x00\x00\x00",
    b"\xff\xff\xff\xff",
    b"\x00\x00\x00\x00",
    b"\xff\xff\xff\xff\xff\xff\xff\xff",
    b"\x7f\xff\xff\xff\xff\xff\xff\xff",
)


def damaged(data: bytes, chance: random.Random, first: int = 0) -> bytes:
    """Return the data with one to three faults at or after position `first`."""
    found = bytearray(data)
    for _ in range(chance.randrange(1, 4)):
        if len(found) <= first:
            break
        position = chance.randrange(first, len(found))
        match chance.randrange(7):
            case 0:
                found[position] ^= 1 << chance.randrange(8)
            case 1:
                found[position] = chance.choice(BAD_BYTES)
            case 2:
                del found[position:]
            case 3:
                del found[position : position + chance.randrange(1, 9)]
            case 4:
                found[position:position] = chance.randbytes(chance.randrange(1, 9))
            case 5:
                bad = chance.choice(BAD_INTEGERS)
                found[position : position + len(bad)] = bad
            case _:
                size_bytes = chance.randrange(1, 65)
                source = chance.randrange(first, len(found))
                found[position : position + size_bytes] = found[source : source + size_bytes]
    return bytes(found)
