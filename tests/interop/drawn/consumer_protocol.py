"""What consumers of the classic protocol tell each other (Kafka's `ConsumerProtocol`), as bytes."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

Partitions = Mapping[str, Sequence[int]]
#: versions of either message
VERSIONS = range(4)


def subscription(
    topics: Sequence[str],
    version: int,
    owned: Partitions,
    generation: int = -1,
    rack: str | None = None,
    user_data: bytes | None = None,
) -> bytes:
    """Return what a member wants; of a version the fields that it has."""
    data = struct.pack(">hi", version, len(topics))
    data += b"".join(map(_text, topics)) + _bytes(user_data)
    if version >= 1:
        data += _partitions(owned)
    if version >= 2:
        data += struct.pack(">i", generation)
    if version >= 3:
        data += struct.pack(">h", -1) if rack is None else _text(rack)
    return data


def assignment(partitions: Partitions, version: int, user_data: bytes | None = None) -> bytes:
    """Return what a member is given."""
    return struct.pack(">h", version) + _partitions(partitions) + _bytes(user_data)


def given(data: bytes) -> dict[str, list[int]]:
    """Return the partitions in what a member is given, none if it cannot be read."""
    found: dict[str, list[int]] = {}
    try:
        _, count = struct.unpack_from(">hi", data)
        at = 6
        for _ in range(count):
            (size,) = struct.unpack_from(">h", data, at)
            name = data[at + 2 : at + 2 + size].decode()
            (number,) = struct.unpack_from(">i", data, at + 2 + size)
            found[name] = list(struct.unpack_from(f">{number}i", data, at + 6 + size))
            at += 6 + size + 4 * number
    except (struct.error, UnicodeDecodeError):
        return {}
    return found


def _text(text: str) -> bytes:
    return struct.pack(">h", len(text.encode())) + text.encode()


def _bytes(data: bytes | None) -> bytes:
    return struct.pack(">i", -1) if data is None else struct.pack(">i", len(data)) + data


def _partitions(partitions: Partitions) -> bytes:
    data = struct.pack(">i", len(partitions))
    for topic, numbers in partitions.items():
        data += _text(topic) + struct.pack(f">i{len(numbers)}i", len(numbers), *numbers)
    return data
