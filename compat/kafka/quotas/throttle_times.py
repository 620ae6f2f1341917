"""
Where an answer says for how long its client is not read from.

In most it is the first field. What has no such field is throttled without a word.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.kafka.connection import API_VERSIONS, Throttled
from logstore.compat.kafka.framing import I32, Reader, read_uvarint, skip_tags

if TYPE_CHECKING:
    from logstore.compat.connection import Chunk

_PRODUCE, _OFFSET_DELETE = 0, 47
#: the first version that says it, of those that have not always done so
_SINCE = {
    2: 2, 3: 3, 8: 3, 9: 3, 10: 1, 11: 2, 12: 1, 13: 1, 14: 1, 15: 1, 16: 1, API_VERSIONS: 1,
}  # fmt: skip
#: SASL, transactions' markers, the quorum, and states of share groups: among brokers, or older
_NEVER = frozenset((17, 27, 36, 55, 83, 84, 85, 86, 87))
#: delegation tokens
_LAST = frozenset((38, 39, 40, 41))
_HEADER_BYTES = 8  # with the length in front
_ENDPOINTS_SINCE, _IDS_SINCE = 10, 13  # of Produce
#: of a partition of a Produce: index, error, base offset, time, start of the log
_PRODUCED_BYTES = 4 + 2 + 8 + 8 + 8


def with_throttle(
    api_key: int, version: int, chunks: list[Chunk], throttle_ms: int, *, is_flexible: bool
) -> Throttled:
    """Return an answer that tells its client to keep still; no run of a file is in it."""
    frame = bytearray(b"".join(chunk for chunk in chunks if isinstance(chunk, bytes)))
    if frame and api_key not in _NEVER and version >= _SINCE.get(api_key, 0):
        position = _position(api_key, version, memoryview(bytes(frame)), is_flexible=is_flexible)
        I32.pack_into(frame, position, throttle_ms)
    return Throttled([bytes(frame)] if frame else [], throttle_ms)


def _position(api_key: int, version: int, frame: memoryview, *, is_flexible: bool) -> int:
    if api_key == API_VERSIONS:
        return _after_ranges(frame, is_flexible=is_flexible)
    if api_key == _PRODUCE and version >= _ENDPOINTS_SINCE:
        return _after_topics(frame, version)
    if api_key in _LAST or api_key == _PRODUCE:
        return len(frame) - (5 if is_flexible else 4)
    return _HEADER_BYTES + is_flexible + (2 if api_key == _OFFSET_DELETE else 0)


def _after_ranges(frame: memoryview, *, is_flexible: bool) -> int:
    """Return the position in an ApiVersions, whose header is always the old one."""
    start = _HEADER_BYTES + 2
    if is_flexible:
        count, start = read_uvarint(frame, start)
        return start + (count - 1) * 7
    ranges: int = I32.unpack_from(frame, start)[0]
    return start + 4 + ranges * 6


def _after_topics(frame: memoryview, version: int) -> int:
    """Return the position in a Produce, behind which may stand where nodes are."""
    reader = Reader(frame, _HEADER_BYTES + 1, is_flexible=True)
    for _ in range(reader.length(4)):
        reader.take(16) if version >= _IDS_SINCE else reader.string()
        for _ in range(reader.length(4)):
            reader.take(_PRODUCED_BYTES)
            for _ in range(reader.length(4)):
                reader.i32()
                reader.string()
                reader.position = skip_tags(frame, reader.position)
            reader.string()
            reader.position = skip_tags(frame, reader.position)
        reader.position = skip_tags(frame, reader.position)
    return reader.position
