"""
The files of one partition: names, creation, opening, and removal in two steps.

======================== ==================================================================
``%020d.log``            record batches from that base offset on
``%020d.index``          sparse offset index           (derived)
``%020d.timeindex``      sparse time index             (derived)
``%020d.txnindex``       aborted transactions, absent where there are none
``%020d.snapshot``       producer state up to (not including) that offset
``*.deleted``            scheduled for removal; removed when found at the next start
======================== ==================================================================
"""

from __future__ import annotations

import logging
from bisect import bisect_right
from collections.abc import Callable
from typing import TypeVar

from logstore.host import Host
from logstore.recovery import Recovery
from logstore.segments.kafka.config import LogConfig
from logstore.segments.kafka.offset_index import OffsetIndex
from logstore.segments.kafka.record_batch import RecordBatch
from logstore.segments.kafka.segment import KafkaSegment
from logstore.segments.kafka.sparse_index import IndexCache
from logstore.segments.kafka.time_index import TimeIndex

IndexT = TypeVar("IndexT", OffsetIndex, TimeIndex)

_log = logging.getLogger(__name__)
LOG = ".log"
INDEX = ".index"
TIME_INDEX = ".timeindex"
TRANSACTION_INDEX = ".txnindex"
SNAPSHOT = ".snapshot"
DELETED = ".deleted"
_DIGITS = 20
_DERIVED = (INDEX, TIME_INDEX, TRANSACTION_INDEX)


def offset_file_name(offset: int, extension: str) -> str:
    """Return the name under which a file of that (base) offset stands."""
    return f"{offset:020d}{extension}"


def _is_offset(stem: str) -> bool:
    return len(stem) == _DIGITS and stem.isascii() and stem.isdigit()


class SegmentFiles:
    """
    The segment family of a Kafka partition (see :class:`logstore.segmented_log.SegmentFamily`).

    `is_clean` says that the last stop was clean, so that lengths and indexes can be trusted.
    """

    def __init__(
        self,
        host: Host,
        directory: str,
        config: LogConfig,
        *,
        is_clean: bool = True,
        is_writable: bool = True,
        is_new: bool = False,
        cache: IndexCache | None = None,
    ) -> None:
        self.host = host
        self.fs = host.fs
        self.directory = directory
        self.config = config
        self.is_clean = is_clean
        self.is_writable = is_writable
        self.witness: Callable[[RecordBatch], None] | None = None
        #: what making missing indexes anew found, None if none was missing
        self.mended: Recovery | None = None
        #: files renamed to ``.deleted``, with the time from which they may go
        self.condemned: list[tuple[float, str]] = []
        self._cache = IndexCache() if cache is None else cache
        self._found: dict[str, int] = {}
        self._bases: list[int] = []
        if not is_new:
            self._look()

    def _look(self) -> None:
        """List the directory once; remove what an interrupted removal left behind."""
        if not self.fs.exists(self.directory):
            return
        for entry in self.fs.list_directory(self.directory):
            if entry.name.endswith(DELETED):
                if self.is_writable:
                    self.fs.remove(f"{self.directory}/{entry.name}")
            elif not entry.is_directory:
                self._found[entry.name] = entry.size_bytes
        self._bases = sorted(
            int(name.removesuffix(LOG))
            for name in self._found
            if name.endswith(LOG) and _is_offset(name.removesuffix(LOG))
        )
        self._drop_orphans()

    def _drop_orphans(self) -> None:
        """Remove index files without their ``.log`` (``LogLoader.loadSegmentFiles``)."""
        bases = set(self._bases)
        for name in list(self._found):
            stem, _, extension = name.partition(".")
            if f".{extension}" in _DERIVED and _is_offset(stem) and int(stem) not in bases:
                del self._found[name]
                if self.is_writable:
                    self.fs.remove(f"{self.directory}/{name}")

    def found_bytes(self, name: str) -> int | None:
        """Return how long a file was when the partition was opened; None without that file."""
        return self._found.get(name)

    def path(self, offset: int, extension: str) -> str:
        """Return the path of the file of that offset and kind."""
        return f"{self.directory}/{offset_file_name(offset, extension)}"

    def base_offsets(self) -> list[int]:
        """Return the base offsets of the segments on disk, in order."""
        return list(self._bases)

    def snapshot_offsets(self) -> list[int]:
        """Return the offsets of the producer snapshots on disk, in order."""
        return sorted(
            int(name.removesuffix(SNAPSHOT))
            for name in self._found
            if name.endswith(SNAPSHOT) and _is_offset(name.removesuffix(SNAPSHOT))
        )

    def create(self, base_offset: int) -> KafkaSegment:
        """
        Create an empty segment; files of that name that are left over lose their content.

        A log that is only read gets one without files.
        """
        segment = self._segment(
            base_offset,
            self._new_index(OffsetIndex, base_offset, INDEX),
            self._new_index(TimeIndex, base_offset, TIME_INDEX),
        )
        if self.is_writable:
            self._start_file(segment.path)
        segment.created_ms = self.host.clock.wall_ms()
        segment.jitter_ms = self.config.roll_policy.draw_jitter_ms(self.host.rng)
        return segment

    def _new_index(self, kind: type[IndexT], base_offset: int, extension: str) -> IndexT:
        path, bytes_max = self.path(base_offset, extension), self.config.segment_index_bytes
        if self.is_writable:
            return kind.create(self.fs, path, base_offset, bytes_max, cache=self._cache)
        return kind.open(self.fs, path, base_offset, bytes_max, cache=self._cache, size_bytes=0)

    def _start_file(self, path: str) -> None:
        file = self.fs.open(path, create=True)
        try:
            if file.size():
                file.truncate(0)
        finally:
            file.close()

    def _segment(self, base_offset: int, index: OffsetIndex, times: TimeIndex) -> KafkaSegment:
        path = self.path(base_offset, LOG)
        segment = KafkaSegment(self.host, path, base_offset, self.config, index, times)
        segment.witness = self.witness
        segment.is_writable = self.is_writable
        return segment

    def open(self, base_offset: int, *, is_active: bool) -> KafkaSegment:
        """
        Open a segment that is on disk.

        After an unclean stop its end is what the file says until a recovery has looked; a sealed
        segment ends where the next one starts.
        """
        segment = self._segment(
            base_offset,
            self._open_index(OffsetIndex, base_offset, INDEX),
            self._open_index(TimeIndex, base_offset, TIME_INDEX),
        )
        segment.end_position = self._found[offset_file_name(base_offset, LOG)]
        segment.created_ms = self.host.clock.wall_ms()
        if not is_active:
            following = self._bases[bisect_right(self._bases, base_offset)]
            segment.next_offset = segment.recovery_point = following
            if self.is_clean:
                segment.load_times()
                self._mend_index(segment)
            else:
                self._seal_again(segment)
        elif self.is_clean:
            self._mend_index(segment)
            segment.load_end(is_lenient=not self.is_writable)
            segment.load_times()
            if self.is_writable:
                segment.resume()
        elif self.is_writable:
            segment.resume()
        return segment

    def _open_index(self, kind: type[IndexT], base_offset: int, extension: str) -> IndexT:
        return kind.open(
            self.fs,
            self.path(base_offset, extension),
            base_offset,
            self.config.segment_index_bytes,
            cache=self._cache,
            size_bytes=self._found.get(offset_file_name(base_offset, extension), 0),
            zero_tail=not (self.is_clean and self.is_writable),
        )

    def _mend_index(self, segment: KafkaSegment) -> None:
        """
        Rebuild the indexes of a segment whose ``.index`` is missing, as Kafka does at start.

        Like any recovery that may cut the segment short; :attr:`mended` tells.
        """
        name = offset_file_name(segment.base_offset, INDEX)
        if name in self._found or not self.is_writable or not segment.end_position:
            return
        segment.resume()
        outcome = segment.recover()
        segment.seal()
        segment.sync_observations()  # the next start believes them, and it may follow a power loss
        self.mended = outcome if self.mended is None else self.mended.joined(outcome)
        end = outcome.next_offset
        _log.warning("%s: had no %s; rebuilt up to offset %s", segment.path, name, end)

    def _seal_again(self, segment: KafkaSegment) -> None:
        """
        Finish the indexes of a sealed segment where a power loss undid that.

        Below the recovery point the data is safe and nobody looks at it again, but its indexes may
        have been sealed after their last sync: they lack the last entry, or stand at full size with
        zeros behind, which the next start would take for entries.
        """
        segment.find_times()
        if not self.is_writable:
            return
        for index in (segment.offset_index, segment.time_index):
            name = offset_file_name(segment.base_offset, index.EXTENSION)
            found_bytes = self._found.get(name, 0)
            if found_bytes != index.size_bytes or found_bytes % index.ENTRY.size:
                index.resume()
                index.seal()
                index.flush(sync=True)
        if offset_file_name(segment.base_offset, TIME_INDEX) in self._found:
            segment.save_times()  # a missing one was not lost that way; Kafka leaves it empty

    def remove(self, segment: KafkaSegment) -> None:
        """Rename the segment's files to ``.deleted``; :meth:`purge` removes them later."""
        due_ms = self.host.clock.monotonic_ms() + self.config.file_delete_delay_ms
        segment.close()
        for extension in (LOG, *_DERIVED):
            self._condemn(self.path(segment.base_offset, extension), due_ms)

    def remove_snapshot(self, offset: int) -> None:
        """Take the producer snapshot of that offset away, like the segment's files."""
        due_ms = self.host.clock.monotonic_ms() + self.config.file_delete_delay_ms
        self._condemn(self.path(offset, SNAPSHOT), due_ms)

    def _condemn(self, path: str, due_ms: float) -> None:
        if self.fs.exists(path):
            self.fs.rename(path, path + DELETED)
            self.condemned.append((due_ms, path + DELETED))

    def purge(self, *, everything: bool = False) -> None:
        """Remove the condemned files whose delay has passed."""
        now_ms = self.host.clock.monotonic_ms()
        due = [entry for entry in self.condemned if everything or entry[0] <= now_ms]
        for entry in due:
            self.condemned.remove(entry)
            if self.fs.exists(entry[1]):
                self.fs.remove(entry[1])
