"""
The two ids of a message: the broker's tells where it is stored, the client's is its unique key.

Both are upper-case hexadecimal. Source: ``MessageDecoder.createMessageId``,
``MessageClientIDSetter``.
"""

from __future__ import annotations

import binascii
import struct
from collections.abc import Sequence

import attrs

from logstore.errors import LogStoreError
from logstore.segments.rocketmq.messages.equal_rows import pack_rows
from logstore.segments.rocketmq.messages.host_address import HostAddress

_PHYSICAL_OFFSET = struct.Struct(">q")
_UNIQUE = struct.Struct(">HIIH")
_HEX = "0123456789ABCDEF"
_IPV4_ID_CHARACTERS, _IPV4_BYTES, _IPV6_BYTES, _PORT_BYTES = 32, 4, 16, 4


class MessageIdError(LogStoreError):
    """A text is no message id; the message says why."""


def offset_message_id(store_host: HostAddress, physical_offset: int) -> str:
    """Return the broker's id of a message: 32 characters, 56 with an IPv6 host."""
    return (store_host.packed + _PHYSICAL_OFFSET.pack(physical_offset)).hex().upper()


def joined_message_ids(store_host: HostAddress, physical_offsets: Sequence[int]) -> str:
    """Return the broker's ids of messages with commas between them, as a batch is answered."""
    packed, count = store_host.packed, len(physical_offsets)
    places: list[bytes | int] = [packed, 0] * count
    places[1::2] = physical_offsets
    return pack_rows(f"{len(packed)}sq", places, count).hex(",", len(packed) + 8).upper()


def parse_offset_message_id(text: str) -> tuple[HostAddress, int]:
    """
    Return (store host, physical offset).

    Raises:
        MessageIdError: it is not 32 or 56 hexadecimal digits.

    """
    data = _digits(text)
    return HostAddress.from_packed(data[:-8]), _PHYSICAL_OFFSET.unpack(data[-8:])[0]


@attrs.frozen
class UniqueKey:
    """
    What a Java client makes its unique keys of.

    `elapsed_ms` counts from the start of the month in the client's time zone.
    """

    address: bytes
    process_id: int
    class_loader_hash: int
    elapsed_ms: int
    counter: int

    def __str__(self) -> str:
        rest = _UNIQUE.pack(
            self.process_id & 0xFFFF,
            self.class_loader_hash & 0xFFFF_FFFF,
            self.elapsed_ms & 0xFFFF_FFFF,
            self.counter & 0xFFFF,
        )
        return (self.address + rest).hex().upper()


def parse_unique_key(text: str) -> UniqueKey:
    """
    Return the parts of a Java client's unique key.

    Raises:
        MessageIdError: it has another length, or other characters; other clients' keys may.

    """
    data = _digits(text)
    return UniqueKey(data[:-12], *_UNIQUE.unpack(data[-12:]))


def java_offset_in(text: str) -> int:
    """
    Return the physical offset in an id, also in one that is none: what Java's decoder finds there.

    It takes all that has not 32 characters for an id with an IPv6 host, passes over what is behind
    it, and takes what is no digit for -1.

    Raises:
        MessageIdError: it is too short.

    """
    digits = [_HEX.find(one) for one in text.upper()]
    pairs = zip(digits[::2], digits[1::2], strict=False)
    data = bytes((high << 4 | low) & 0xFF for high, low in pairs)
    start = (_IPV4_BYTES if len(text) == _IPV4_ID_CHARACTERS else _IPV6_BYTES) + _PORT_BYTES
    if len(data) < start + _PHYSICAL_OFFSET.size:
        raise MessageIdError(f"{text!r} has {len(text)} characters, not 32 or 56")
    offset: int = _PHYSICAL_OFFSET.unpack_from(data, start)[0]
    return offset


def _digits(text: str) -> bytes:
    if len(text) not in (32, 56):
        raise MessageIdError(f"{text!r} has {len(text)} characters, not 32 or 56")
    try:
        return binascii.unhexlify(text)  # bytes.fromhex would pass over spaces
    except ValueError:
        raise MessageIdError(f"{text!r} is not hexadecimal") from None
