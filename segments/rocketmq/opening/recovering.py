"""
What is done when a store is opened: find the end of the commit log, bring all else in line.

After a clean stop the last commit log files are checked, after any other stop all from the
checkpoint on. What the consume queues or the index lack is dispatched, what leads beyond the end
of the log is cut off.

The releases differ in where they begin. Here whatever either of them brings back is brought back:

* Clean stop: the check begins where the later of the two begins (4.9.8: three files from the end;
  5.x: the last file whose first message is in the queues), so that old damage cuts nothing off.
  Messages before that which are in no queue are dispatched without a check, as 4.9.8 does; so are
  those behind a bad unit of a queue, which Java leaves out.
* Any other stop: 5.5.0 writes up to which physical offset the queues are durable, and begins with
  the file that holds it; without that the store times of the checkpoint decide, as in 4.9.8.
  There is no limit to the number of files (5.5.0 has one of ten).

Source: ``CommitLog.recoverNormally``, ``recoverAbnormally``; ``DefaultMessageStore.start`` (4.9.8).
"""

from __future__ import annotations

import logging
from bisect import bisect_right
from collections.abc import Callable
from typing import TYPE_CHECKING

import attrs

from logstore.segments.rocketmq.bulk_dispatch import BulkDispatch, bulk_bytes_min, bulk_dispatch
from logstore.segments.rocketmq.log.log_walk import LogWalk
from logstore.segments.rocketmq.messages.corrupt_message import CorruptMessageError
from logstore.segments.rocketmq.messages.dispatch_request import (
    Blank,
    DispatchRequest,
    read_dispatch_request,
)
from logstore.segments.rocketmq.plain_dispatch import PlainDispatch

if TYPE_CHECKING:
    from logstore.recovery import Recovery
    from logstore.segments.rocketmq.dispatch import Dispatch
    from logstore.segments.rocketmq.index.message_index import MessageIndex
    from logstore.segments.rocketmq.log.commit_log import CommitLog
    from logstore.segments.rocketmq.opening.checkpoint import StoreCheckpoint
    from logstore.segments.rocketmq.queues.consume_queues import ConsumeQueues

_log = logging.getLogger(__name__)

#: files that 4.9.8 checks after a clean stop
_FILES_CHECKED = 3
_HEAD_BYTES = 4096
#: after how much of the log the units that wait in memory are written
_WRITTEN_EACH_BYTES = 8 * 1024 * 1024


@attrs.frozen
class StoreRecovery:
    """
    What opening a store found: of the commit log, and how many messages were dispatched anew.

    `log` is None where there was no commit log file at all.
    """

    was_clean: bool
    log: Recovery | None
    dispatched_count: int = 0


@attrs.frozen
class _UncheckedLog:
    """A commit log that is read before its end is known."""

    commit_log: CommitLog

    def read(self, physical_offset: int, size_bytes: int, /) -> bytes:
        return self.commit_log.peek(physical_offset, size_bytes)

    def roll_next_file(self, physical_offset: int, /) -> int:
        return self.commit_log.roll_next_file(physical_offset)


@attrs.define
class StoreRecoverer:
    """Recovers one store; see the module's text."""

    commit_log: CommitLog
    consume_queues: ConsumeQueues
    dispatching: Dispatch
    checkpoint: StoreCheckpoint
    was_clean: bool
    is_writable: bool = True
    #: ``messageIndexEnable`` and ``messageIndexSafe``: the index must be durable, too
    is_index_safe: bool = False
    #: None where it is not built (``messageIndexEnable``)
    index: MessageIndex | None = None
    #: told (files done, files all, name) as the commit log is checked
    progress: Callable[[int, int, str], None] | None = None
    _bases: list[int] = attrs.field(factory=list[int])
    _count: int = 0
    _unwritten_bytes: int = 0
    _bulk: BulkDispatch | None = None
    _plain: PlainDispatch = attrs.field(init=False)
    _first_dispatched: int = 0

    def __attrs_post_init__(self) -> None:
        self._plain = PlainDispatch(self.dispatching, self.index)

    def run(self) -> StoreRecovery:
        """Recover; afterwards all up to the end of the log is dispatched."""
        self.consume_queues.recover(self._queues_durable_until())
        self._bases = bases = self.commit_log.file_bases()
        if not bases:
            return self._without_log()
        if self.was_clean:
            known = self.consume_queues.max_physical_offset
            start = self._start_after_clean_stop(bases, known)
            cut = self.consume_queues.cut_physical_offset
            self._first_dispatched = max(known if cut is None else cut, bases[0])
            self._dispatch_unchecked(start)
        else:
            start = self._start_by_checkpoint(bases)
            self._first_dispatched = start
            if bases[0]:
                self.consume_queues.correct_min(bases[0])
        far = self._first_dispatched + bulk_bytes_min()
        if self.commit_log.peek(far, _HEAD_BYTES).strip(b"\0"):
            self._bulk = bulk_dispatch(self.dispatching, self.index)
        visit = self._take_run if self.is_writable else None
        found = self.commit_log.recover(start, visit, is_long=self._bulk is not None)
        end = found.next_offset
        if self.is_writable:
            self.consume_queues.write()
        self.consume_queues.truncate_dirty(end)
        if self._first_dispatched > end:
            # The queues knew what was behind the end; now they may know less than what is left.
            self._first_dispatched = max(self.consume_queues.max_physical_offset, bases[0])
            self._dispatch_read(end)
        elif not self.is_writable:
            self._dispatch_read(end)  # units that wait cannot be written, so first is cut
        self.dispatching.restart(end)
        if found.reason is not None:
            _log.warning("commit log: ends at physical offset %d: %s", end, found.reason)
        self._bound_checkpoint(end)
        return StoreRecovery(self.was_clean, found, self._count)

    def _queues_durable_until(self) -> int | None:
        """Return what the checkpoint says of it, None where that does not matter or 4.9.8 wrote."""
        checkpoint = self.checkpoint
        is_told = checkpoint.logics_physical_offset > 0 or not checkpoint.logics_msg_timestamp_ms
        return checkpoint.logics_physical_offset if is_told and not self.was_clean else None

    def _without_log(self) -> StoreRecovery:
        """Java: where the commit log is gone the queues go, too."""
        if self.is_writable and self.consume_queues.by_key:
            _log.warning("commit log: there are no files; the consume queues are removed")
            for key in list(self.consume_queues.by_key):
                self.consume_queues.remove(*key)
        self.commit_log.recover()
        self.dispatching.restart(self.commit_log.max_physical_offset)
        return StoreRecovery(self.was_clean, None)

    # where to begin

    def _start_after_clean_stop(self, bases: list[int], known: int) -> int:
        """Return the file with which the check begins; `known` is what the queues know."""
        for base in bases[:-_FILES_CHECKED:-1]:
            first = self._first_message(base)
            if first is not None and first.physical_offset <= known:
                return base
        return bases[-_FILES_CHECKED] if len(bases) >= _FILES_CHECKED else bases[0]

    def _start_by_checkpoint(self, bases: list[int]) -> int:
        """Return the last file of which all before its first message is known to be durable."""
        for base in reversed(bases):
            first = self._first_message(base)
            if first is not None and self._is_covered(first):
                return base
        return bases[0]

    def _is_covered(self, first: DispatchRequest) -> bool:
        checkpoint = self.checkpoint
        stored_ms = first.store_timestamp_ms
        if not stored_ms or (self.is_index_safe and not self._is_indexed(first)):
            return False
        if checkpoint.logics_physical_offset > 0:
            return bool(first.physical_offset <= checkpoint.logics_physical_offset)
        return bool(stored_ms <= checkpoint.min_timestamp_ms)

    def _is_indexed(self, first: DispatchRequest) -> bool:
        """Tell whether all before a message is in the index files that outlived the stop."""
        index = self.index
        return index is not None and first.physical_offset <= index.end_physical_offset

    def _first_message(self, base: int) -> DispatchRequest | None:
        """Return the first message of the file, checked; None if what stands there is none."""
        log = self.commit_log
        data = log.peek(base, _HEAD_BYTES)
        size_bytes = int.from_bytes(data[:4], "big", signed=True)
        if size_bytes > len(data):
            data = log.peek(base, min(size_bytes, log.file_size_bytes))
        try:
            found = read_dispatch_request(data, verify_crc=True)
        except CorruptMessageError:
            return None
        return None if isinstance(found, Blank) else found

    # dispatching

    def _dispatch_unchecked(self, end: int) -> None:
        """Dispatch what stands before the files that are checked and is in no queue."""
        if self._first_dispatched >= end:
            return
        _log.warning(
            "the consume queues end at physical offset %d; messages up to %d are dispatched anew",
            self._first_dispatched,
            end,
        )
        walk = LogWalk(
            _UncheckedLog(self.commit_log),
            self._first_dispatched,
            end,
            self.dispatching.deliver_time,
        )
        for request in walk:
            self.dispatching.dispatch_one(request)
            self._count += 1
        self._first_dispatched = end

    def _take_run(self, physical_offset: int, records: memoryview) -> None:
        """Dispatch a run of checked records, those that are known to be dispatched left out."""
        if self.progress is not None:
            done = bisect_right(self._bases, physical_offset)
            self.progress(done, len(self._bases), f"{self._bases[done - 1]:020d}")
        if physical_offset + len(records) <= self._first_dispatched:
            return
        skipped = 0
        while physical_offset + skipped < self._first_dispatched:
            skipped += int.from_bytes(records[skipped : skipped + 4])
        records = records[skipped:]
        if self._bulk is not None:
            self._count += self._bulk.take(records)
        elif self._plain.is_possible:
            self._count += self._plain.take(records)
        else:
            self._take_one_by_one(records)
        # What waits in memory is bounded, however long the log is.
        self._unwritten_bytes += len(records)
        if self._unwritten_bytes >= _WRITTEN_EACH_BYTES:
            self.consume_queues.write()
            self._unwritten_bytes = 0

    def _take_one_by_one(self, records: memoryview) -> None:
        position, size_bytes = 0, len(records)
        deliver_time = self.dispatching.deliver_time
        while position < size_bytes:
            found = read_dispatch_request(records, position, deliver_time=deliver_time)
            if isinstance(found, Blank):
                return
            self.dispatching.dispatch_one(found)
            self._count += 1
            position += found.size_bytes

    def _dispatch_read(self, end: int) -> None:
        """Dispatch what was checked by reading it again."""
        walk = LogWalk(self.commit_log, self._first_dispatched, end, self.dispatching.deliver_time)
        for request in walk:
            self.dispatching.dispatch_one(request)
            self._count += 1

    def _bound_checkpoint(self, end: int) -> None:
        """
        Take back what the checkpoint says of physical offsets behind the end of the log.

        Other messages will stand there; it must not be taken for granted that they are durable.
        """
        checkpoint = self.checkpoint
        if not self.is_writable or checkpoint.logics_physical_offset <= end:
            return
        checkpoint.logics_physical_offset = end
        checkpoint.confirm_physical_offset = min(checkpoint.confirm_physical_offset, end)
        checkpoint.flush()
