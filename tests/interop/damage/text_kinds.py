"""Kinds of damage to a small file that is replaced as a whole, most of them of text."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

#: returns what the file holds then; None if it is missing
Damage = Callable[[bytes, Random], bytes | None]


def flip(data: bytes, chance: Random) -> bytes:
    """One to three bits are wrong."""
    changed = bytearray(data)
    for _ in range(chance.choice((1, 1, 3))):
        changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
    return bytes(changed)


def blank(data: bytes, chance: Random) -> bytes:
    """Zeros stand in it, or a page of them at its end, as a power loss leaves it."""
    start = chance.choice((0, chance.randrange(len(data))))
    return data[:start] + bytes(len(data) - start)


DAMAGES: dict[str, Damage] = {
    "none": lambda data, _: data,
    "missing": lambda _, __: None,
    "empty": lambda _, __: b"",
    "zeros": lambda data, _: bytes(len(data)),
    "cut": lambda data, chance: data[: chance.randrange(len(data))],
    "flip": flip,
    "blank": blank,
    "garbage": lambda data, chance: chance.randbytes(len(data)),
    "twice": lambda data, chance: data + data[: chance.randrange(len(data))],
    "crlf": lambda data, _: data.replace(b"\n", b"\r\n"),
    "space": lambda data, _: data + b"\n \n",
}
