"""A fetch request, read: what it wants, and how the answer may be."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import attrs

from logstore.compat.kafka.fetch.sessions import (
    FetchPartition,
    FetchSession,
    PartitionKey,
    stirred,
)
from logstore.compat.kafka.framing import Reader
from logstore.compat.kafka.registry import RawRequest

if TYPE_CHECKING:
    from logstore.compat.kafka.fetch.reply import Found
    from logstore.compat.kafka.security.listener import Listener

READ_COMMITTED = 1
#: the first version that may read from followers, and says in which rack it is (KIP-392)
FROM_FOLLOWERS_SINCE = 11
_ROW_V4 = struct.Struct(">iqi")
_ROW_V5 = struct.Struct(">iqqi")
_ROW_V9 = struct.Struct(">iiqqi")
_ROW_V12_ALONE = struct.Struct(">iiqiqi")
_ROW_V12 = struct.Struct(">iiqiqiB")  # and how many tags follow


@attrs.define(slots=True, eq=False)
class Query:
    """One fetch request, read."""

    version: int
    correlation_id: int
    max_wait_ms: int
    bytes_min: int
    bytes_max: int
    isolation: int
    session_id: int
    session_epoch: int
    wanted: list[FetchPartition]
    forgotten: list[PartitionKey]
    #: where in the request the rack stands, behind everything else
    rack_position: int = 0
    #: where the reader is; empty where it does not say
    rack: bytes = b""
    #: where the client came in; None where it is too old to ask
    listener: Listener | None = None
    session: FetchSession | None = None
    #: topics, as the request names them, that the client may read; None where it may read all
    may_read: Callable[[bytes], bool] | None = None
    #: who leads what is asked for in vain, and where those nodes are
    leaders: set[int] = attrs.field(factory=set[int])
    endpoints: bytes = b""
    #: what the fetch before, which this one repeats, found: of each partition, None where it counts
    #: no more
    earlier: Sequence[Found | None] = ()
    #: keeps what this one finds, for the next one
    keep: Callable[[list[Found]], None] | None = None

    @property
    def is_read_committed(self) -> bool:
        """Tell whether transactions that are open or aborted are left out."""
        return self.isolation == READ_COMMITTED

    @property
    def is_incremental(self) -> bool:
        """Tell whether unchanged partitions are left out of the answer."""
        return self.session is not None and self.session_epoch > 0

    @property
    def all_wanted(self) -> list[FetchPartition]:
        """What the request or its session wants."""
        return self.wanted if self.session is None else list(self.session.partitions.values())

    def news_among(self, wanted: list[FetchPartition]) -> list[FetchPartition]:
        """Return what is to be looked at: not what the fetcher knows, if that may be left out."""
        is_open = self.may_read is None and 0 <= self.isolation <= READ_COMMITTED
        return stirred(wanted) if is_open and self.is_incremental else wanted


@attrs.frozen
class Rows:
    """Where in a request the partitions of a topic stand, and which of all wanted they are."""

    topic: bytes
    start: int
    first: int
    count: int


def row_of(version: int) -> struct.Struct:
    """Return how a version writes a partition without tags."""
    if version >= 12:
        return _ROW_V12
    return _ROW_V9 if version >= 9 else _ROW_V5 if version >= 5 else _ROW_V4


def epoch_position(version: int) -> int:
    """Return where in the body of a request, from version 7 on, the session's epoch stands."""
    return 21 if version <= 14 else 17  # until then the replica that asks stood in front


def wanted_in(version: int, topic: bytes, row: tuple[int, ...]) -> FetchPartition:
    """Return what a partition's fields say."""
    if version >= 12:
        index, epoch, offset, fetched_epoch, _, size, _ = row
        return FetchPartition((topic, index), offset, size, epoch, fetched_epoch)
    if version >= 9:
        index, epoch, offset, _, size = row
        return FetchPartition((topic, index), offset, size, epoch)
    if version >= 5:
        index, offset, _, size = row
    else:
        index, offset, size = row
    return FetchPartition((topic, index), offset, size)


def parse(request: RawRequest, listener: Listener, rows: list[Rows] | None = None) -> Query:
    """
    Read the request; only tags that say nothing to a lone broker are skipped.

    `rows` gets where the partitions stand, but for those of topics that have tags.
    """
    version = request.version
    reader = Reader(request.data, request.position, is_flexible=request.is_flexible)
    if version <= 14:
        reader.i32()
    max_wait_ms, bytes_min, bytes_max = reader.i32(), reader.i32(), reader.i32()
    isolation = reader.i8()
    session_id, session_epoch = (reader.i32(), reader.i32()) if version >= 7 else (0, -1)
    wanted: list[FetchPartition] = []
    for _ in range(reader.count()):
        topic = bytes(reader.take(16)) if version >= 13 else reader.text()
        count = reader.count()
        found = Rows(topic, reader.position, len(wanted), count)
        if _parse_plain_partitions(reader, version, found, wanted):
            if rows is not None:
                rows.append(found)
        else:
            for _ in range(count):
                wanted.append(_parse_partition(reader, topic, version))
                reader.tags()
        reader.tags()
    forgotten: list[PartitionKey] = []
    if version >= 7:
        for _ in range(reader.count()):
            topic = bytes(reader.take(16)) if version >= 13 else reader.text()
            forgotten += [(topic, reader.i32()) for _ in range(reader.count())]
            reader.tags()
    rack_position = reader.position
    rack = reader.text() if version >= FROM_FOLLOWERS_SINCE else b""
    reader.tags()
    return Query(
        version, request.correlation_id, max_wait_ms, bytes_min, bytes_max, isolation,
        session_id, session_epoch, wanted, forgotten, rack_position, rack, listener,
    )  # fmt: skip


def _parse_plain_partitions(
    reader: Reader, version: int, rows: Rows, wanted: list[FetchPartition]
) -> bool:
    """Read the partitions of a topic at once; False, and nothing was done, if any has a tag."""
    row, start = row_of(version), reader.position
    end = start + rows.count * row.size
    if end > len(reader.data):
        return False
    found = list(row.iter_unpack(reader.data[start:end]))
    if version >= 12 and any(one[6] for one in found):
        return False
    topic = rows.topic
    if version >= 12:
        wanted += [
            FetchPartition((topic, index), offset, size, epoch, fetched_epoch)
            for index, epoch, offset, fetched_epoch, _, size, _ in found
        ]
    else:
        wanted += [wanted_in(version, topic, one) for one in found]
    reader.position = end
    return True


def _parse_partition(reader: Reader, topic: bytes, version: int) -> FetchPartition:
    """Read one whose tags, if it may have any, follow."""
    row = row_of(version)
    if version < 12:
        return wanted_in(version, topic, row.unpack(reader.take(row.size)))
    index, epoch, offset, fetched_epoch, _, size = _ROW_V12_ALONE.unpack(reader.take(32))
    return FetchPartition((topic, index), offset, size, epoch, fetched_epoch)
