"""What stands in the commit log: each good record handed to those who follow, the rest reported."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import attrs

from logstore.segments.rocketmq.messages.corrupt_message import CorruptMessageError
from logstore.segments.rocketmq.messages.dispatch_request import (
    Blank,
    DeliverTime,
    DispatchRequest,
    read_dispatch_request,
)
from logstore.segments.rocketmq.messages.message import check_property_crc
from logstore.tools.inspection.rocketmq.log_scan import LogScan, Piece, Run, Stretch
from logstore.tools.inspection.rocketmq.stored_files import StoredFile
from logstore.tools.inspection.rocketmq.stored_store import StoredStore
from logstore.tools.inspection.rocketmq.verification.log_range import WalkedPart
from logstore.tools.inspection.verification.finding import Finding, Severity

if TYPE_CHECKING:
    from logstore.segments.rocketmq.columns.record_scan import RecordScan

Follower = Callable[[DispatchRequest], None]
#: one that takes many messages at once, of which none is odd
ScanFollower = Callable[["RecordScan"], None]
_CRC_NEEDLE = b"__CRC32#\x01"


@attrs.define
class FollowedLog:
    """
    One walk over a store's commit log.

    Afterwards `end` is where the log ends, `lost` are stretches ``[start, end)`` of physical
    offsets that hold no record, `newest_ms` is the store time of the newest message (-1: none).
    """

    store: StoredStore
    deliver_time: DeliverTime
    followers: list[Follower]
    #: the highest physical offset to which a queue leads
    known_end: int = -1
    end: int = 0
    #: where given, those who follow in bulk; `followers` get what these cannot be given
    scan_followers: list[ScanFollower] | None = None
    newest_ms: int = -1
    message_count: int = 0
    lost: list[tuple[int, int]] = attrs.field(factory=list[tuple[int, int]])

    def findings(self, note: Callable[[int], None]) -> Iterator[Finding]:
        """Walk all files; `note` is told of bytes done."""
        log = self.store.commit_log
        for oddity in log.oddities:
            yield Finding(oddity.kind, oddity.relative, oddity.reason)
        scan = self._scan()
        self.end = log.start
        for number, file in enumerate(log.files):
            is_last = number + 1 == len(log.files)
            for piece in self._pieces(scan, file):
                if isinstance(piece, (Run, WalkedPart)):
                    yield from self.take(piece, file)
                    note(piece.end_position - piece.position)
                    self.end = file.base + piece.end_position
                elif isinstance(piece, Stretch):
                    if self._is_remains(piece, file, is_last=is_last):
                        yield self._remains(piece, file)
                        break
                    yield self._damage(piece, file)
                elif piece.is_padded:
                    self.end = max(self.end, file.end)
                elif not is_last and self._goes_on(number):
                    self.lost.append((file.base + piece.position, file.end))
                    yield Finding(
                        "blank",
                        file.relative,
                        "the log goes on in the next file, but no BLANK ends this one: a broker "
                        "that checks it cuts all behind off; logstore salvage writes it anew",
                        piece.position,
                        physical_offset=file.base + piece.position,
                    )
        log.close()

    def _scan(self) -> LogScan:
        return LogScan(is_long=self.scan_followers is not None)

    def _pieces(self, scan: LogScan, file: StoredFile) -> Iterator[Piece | WalkedPart]:
        return scan.pieces(self.store.commit_log.open(file), file.path, file.base)

    def _goes_on(self, number: int) -> bool:
        log = self.store.commit_log
        return any(any(log.read(file.base, 8)) for file in log.files[number + 1 :])

    def take(self, run: Run | WalkedPart, file: StoredFile) -> Iterator[Finding]:
        """Hand the messages of a run to those who follow; yield what is wrong with them."""
        assert isinstance(run, Run), "nobody else has walked this log"
        has_crc = _CRC_NEEDLE in bytes(run.data)
        position, size_bytes = 0, len(run.data)
        while position < size_bytes:
            if self.scan_followers is not None and not has_crc:
                position = self._take_scan(run.data, position)
                if position >= size_bytes:
                    return
            place = run.position + position
            try:
                found = read_dispatch_request(run.data, position, deliver_time=self.deliver_time)
                if isinstance(found, Blank):
                    return
                if has_crc:
                    end = position + found.size_bytes
                    check_property_crc(run.data, position, end, found.properties_text)
            except CorruptMessageError as error:
                yield Finding(
                    "record", file.relative, error.reason, place, physical_offset=file.base + place
                )
                position += int.from_bytes(run.data[position : position + 4])
                continue
            position += found.size_bytes
            self.message_count += 1
            self.newest_ms = max(self.newest_ms, found.store_timestamp_ms)
            for follow in self.followers:
                follow(found)

    def _take_scan(self, data: memoryview, position: int) -> int:
        """Hand on all messages up to the first odd one; return where that stands."""
        from logstore.segments.rocketmq.columns import kernel
        from logstore.segments.rocketmq.columns.record_scan import scan_records

        scan = scan_records(data, position, deliver_time=self.deliver_time)
        if len(scan):
            self.message_count += len(scan)
            self.newest_ms = max(self.newest_ms, int(scan.table[kernel.STORE_MS].max()))
            for follow in self.scan_followers or ():
                follow(scan)
        return scan.end_position

    def _is_remains(self, stretch: Stretch, file: StoredFile, *, is_last: bool) -> bool:
        """Tell whether a recovery has set the end here: nothing leads behind it."""
        return is_last and self.store.was_clean and self.known_end < file.base + stretch.position

    def _remains(self, stretch: Stretch, file: StoredFile) -> Finding:
        return Finding(
            "remains",
            file.relative,
            "no record, and no queue leads here or behind: what a recovery cut off stays until it "
            "is overwritten",
            stretch.position,
            severity=Severity.NOTE,
            physical_offset=file.base + stretch.position,
        )

    def _damage(self, stretch: Stretch, file: StoredFile) -> Finding:
        start = file.base + stretch.position
        self.lost.append((start, file.base + stretch.end_position))
        said = f"{stretch.size_bytes} bytes are no record: {stretch.reason}; "
        if stretch.is_followed:
            kind = "record"
            said += (
                f"good records go on at position {stretch.end_position}, a broker that checks this "
                "file cuts them off too; logstore salvage keeps them"
            )
        else:
            kind = "tail"
            said += "no record follows: the next start cuts it off"
        return Finding(kind, file.relative, said, stretch.position, physical_offset=start)
