"""
The files of one partition: names, creation, opening, and removal in two steps.

======================== ==================================================================
``%020d.log``            record batches from that base offset on
``%020d.index``          sparse offset index           (derived)
``%020d.timeindex``      sparse time index             (derived)
``%020d.txnindex``       aborted transactions, absent where there are none
``%020d.snapshot``       producer state up to (not including) that offset
``*.deleted``            scheduled for removal; removed when found at the next start
``*.cleaned``, ``.swap`` what a replacement of segments is made of
                         (:mod:`~logstore.segments.kafka.crash_leftovers`)
======================== ==================================================================
"""

from __future__ import annotations

import logging
from bisect import bisect_right
from functools import lru_cache
from typing import TypeVar

from logstore.errors import CorruptEntryError, CorruptFileError
from logstore.host import Host
from logstore.recovery import Recovery
from logstore.segments.kafka.config import LogConfig
from logstore.segments.kafka.crash_leftovers import CLEANED, DELETED, SWAP, clear_leftovers
from logstore.segments.kafka.offset_index import OffsetIndex
from logstore.segments.kafka.recovery_witness import RecoveryWitness
from logstore.segments.kafka.segment import KafkaSegment
from logstore.segments.kafka.sparse_index import IndexCache
from logstore.segments.kafka.time_index import TimeIndex
from logstore.segments.kafka.transaction_index import EXTENSION, TransactionIndex

IndexT = TypeVar("IndexT", OffsetIndex, TimeIndex)

_log = logging.getLogger(__name__)
LOG = ".log"
INDEX = ".index"
TIME_INDEX = ".timeindex"
TRANSACTION_INDEX = EXTENSION
SNAPSHOT = ".snapshot"
_DIGITS = 20
_DERIVED = (INDEX, TIME_INDEX, TRANSACTION_INDEX)
_KINDS = (LOG, *_DERIVED)
_NUMBERED = frozenset((*_KINDS, SNAPSHOT))
_CLEANED_INDEX_BYTES_MAX = 2**31 - 1


@lru_cache(maxsize=128)  # opening a segment asks for its names again and again
def offset_file_name(offset: int, extension: str) -> str:
    """Return the name under which a file of that (base) offset stands."""
    return f"{offset:020d}{extension}"


def _is_offset(stem: str) -> bool:
    return len(stem) == _DIGITS and stem.isascii() and stem.isdigit()


class SegmentFiles:
    """
    The segment family of a Kafka partition (see :class:`logstore.segment_family.SegmentFamily`).

    `is_clean` says that the last stop was clean, so that lengths and indexes can be trusted. Then
    the log must reach to `durable_end` at least.
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
        durable_end: int = 0,
        cache: IndexCache | None = None,
    ) -> None:
        self.host = host
        self.fs = host.fs
        self.directory = directory
        self.config = config
        self.is_clean = is_clean
        self.durable_end = durable_end
        self.is_writable = is_writable
        self.witness: RecoveryWitness | None = None
        #: see :class:`KafkaSegment`
        self.keeps_good_prefix = False
        #: what recovering single segments found, None if there was no need to
        self.mended: Recovery | None = None
        #: files renamed to ``.deleted``, with the time from which they may go
        self.condemned: list[tuple[float, str]] = []
        self._cache = IndexCache() if cache is None else cache
        self._found: dict[str, int] = {}
        self._bases: list[int] = []
        self._snapshots: list[int] = []
        #: of a log that is only read: complete files that replace others, but do not stand yet
        self.unfinished: list[str] = []
        self.is_new = is_new
        if not is_new:
            self._look()

    def _look(self) -> None:
        """List the directory once, after what a crash left half done is finished or undone."""
        try:
            found = self._list()
        except FileNotFoundError:
            return
        if self.is_writable and clear_leftovers(self.fs, self.directory, list(found)):
            found = self._list()
        self._found = found
        derived: list[str] = []
        for name in found:
            extension = name[_DIGITS:]
            if extension not in _NUMBERED or not _is_offset(name[:_DIGITS]):
                if extension.endswith(SWAP):
                    self.unfinished.append(name)
            elif extension == LOG:
                self._bases.append(int(name[:_DIGITS]))
            elif extension == SNAPSHOT:
                self._snapshots.append(int(name[:_DIGITS]))
            else:
                derived.append(name)
        self._drop_orphans(derived)

    def _list(self) -> dict[str, int]:
        """Return the files' sizes by name, in the order of their names."""
        return {
            entry.name: entry.size_bytes
            for entry in self.fs.list_directory(self.directory)
            if not entry.is_directory
        }

    def _drop_orphans(self, derived: list[str]) -> None:
        """Remove index files without their ``.log`` (``LogLoader.loadSegmentFiles``)."""
        for name in derived:
            if name[:_DIGITS] + LOG not in self._found:
                del self._found[name]
                if self.is_writable:
                    self.fs.remove(f"{self.directory}/{name}")

    def found_bytes(self, name: str) -> int | None:
        """Return how long a file was when the partition was opened; None without that file."""
        return self._found.get(name)

    def forget_listing(self) -> None:
        """
        Let go of the segments' files once the log is open: there may be a hundred thousand.

        :meth:`found_bytes` still knows the other files.
        """
        self._bases, self._snapshots = [], []
        self._found = {name: size for name, size in self._found.items() if not name[0].isdigit()}

    def path(self, offset: int, extension: str) -> str:
        """Return the path of the file of that offset and kind."""
        return f"{self.directory}/{offset_file_name(offset, extension)}"

    def base_offsets(self) -> list[int]:
        """Return the base offsets of the segments on disk, in order."""
        return list(self._bases)

    def snapshot_offsets(self) -> list[int]:
        """Return the offsets of the producer snapshots on disk, in order."""
        return list(self._snapshots)

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
            if self.fs.exists(segment.transaction_index.path):
                self.fs.remove(segment.transaction_index.path)
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
        aborted = TransactionIndex(
            self.fs,
            self.path(base_offset, TRANSACTION_INDEX),
            base_offset,
            size_bytes=self._found.get(offset_file_name(base_offset, TRANSACTION_INDEX), 0),
        )
        path = self.path(base_offset, LOG)
        segment = KafkaSegment(self.host, path, base_offset, self.config, index, times, aborted)
        segment.witness = self.witness
        segment.is_writable = self.is_writable
        segment.keeps_good_prefix = self.keeps_good_prefix
        return segment

    def open(self, base_offset: int, *, is_active: bool) -> KafkaSegment:
        """
        Open a segment that is on disk.

        After an unclean stop its end is what the file says until a recovery has looked; a sealed
        segment ends where the next one starts.
        """
        segment = self._segment(
            base_offset,
            self._open_index(OffsetIndex, base_offset, INDEX, is_active=is_active),
            self._open_index(TimeIndex, base_offset, TIME_INDEX, is_active=is_active),
        )
        segment.end_position = self._found[offset_file_name(base_offset, LOG)]
        segment.created_ms = self.host.clock.wall_ms()
        if is_active:
            self._open_active(segment)
        else:
            following = self._bases[bisect_right(self._bases, base_offset)]
            segment.next_offset = segment.recovery_point = following
            if not self._mend(segment):
                if self.is_clean:
                    self._load_times(segment)
                else:
                    self._seal_again(segment)
                self._supply_time_index(segment)
        if self.witness is not None:
            self.witness.opened(segment)
        return segment

    def _open_active(self, segment: KafkaSegment) -> None:
        if self.is_clean:
            self._mend(segment)
        if self.is_writable:
            segment.resume()
        if self.is_clean:  # otherwise a recovery follows
            self._load_end(segment)
            if self.is_writable:
                self._load_times(segment)
            else:  # a broker may be writing: the last entry is made when the segment is closed
                segment.find_times()

    def _load_end(self, segment: KafkaSegment) -> None:
        """
        Find the end; one that is damaged although the last stop was clean is recovered.

        So is one that comes too early: lengths, offsets and the magic of batches are in no
        checksum. Kafka does not look, and appends behind what is cut short, where nobody can read
        it, or gives offsets that were given before.
        """
        try:
            segment.load_end(is_lenient=not self.is_writable)
        except CorruptEntryError as error:
            reason = error.reason
            position = error.position
        else:
            if segment.next_offset >= self.durable_end or not self.is_writable:
                return
            position = segment.end_position
            reason = (
                f"the log ends at offset {segment.next_offset}, but the last stop, a clean one, "
                f"left it at {self.durable_end}"
            )
        self._rebuild(segment, f"position {position}: {reason}")
        segment.resume()
        segment.load_end()

    def _load_times(self, segment: KafkaSegment) -> None:
        """Take the largest timestamp from the time index, unless that was cut within an entry."""
        name = offset_file_name(segment.base_offset, TIME_INDEX)
        if self._found.get(name, 0) % TimeIndex.ENTRY.size:
            segment.find_times()
        else:
            segment.load_times()

    def _open_index(
        self, kind: type[IndexT], base_offset: int, extension: str, *, is_active: bool
    ) -> IndexT:
        # After a clean stop every sealed index is trimmed. Whoever only reads may be faced with a
        # broker that has started since, whose active one has zeros behind it.
        is_trimmed = self.is_clean and (self.is_writable or not is_active)
        return kind.open(
            self.fs,
            self.path(base_offset, extension),
            base_offset,
            self.config.segment_index_bytes,
            cache=self._cache,
            size_bytes=self._found.get(offset_file_name(base_offset, extension), 0),
            zero_tail=not is_trimmed,
        )

    def _mend(self, segment: KafkaSegment) -> bool:
        """
        Recover a segment that has no ``.index``, or an impossible ``.txnindex``, as Kafka does.

        So it is at every start, also a clean one. Like any recovery that may cut the segment short;
        :attr:`mended` tells. Returns whether it was done.
        """
        if not self.is_writable or not segment.end_position:
            return False
        name = offset_file_name(segment.base_offset, INDEX)
        reason = None if name in self._found else f"had no {name}"
        try:
            segment.transaction_index.sanity_check()
        except CorruptFileError as error:
            reason = str(error)
        if reason is None:
            return False
        self._rebuild(segment, reason)
        return True

    def _rebuild(self, segment: KafkaSegment, reason: str) -> None:
        """Recover a segment, whatever stop was before; the log says why."""
        segment.resume()
        outcome = segment.recover()
        segment.seal()
        segment.sync_observations()  # the next start believes them, and it may follow a power loss
        self.mended = outcome if self.mended is None else self.mended.joined(outcome)
        end = outcome.next_offset
        _log.warning("%s: %s; rebuilt up to offset %s", segment.path, reason, end)

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
            is_cut = found_bytes % index.ENTRY.size > 0
            if found_bytes == index.size_bytes and is_cut and index is segment.time_index:
                return  # no power loss leaves it like that; Kafka leaves it as it is
            if found_bytes != index.size_bytes or is_cut:
                index.resume()
                index.seal()
                index.flush(sync=True)
        if offset_file_name(segment.base_offset, TIME_INDEX) in self._found:
            segment.save_times()  # a missing one was not lost that way; Kafka leaves it empty

    def _supply_time_index(self, segment: KafkaSegment) -> None:
        """Create a missing ``.timeindex``, empty, as Kafka does."""
        name = offset_file_name(segment.base_offset, TIME_INDEX)
        if self.is_writable and name not in self._found:
            self._start_file(segment.time_index.path)

    def create_cleaned(self, base_offset: int) -> KafkaSegment:
        """
        Create the empty segment that others are copied into, its files called ``.cleaned``.

        Its indexes may become as large as they must: their sizes are checked where segments are
        put together.
        """
        paths = {extension: self.path(base_offset, extension) + CLEANED for extension in _KINDS}
        for path in paths.values():
            if self.fs.exists(path):
                self.fs.remove(path)
        self._start_file(paths[LOG])
        cache, bytes_max = self._cache, _CLEANED_INDEX_BYTES_MAX
        segment = KafkaSegment(
            self.host,
            paths[LOG],
            base_offset,
            self.config,
            OffsetIndex.create(self.fs, paths[INDEX], base_offset, bytes_max, cache=cache),
            TimeIndex.create(self.fs, paths[TIME_INDEX], base_offset, bytes_max, cache=cache),
            TransactionIndex(self.fs, paths[TRANSACTION_INDEX], base_offset, size_bytes=0),
        )
        segment.created_ms = self.host.clock.wall_ms()
        return segment

    def open_cleaned(self, base_offset: int, next_offset: int) -> KafkaSegment:
        """
        Open a segment called ``.cleaned`` that somebody else has made, durable and whole.

        It covers the offsets up to `next_offset`.

        Raises:
            FileNotFoundError: it is not there.

        """
        sizes = self._list()
        paths = {extension: self.path(base_offset, extension) + CLEANED for extension in _KINDS}
        found = {kind: sizes.get(path.rpartition("/")[2], 0) for kind, path in paths.items()}
        fs, bytes_max, cache = self.fs, _CLEANED_INDEX_BYTES_MAX, self._cache
        index = OffsetIndex.open(
            fs, paths[INDEX], base_offset, bytes_max, cache=cache, size_bytes=found[INDEX]
        )
        times = TimeIndex.open(
            fs, paths[TIME_INDEX], base_offset, bytes_max, cache=cache, size_bytes=found[TIME_INDEX]
        )
        aborted = TransactionIndex(
            self.fs,
            paths[TRANSACTION_INDEX],
            base_offset,
            size_bytes=found[TRANSACTION_INDEX],
        )
        segment = KafkaSegment(
            self.host, paths[LOG], base_offset, self.config, index, times, aborted
        )
        segment.end_position = segment.file.size()
        segment.created_ms = self.host.clock.wall_ms()
        segment.load_times()
        segment.reach(next_offset)
        return segment

    def remove(self, segment: KafkaSegment) -> None:
        """Rename the segment's files to ``.deleted``; :meth:`purge` removes them later."""
        segment.close()
        self.condemn(segment)

    def condemn(self, segment: KafkaSegment) -> None:
        """Rename the segment's files, and leave it open for its readers."""
        due_ms = self.host.clock.monotonic_ms() + self.config.file_delete_delay_ms
        for extension in _KINDS:
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
