"""
Fetches that are like the one before on their connection, but for a few offsets.

A reader asks for the same partitions again and again. Of a request that is as long as the last one
only what may differ is read: the epoch of its session, and the partitions' rows. Clients that keep
no session, as librdkafka, name all their partitions each time: where those are many the rows that
differ are found by comparing halves; and where there was nothing to read, and the log is as it was,
the answer is at hand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.kafka.fetch.query import Query, Rows, epoch_position, parse, row_of, wanted_in
from logstore.compat.kafka.framing import I32

if TYPE_CHECKING:
    from collections.abc import Iterable

    from logstore.compat.kafka.fetch.reply import Found
    from logstore.compat.kafka.fetch.sessions import FetchPartition
    from logstore.compat.kafka.registry import RawRequest
    from logstore.compat.kafka.security.listener import Listener

#: fewer partitions are read as fast as they are compared
_COUNT_MIN = 16
_NO_SESSION = -1


class Repeats:
    """What one connection's last fetch was, and what it found."""

    __slots__ = ("_body", "_found", "_query", "_rows")

    def __init__(self) -> None:
        self._query: Query | None = None
        self._body = b""
        self._rows: list[Rows] = []
        self._found: list[Found | None] = []

    def parse(self, request: RawRequest, listener: Listener) -> Query:
        """
        Read a request; its `earlier` is what the one before, if it repeats that, has found.

        What was returned for the one before, which is answered, may be returned once more.
        """
        before, start = self._query, request.position
        if (
            before is not None
            and request.version == before.version
            and len(request.data) - start == len(self._body)
            and self._take_changes(before, bytes(request.data[start:]))
        ):
            before.correlation_id = request.correlation_id
            before.session = None
            if before.leaders:
                before.leaders, before.endpoints = set(), b""
            if before.keep is not None:
                before.earlier, self._found = self._found, []
            return before
        rows: list[Rows] = []
        query = parse(request, listener, rows)
        self._note(query, bytes(request.data[start:]), start, rows)
        return query

    def _note(self, query: Query, body: bytes, start: int, rows: list[Rows]) -> None:
        """Keep a request which others like it may follow."""
        wanted = query.wanted
        self._query, self._found = None, []
        if sum([one.count for one in rows]) != len(wanted) or query.forgotten:
            return
        if query.session_epoch == _NO_SESSION:
            if len(wanted) >= _COUNT_MIN:
                if len({one.key for one in wanted}) < len(wanted):
                    return
                query.keep = self._keep
        elif query.session_epoch <= 0:
            return  # it opens a session, which the next one names
        self._query, self._body = query, body
        self._rows = [Rows(one.topic, one.start - start, one.first, one.count) for one in rows]

    def _keep(self, found: list[Found]) -> None:
        """Keep what was found where nothing is to be read, if it is still in the order asked."""
        assert self._query is not None, "kept for a request that was forgotten"
        self._found = [
            result if result.is_settled and result.wanted is wanted else None
            for result, wanted in zip(found, self._query.wanted, strict=True)
        ]

    def _take_changes(self, query: Query, body: bytes) -> bool:
        """Read what is new in the rows of a request; False if something else is new, too."""
        before, version, row = self._body, query.version, row_of(query.version)
        position, epoch = 0, query.session_epoch
        if epoch != _NO_SESSION:
            end = epoch_position(version)
            epoch = I32.unpack_from(body, end)[0]
            if epoch <= 0 or body[:end] != before[:end]:
                return False
            position = end + I32.size
        changed: list[tuple[int, FetchPartition]] = []
        for rows in self._rows:
            if body[position : rows.start] != before[position : rows.start]:
                return False
            numbers: Iterable[int] = range(rows.count)
            if query.keep is not None:
                numbers = _differing(body, before, rows.start, rows.count, row.size)
            for number in numbers:
                fields = row.unpack_from(body, rows.start + number * row.size)
                wanted = wanted_in(version, rows.topic, fields)
                place = rows.first + number
                has_tags = version >= 12 and fields[6]
                if has_tags or (query.keep and wanted.key != query.wanted[place].key):
                    return False
                changed.append((place, wanted))
            position = rows.start + rows.count * row.size
        if body[position:] != before[position:]:
            return False
        self._body, query.session_epoch = body, epoch
        for place, wanted in changed:
            query.wanted[place] = wanted  # which was never looked at: what was found is not used
        return True


def _differing(one: bytes, other: bytes, start: int, count: int, row_bytes: int) -> list[int]:
    """Return the numbers of the rows that are not the same."""
    found: list[int] = []
    parts = [(0, count)]
    while parts:
        first, size = parts.pop()
        begin = start + first * row_bytes
        end = begin + size * row_bytes
        if one[begin:end] == other[begin:end]:
            continue
        if size == 1:
            found.append(first)
        else:
            half = size // 2
            parts += [(first, half), (first + half, size - half)]
    return found
