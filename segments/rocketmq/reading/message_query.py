"""
Finding messages otherwise than by queue offset: by key and time, by place, by id.

The index knows hashes only. As Java, the search answers with whatever stands where the index
points; a key of equal hash is found too, and the asker compares keys himself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from logstore.segments.rocketmq.messages.corrupt_message import CorruptMessageError
from logstore.segments.rocketmq.messages.message import Message, decode_message

if TYPE_CHECKING:
    from logstore.segment import Extent
    from logstore.segments.rocketmq.reading.get_message import ReadableCommitLog

__all__ = ["QueryMessageResult", "QueryableIndex", "extent_at", "message_at", "query_message"]

_ROUNDS_MAX = 3


class FoundPlaces(Protocol):
    """What the index found (``QueryOffsetResult``)."""

    @property
    def physical_offsets(self) -> list[int]:
        """Where messages stand whose key has the hash."""
        ...

    @property
    def last_update_timestamp_ms(self) -> int:
        """Store time of the newest message in the index."""
        ...

    @property
    def last_update_physical_offset(self) -> int:
        """Place of the newest message in the index."""
        ...


class QueryableIndex(Protocol):
    """What a search by key needs of the index."""

    def query(
        self, topic: str, key: str, count_max: int, begin_ms: int, end_ms: int
    ) -> FoundPlaces:
        """Return where messages stand whose key has the hash, in a range of store times."""
        ...


class QueryMessageResult:
    """
    Messages found: their bytes, in the order of the commit log (``QueryMessageResult``).

    With the time and place up to which the index knows messages.
    """

    __slots__ = ("last_update_physical_offset", "last_update_timestamp_ms", "pieces")

    def __init__(self) -> None:
        self.pieces: list[Extent] = []
        self.last_update_timestamp_ms = 0
        self.last_update_physical_offset = 0

    @property
    def size_bytes(self) -> int:
        """Length of all messages."""
        return sum(piece.size_bytes for piece in self.pieces)

    def read(self) -> bytes:
        """Return all messages, one after the other."""
        return b"".join(piece.read() for piece in self.pieces)


def query_message(
    index: QueryableIndex,
    commit_log: ReadableCommitLog,
    topic: str,
    key: str,
    count_max: int,
    begin_ms: int,
    end_ms: int,
) -> QueryMessageResult:
    """
    Return the messages of `topic` with `key` (or unique key) stored in ``[begin_ms, end_ms]``.

    The newest `count_max` that the index knows. If none of them can be read, older ones are
    looked for, three times in all at most.
    """
    result = QueryMessageResult()
    last_ms = end_ms
    for _ in range(_ROUNDS_MAX):
        answer = index.query(topic, key, count_max, begin_ms, last_ms)
        if not answer.physical_offsets:
            break
        result.last_update_timestamp_ms = answer.last_update_timestamp_ms
        result.last_update_physical_offset = answer.last_update_physical_offset
        places = sorted(answer.physical_offsets)
        last_ms = _store_timestamp(commit_log, places[0], last_ms)
        found = (extent_at(commit_log, place) for place in places)
        result.pieces = [piece for piece in found if piece is not None and piece.size_bytes]
        if result.pieces or last_ms < begin_ms:
            break
    return result


def extent_at(
    commit_log: ReadableCommitLog, physical_offset: int, size_bytes: int | None = None
) -> Extent | None:
    """
    Return the bytes of the message that starts at `physical_offset`, None if none can.

    Its length is read from its first field unless `size_bytes` says it
    (``selectOneMessageByOffset``). That a message stands there is not checked: what is read as its
    length may be 0.
    """
    found_bytes = _size_at(commit_log, physical_offset, size_bytes)
    return None if found_bytes is None else commit_log.extent(physical_offset, found_bytes)


def _size_at(
    commit_log: ReadableCommitLog, physical_offset: int, size_bytes: int | None
) -> int | None:
    """Return the length of the message that starts at `physical_offset`, None if none can."""
    end = commit_log.max_physical_offset
    if not commit_log.min_physical_offset <= physical_offset <= end - 4:
        return None
    if size_bytes is None:
        size = commit_log.read(physical_offset, 4)
        if len(size) < 4:
            return None
        size_bytes = int.from_bytes(size, "big", signed=True)
    file_size = commit_log.file_size_bytes
    is_in_file = physical_offset % file_size + size_bytes <= file_size
    if size_bytes < 0 or physical_offset + size_bytes > end or not is_in_file:
        return None
    return size_bytes


def message_at(
    commit_log: ReadableCommitLog, physical_offset: int, size_bytes: int | None = None
) -> Message | None:
    """
    Return the message that starts at `physical_offset`, None if none does.

    (``lookMessageByOffset``)
    """
    found_bytes = _size_at(commit_log, physical_offset, size_bytes)
    if found_bytes is None:
        return None
    try:
        data = commit_log.read(physical_offset, found_bytes)
        message = decode_message(data, verify_crc=False)
    except CorruptMessageError:
        return None
    return message if message.physical_offset == physical_offset else None


def _store_timestamp(commit_log: ReadableCommitLog, physical_offset: int, otherwise_ms: int) -> int:
    """Return the store time of a message, or what was known before if it cannot be read."""
    message = message_at(commit_log, physical_offset)
    return otherwise_ms if message is None else message.store_timestamp_ms
