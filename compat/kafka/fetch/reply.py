"""The answer to a Fetch, with the stored bytes left in their files."""

from __future__ import annotations

import struct
from itertools import groupby
from typing import TYPE_CHECKING, Protocol

import attrs

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.fetch.sessions import FetchPartition, FetchSession, PartitionKey
from logstore.compat.kafka.framing import I16, I32, uvarint
from logstore.compat.kafka.nodes.placement import NOBODY
from logstore.segment import Extent

if TYPE_CHECKING:
    from logstore.compat.connection import Chunk

_PARTITION_V4 = struct.Struct(">ihqq")  # index, error, high watermark, last stable offset
_PARTITION_V5 = struct.Struct(">ihqqq")  # and log start offset
#: one with nothing to read, aborted transactions null or none; no replica, no bytes, no tags
_NOTHING_V12 = struct.Struct(">ihqqq7s")
_NULL_TAIL, _NONE_TAIL = (aborted + b"\xff\xff\xff\xff\x01\x00" for aborted in (b"\x00", b"\x01"))
_TOP_V7 = struct.Struct(">ihi")  # throttle time, error, session id
_NULL_ABORTED_V4 = I32.pack(-1)
_LEADER = struct.Struct(">ii")
_DIVERGING = struct.Struct(">iq")


@attrs.define(slots=True, eq=False)
class Found:
    """What one partition gave."""

    wanted: FetchPartition
    error: int = 0
    high_watermark: int = -1
    last_stable_offset: int = -1
    log_start_offset: int = -1
    extent: Extent | None = None
    diverging: tuple[int, int] | None = None
    #: the follower in the reader's rack that it shall read from, instead of the leader
    preferred_replica: int = NOBODY
    #: who leads, and in which epoch, for those who have asked somebody or something else
    leader: tuple[int, int] | None = None
    #: null where it was read, or was to be read, without regard to transactions
    aborted: list[tuple[int, int]] | None = None
    #: there is nothing behind the offset that is wanted, and nothing else to tell
    is_settled: bool = False
    #: how that is written
    written: bytes | None = None
    #: 0 for what was read; what the cluster does not know comes behind, ids first
    rank: int = 0

    @property
    def is_news(self) -> bool:
        """Tell whether an incremental answer must name the partition."""
        return (
            (self.extent is not None and self.extent.size_bytes > 0)
            or self.error != 0
            or self.diverging is not None
            or self.preferred_replica != NOBODY
            or self.high_watermark != self.wanted.told_high_watermark
            or self.log_start_offset != self.wanted.told_log_start
        )


class Query(Protocol):
    """What of the request shapes the answer."""

    version: int
    correlation_id: int
    session_id: int
    session: FetchSession | None
    #: where that leader is, empty if nobody must know
    endpoints: bytes

    @property
    def is_incremental(self) -> bool:
        """Tell whether unchanged partitions are left out."""
        ...


def encode(query: Query, found: list[Found], error: int = 0) -> list[Chunk]:
    """Return the whole frame: bytes, with runs of files between them."""
    version, session = query.version, query.session
    if query.is_incremental:
        found = [result for result in found if result.is_news]
    chunks: list[Chunk] = []
    head = _top(query, error)
    topics = _by_topic(found)
    head.append(_count(len(topics), version))
    for topic, results in topics:
        head.append(_topic(topic, version))
        head.append(_count(len(results), version))
        for result in results:
            if result.written is not None:
                head.append(result.written)
            elif result.is_settled:
                result.written = _nothing(query, result)
                head.append(result.written)
            else:
                _encode_partition(query, result, head, chunks)
        if version >= 12:
            head.append(b"\x00")
    if version >= 12:
        head.append(_tags_of_all(query))
    if head:
        chunks.append(b"".join(head))
    _put_length_before(chunks)
    if session is not None:
        _take_note(session, found, is_incremental=query.is_incremental)
    return chunks


def _top(query: Query, error: int) -> list[bytes]:
    """Return what stands before the topics."""
    head = [I32.pack(query.correlation_id)]
    if query.version >= 12:
        head.append(b"\x00")
    if query.version >= 7:
        session_id = 0 if query.session is None else query.session.session_id
        if error == ErrorCode.UNKNOWN_SERVER_ERROR:
            session_id = query.session_id  # as the request had it, whatever became of it
        head.append(_TOP_V7.pack(0, error, session_id))
    else:
        head.append(I32.pack(0))
    return head


def _nothing(query: Query, result: Found) -> bytes:
    """Return a partition's answer that no file bytes are part of."""
    pieces: list[bytes] = []
    _encode_partition(query, result, pieces, [])
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _by_topic(found: list[Found]) -> list[tuple[bytes, list[Found]]]:
    """
    Return neighbours of one topic together; a topic may come more than once, as in Kafka.

    So the answer has the order in which the partitions were served, and limits applied to them.
    """
    if len(found) == 1:
        return [(found[0].wanted.key[0], found)]
    runs = groupby(found, key=lambda result: result.wanted.key[0])
    return [(topic, list(results)) for topic, results in runs]


def _encode_partition(query: Query, result: Found, head: list[bytes], chunks: list[Chunk]) -> None:
    """Put one partition's answer to `head`; where file bytes follow, close it off in `chunks`."""
    version, index = query.version, result.wanted.key[1]
    if (
        version >= 12
        and result.extent is None
        and not result.aborted
        and result.leader is None is result.diverging
        and result.preferred_replica == NOBODY
    ):
        head.append(
            _NOTHING_V12.pack(
                index, result.error, result.high_watermark, result.last_stable_offset,
                result.log_start_offset, _NULL_TAIL if result.aborted is None else _NONE_TAIL,
            )
        )  # fmt: skip
        return
    if version >= 5:
        head.append(
            _PARTITION_V5.pack(
                index, result.error, result.high_watermark, result.last_stable_offset,
                result.log_start_offset,
            )
        )  # fmt: skip
    else:
        head.append(
            _PARTITION_V4.pack(
                index, result.error, result.high_watermark, result.last_stable_offset
            )
        )
    head.append(_aborted(query, result))
    if version >= 11:
        head.append(I32.pack(result.preferred_replica))
    size_bytes = 0 if result.extent is None else result.extent.size_bytes
    head.append(uvarint(size_bytes + 1) if version >= 12 else I32.pack(size_bytes))
    if result.extent is not None and size_bytes:
        chunks.append(b"".join(head))
        chunks.append(result.extent)
        head.clear()
    if version >= 12:
        head.append(_tags(result))


def _aborted(query: Query, result: Found) -> bytes:
    """Return the aborted transactions: null for read_uncommitted, and where reading failed."""
    version, aborted = query.version, result.aborted
    if aborted is None:
        return b"\x00" if version >= 12 else _NULL_ABORTED_V4
    tags = b"\x00" if version >= 12 else b""
    entries = [struct.pack(">qq", *entry) + tags for entry in aborted]
    return _count(len(aborted), version) + b"".join(entries)


def _tags_of_all(query: Query) -> bytes:
    endpoints = query.endpoints
    return b"\x01\x00" + uvarint(len(endpoints)) + endpoints if endpoints else b"\x00"


def _tags(result: Found) -> bytes:
    if result.leader is not None:
        return b"\x01\x01\x09" + _LEADER.pack(*result.leader) + b"\x00"
    if result.diverging is None:
        return b"\x00"
    return b"\x01\x00\x0d" + _DIVERGING.pack(*result.diverging) + b"\x00"


def _topic(topic: bytes, version: int) -> bytes:
    if version >= 13:
        return topic
    return uvarint(len(topic) + 1) + topic if version == 12 else I16.pack(len(topic)) + topic


def _count(count: int, version: int) -> bytes:
    return uvarint(count + 1) if version >= 12 else I32.pack(count)


def _take_note(session: FetchSession, found: list[Found], *, is_incremental: bool) -> None:
    """
    Remember what the session was told; partitions with data are served last next time.

    An answer that opens a session is told whole: its order, with what is unknown last, is kept.
    """
    served: list[PartitionKey] = []
    for result in found:
        wanted = result.wanted
        if result.error:
            wanted.told_high_watermark = -1
        else:
            wanted.told_high_watermark = result.high_watermark
            wanted.told_log_start = result.log_start_offset
        has_data = result.extent is not None and result.extent.size_bytes > 0
        if has_data or not is_incremental:
            served.append(wanted.key)
    for key in served:
        session.rotate(key)


def _put_length_before(chunks: list[Chunk]) -> None:
    """Put the length of all before the bytes that come before the first file run."""
    first = chunks[0]
    assert isinstance(first, bytes), "the header comes before any file run"
    sizes = [chunk.size_bytes if isinstance(chunk, Extent) else len(chunk) for chunk in chunks]
    chunks[0] = I32.pack(sum(sizes)) + first
