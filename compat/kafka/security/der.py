"""
DER, in which certificates and keys are written: elements of tag, length and content.

Source: X.690.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from logstore.errors import LogStoreError

SEQUENCE = 0x30


class DerError(LogStoreError, ValueError):
    """Bytes are no DER, or not that of what they ought to be."""


class Element(NamedTuple):
    """One element: its tag, where its content is, and all of it."""

    tag: int
    content: bytes
    whole: bytes


def elements(data: bytes) -> Iterator[Element]:
    """
    Yield what stands side by side in `data`.

    Raises:
        DerError: an element is cut short, or has no definite length.

    """
    position = 0
    while position < len(data):
        start = position
        if position + 2 > len(data):
            raise DerError("an element that is cut short")
        tag, size_bytes = data[position], data[position + 1]
        position += 2
        if size_bytes & 0x80:
            count = size_bytes & 0x7F
            if not 1 <= count <= 4 or position + count > len(data):
                raise DerError("an element of no definite length")
            size_bytes = int.from_bytes(data[position : position + count], "big")
            position += count
        end = position + size_bytes
        if end > len(data):
            raise DerError("an element that is longer than what it stands in")
        yield Element(tag, data[position:end], data[start:end])
        position = end
