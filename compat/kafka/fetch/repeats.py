"""
Fetches without a session that repeat the one before, but for a few offsets.

Clients that keep no session, as librdkafka, name all their partitions each time. Of a request that
is as long as the last one of the connection only the rows that differ are read, found by comparing
halves; and where there was nothing to read, and the log is as it was, the answer is at hand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from logstore.compat.kafka.fetch.query import Query, Rows, parse, row_of, wanted_in

if TYPE_CHECKING:
    from logstore.compat.kafka.fetch.reply import Found
    from logstore.compat.kafka.fetch.sessions import FetchPartition
    from logstore.compat.kafka.registry import RawRequest
    from logstore.compat.kafka.security.listener import Listener

#: fewer partitions are read as fast as they are compared
_COUNT_MIN = 16
_NO_SESSION = -1


class Repeats:
    """What one connection's last fetch of everything was, and what it found."""

    __slots__ = ("_body", "_found", "_query", "_rows")

    def __init__(self) -> None:
        self._query: Query | None = None
        self._body = b""
        self._rows: list[Rows] = []
        self._found: list[Found | None] = []

    def parse(self, request: RawRequest, listener: Listener) -> Query:
        """Read a request; its `earlier` is what the one before, if it repeats that, has found."""
        before, body = self._query, b""
        if before is not None and request.version == before.version:
            body = bytes(request.data[request.position :])
            if self._take_changes(before, body):
                found, self._found = self._found, []
                return attrs.evolve(
                    before,
                    correlation_id=request.correlation_id,
                    listener=listener,
                    session=None,
                    leaders=set(),
                    endpoints=b"",
                    earlier=found,
                    keep=self._keep,
                )
        rows: list[Rows] = []
        query = parse(request, listener, rows)
        self._query = None
        wanted = query.wanted
        if (
            query.session_epoch == _NO_SESSION
            and len(wanted) >= _COUNT_MIN
            and sum(one.count for one in rows) == len(wanted)
            and len({one.key for one in wanted}) == len(wanted)
        ):
            start = request.position
            self._query, self._body = query, body or bytes(request.data[start:])
            self._rows = [attrs.evolve(one, start=one.start - start) for one in rows]
            self._found = []
            query.keep = self._keep
        return query

    def _keep(self, found: list[Found]) -> None:
        """Keep what was found where nothing is to be read, if it is still in the order asked."""
        assert self._query is not None, "kept for a request that was forgotten"
        self._found = [
            result if result.is_settled and result.wanted is wanted else None
            for result, wanted in zip(found, self._query.wanted, strict=True)
        ]

    def _take_changes(self, query: Query, body: bytes) -> bool:
        """Read what is new in the rows of a request; False if something else is new, too."""
        before = self._body
        if len(body) != len(before):
            return False
        row, position = row_of(query.version), 0
        changed: list[tuple[int, FetchPartition]] = []
        for rows in self._rows:
            end = rows.start + rows.count * row.size
            if body[position : rows.start] != before[position : rows.start]:
                return False
            for number in _differing(body, before, rows.start, rows.count, row.size):
                fields = row.unpack_from(body, rows.start + number * row.size)
                wanted = wanted_in(query.version, rows.topic, fields)
                place = rows.first + number
                has_tags = query.version >= 12 and fields[6]
                if has_tags or wanted.key != query.wanted[place].key:
                    return False
                changed.append((place, wanted))
            position = end
        if body[position:] != before[position:]:
            return False
        self._body = body
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
