"""
Reading the commit log from one message to the next, in pieces large enough to be cheap.

Used to find the first message of a file, to dispatch what was not put by this store, and by tools.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

import attrs

from logstore.segments.rocketmq.messages.corrupt_message import CorruptMessageError
from logstore.segments.rocketmq.messages.dispatch_request import (
    Blank,
    DeliverTime,
    DispatchRequest,
    read_dispatch_request,
)

PIECE_BYTES = 1 << 20

Complaint = Callable[[int, CorruptMessageError], None]


class WalkableLog(Protocol):
    """What a walk needs of a commit log."""

    def read(self, physical_offset: int, size_bytes: int, /) -> bytes:
        """Return bytes of one file; fewer where what can be read ends."""
        ...

    def roll_next_file(self, physical_offset: int, /) -> int:
        """Return where the next file starts."""
        ...


@attrs.define
class LogWalk:
    """
    Messages of `commit_log` from `physical_offset` up to `end`, as dispatch requests.

    `physical_offset` moves along: it is always where the next message is looked for. What is no
    message is skipped by Java's rule for a running broker (``ReputMessageService``): by the length
    that the record claims if only its parts belie it, otherwise to the end of what can be read of
    its file. Each time `on_damage` is told. With `stops_at_damage` the walk ends there instead: a
    slave's log ends in the middle of a message while the rest is on its way.
    """

    commit_log: WalkableLog
    physical_offset: int
    end: int
    deliver_time: DeliverTime | None = None
    on_damage: Complaint | None = None
    stops_at_damage: bool = False

    def __iter__(self) -> Iterator[DispatchRequest]:
        """Yield the requests; where the log ends in the middle of a message the walk ends."""
        log = self.commit_log
        while self.physical_offset < self.end:
            start = self.physical_offset
            file_end = min(log.roll_next_file(start), self.end)
            piece = memoryview(log.read(start, min(PIECE_BYTES, file_end - start)))
            if not piece:
                return
            yield from self._requests_in(piece, start, file_end)
            if self.physical_offset == start:
                # One message longer than a piece, or damage: look at the whole rest of the file.
                yield from self._whole(start, file_end)
                if self.physical_offset == start:
                    return

    def _requests_in(
        self, piece: memoryview, start: int, file_end: int
    ) -> Iterator[DispatchRequest]:
        """Yield the whole messages of a piece; stops before one that is cut, or no message."""
        position, size_bytes, deliver_time = 0, len(piece), self.deliver_time
        while position < size_bytes:
            try:
                found = read_dispatch_request(piece, position, deliver_time=deliver_time)
            except CorruptMessageError:
                return
            if isinstance(found, Blank):
                self.physical_offset = self.commit_log.roll_next_file(start)
                return
            found.physical_offset = start + position  # its place, whatever it says
            position += found.size_bytes
            if start + position > file_end:
                return
            self.physical_offset = start + position
            yield found

    def _whole(self, start: int, file_end: int) -> Iterator[DispatchRequest]:
        """Yield the message at `start`, or skip what stands there."""
        data = memoryview(self.commit_log.read(start, file_end - start))
        try:
            found = read_dispatch_request(data, deliver_time=self.deliver_time)
        except CorruptMessageError as error:
            if self.stops_at_damage:
                return
            if self.on_damage is not None:
                self.on_damage(start, error)
            skipped = error.skip_bytes if error.skip_bytes > 0 else file_end - start
            self.physical_offset = start + skipped
            return
        if isinstance(found, Blank):
            self.physical_offset = self.commit_log.roll_next_file(start)
            return
        found.physical_offset = start
        self.physical_offset = start + found.size_bytes
        yield found
