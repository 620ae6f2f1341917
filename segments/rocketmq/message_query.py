"""
Finding messages otherwise than by queue offset: by key and time, by place, by id.

The index knows hashes only. As Java, the search answers with whatever stands where the index
points; a key of equal hash is found too, and the asker compares keys himself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from logstore.segment import Extent
    from logstore.segments.rocketmq.get_message import ReadableCommitLog

__all__ = ["QueryMessageResult", "QueryableIndex", "extent_at", "query_message"]

_ROUNDS_MAX = 3


class QueryableIndex(Protocol):
    """What a search by key needs of the index."""

    def query(self, topic: str, key: str, count_max: int, begin_ms: int, end_ms: int) -> list[int]:
        """Return physical offsets of messages whose key has the hash, in a range of times."""
        ...


class QueryMessageResult:
    """Messages found: their bytes, in the order of the commit log (``QueryMessageResult``)."""

    __slots__ = ("pieces",)

    def __init__(self, pieces: list[Extent]) -> None:
        self.pieces = pieces

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
    looked for, three times at most.
    """
    raise NotImplementedError


def extent_at(
    commit_log: ReadableCommitLog, physical_offset: int, size_bytes: int | None = None
) -> Extent | None:
    """
    Return the bytes of the message that starts at `physical_offset`, None if none can.

    Its length is read from its first field unless `size_bytes` says it
    (``selectOneMessageByOffset``). That a message stands there is not checked.
    """
    raise NotImplementedError
