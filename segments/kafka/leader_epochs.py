"""
Which leader epoch started at which offset: a partition's history of leaders.

Replicas and consumers ask :meth:`LeaderEpochs.end_offset_for` how far an old leader's log can be
trusted. Entries rise in epoch and in start offset; an epoch that wrote nothing is replaced by the
next one. Kept in ``leader-epoch-checkpoint`` of the partition's directory, a line an epoch::

    0 0          epoch 0 started at offset 0
    3 11         epoch 3 at 11

Source: ``LeaderEpochFileCache`` (KIP-101, KIP-279).
"""

from __future__ import annotations

import logging
from bisect import bisect_right
from collections.abc import Iterable
from threading import Lock
from typing import TYPE_CHECKING

from logstore.errors import CorruptEntryError, CorruptFileError
from logstore.host import FileSystem
from logstore.segments.kafka.checkpoints import (
    LEADER_EPOCHS,
    parse_integer,
    read_checkpoint,
    write_checkpoint,
)
from logstore.segments.kafka.record_batch import MAGIC

if TYPE_CHECKING:
    from logstore.segments.kafka.segment import KafkaSegment

NO_EPOCH = -1
NO_OFFSET = -1

_log = logging.getLogger(__name__)


class LeaderEpochs:
    """
    The epochs of one partition, written to their file whenever they change.

    An epoch that begins with a start of the broker is put off: it is worth a write once something
    is appended in it.

    A :meth:`flush` may run in a thread of its own, beside a change.
    """

    def __init__(
        self, fs: FileSystem, path: str, entries: list[tuple[int, int]] | None = None
    ) -> None:
        self.path = path
        self._fs = fs
        self._entries = [] if entries is None else entries
        self._is_synced = True
        #: the newest epoch is not in the file
        self.is_put_off = False
        #: why the file could not be read; until :meth:`rebuild` nothing is known then
        self.flaw: CorruptFileError | None = None
        self._lock = Lock()  # of the file: who writes it puts a temporary one in its place
        #: The newest epoch, -1 without one; read with every append, so no property.
        self.latest_epoch = NO_EPOCH
        self._note_latest()

    @classmethod
    def load(cls, fs: FileSystem, directory: str, *, is_new: bool = False) -> LeaderEpochs:
        """Return what the file in `directory` holds; nothing if there is none, as in a new one."""
        path = f"{directory}/{LEADER_EPOCHS}"
        if is_new:
            return cls(fs, path)
        entries = [
            (parse_integer(path, epoch, 32), parse_integer(path, start_offset, 64))
            for epoch, start_offset in read_checkpoint(fs, path, 2)
        ]
        if any(epoch < 0 or start_offset < 0 for epoch, start_offset in entries):
            raise CorruptFileError(path, "an epoch or offset is negative")
        return cls(fs, path, sorted(dict(entries).items()))

    @classmethod
    def load_or_flaw(cls, fs: FileSystem, directory: str, *, is_new: bool = False) -> LeaderEpochs:
        """Return what :meth:`load` does; nothing, and the `flaw`, if the file cannot be read."""
        try:
            return cls.load(fs, directory, is_new=is_new)
        except CorruptFileError as error:
            epochs = cls(fs, error.path)
            epochs.flaw = error
            return epochs

    def rebuild(self, segments: Iterable[KafkaSegment], *, is_writable: bool) -> None:
        """
        Take the epochs from the batches of a log, which all have theirs.

        Kafka does not start where the file cannot be read. It tells how far leaders of before can
        be trusted, and no record is lost with it.
        """
        entries: list[tuple[int, int]] = []
        for segment in segments:
            try:
                for batch in segment.entries(is_checked=False):
                    if batch.magic < MAGIC:
                        entries.clear()
                    elif not entries or batch.leader_epoch > entries[-1][0]:
                        entries.append((batch.leader_epoch, batch.base_offset))
            except CorruptEntryError:
                continue  # for who reads there
        self._entries = [entry for entry in entries if entry[0] >= 0]
        _log.warning("%s; made anew from the batches: %s epochs", self.flaw, len(self._entries))
        self.flaw = None
        self._note_latest()
        if is_writable:
            self._write(sync=True)

    @property
    def entries(self) -> list[tuple[int, int]]:
        """All (epoch, start offset), in order."""
        return list(self._entries)

    def assign(
        self, epoch: int, start_offset: int, *, sync: bool = True, is_put_off: bool = False
    ) -> bool:
        """
        Note that `epoch` starts at `start_offset`; tell whether that was news.

        Entries that it contradicts, of this epoch or a newer one or starting here or behind, go.
        """
        assert epoch >= 0, f"epoch {epoch}"
        assert start_offset >= 0, f"start offset {start_offset}"
        entries = self._entries
        if entries and epoch == entries[-1][0] and start_offset >= entries[-1][1]:
            return False
        while entries and (entries[-1][0] >= epoch or entries[-1][1] >= start_offset):
            entries.pop()
        entries.append((epoch, start_offset))
        if is_put_off:
            self.is_put_off, self._is_synced = True, False
            self._note_latest()
        else:
            self._write(sync)
        return True

    def has_begun(self, log_end_offset: int) -> bool:
        """Tell whether anything was appended in the newest epoch."""
        return bool(self._entries) and self._entries[-1][1] < log_end_offset

    def end_offset_for(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        """
        Return (epoch, end offset) of the newest epoch not above `epoch` that has an end.

        =============================  ===================================================
        -1, or above all known         (-1, -1)
        the latest                     (epoch, log end offset): it is still written to
        below all known                (epoch, start of the first known)
        else                           (greatest known <= epoch, start of the one after it)
        =============================  ===================================================
        """
        entries = self._entries
        if epoch == NO_EPOCH or not entries or epoch > entries[-1][0]:
            return NO_EPOCH, NO_OFFSET
        if epoch == entries[-1][0]:
            return epoch, log_end_offset
        index = self._index_after(epoch)
        if index == 0:
            return epoch, entries[0][1]
        return entries[index - 1][0], entries[index][1]

    def divergence(
        self, leader_epoch: int, leader_end_offset: int, log_end_offset: int
    ) -> tuple[int, bool]:
        """
        Return where this log leaves that of a leader, and whether that is certain.

        The arguments are the leader's answer to an OffsetForLeaderEpoch request about our latest
        epoch (an end offset of 0 or more), and where our log ends. Where we do not know the epoch
        that it names, our log is good at most up to the end of the one before; what is cut there
        may still not be enough, so the leader is to be asked again about our then latest epoch.

        Source: ``AbstractFetcherThread.getOffsetTruncationState`` (KIP-101, KIP-279).
        """
        offset = min(leader_end_offset, log_end_offset)
        if leader_epoch == NO_EPOCH:
            return offset, True
        known_epoch, known_end_offset = self.end_offset_for(leader_epoch, log_end_offset)
        if known_end_offset == NO_OFFSET:
            return offset, True
        if known_epoch != leader_epoch:
            return min(known_end_offset, log_end_offset), False
        return min(known_end_offset, offset), True

    def epoch_for(self, offset: int) -> int:
        """Return the epoch in which the record at `offset` was written; -1 if unknown."""
        index = bisect_right(self._entries, offset, key=lambda entry: entry[1])
        return self._entries[index - 1][0] if index else NO_EPOCH

    def truncate_from_end(self, end_offset: int, *, sync: bool = False) -> bool:
        """Forget epochs that start at `end_offset` or behind; tell whether there were any."""
        entries = self._entries
        if not entries or entries[-1][1] < end_offset:
            return False
        while entries and entries[-1][1] >= end_offset:
            entries.pop()
        self._write(sync)
        return True

    def truncate_from_start(self, start_offset: int, *, sync: bool = False) -> bool:
        """
        Forget epochs that ended before `start_offset`; tell whether anything changed.

        The epoch that `start_offset` lies in starts there from now on.
        """
        entries = self._entries
        index = bisect_right(entries, start_offset, key=lambda entry: entry[1])
        if index == 0 or (index == 1 and entries[0][1] == start_offset):
            return False
        entries[:index] = [(entries[index - 1][0], start_offset)]
        self._write(sync)
        return True

    def clear(self, *, sync: bool = True) -> None:
        """Forget everything, as for a log that holds batches of before KIP-101."""
        if self._entries:
            self._entries.clear()
            self._write(sync)

    def flush(self) -> None:
        """Make durable what was written without sync."""
        if not self._is_synced:
            self._write(sync=True)

    def _index_after(self, epoch: int) -> int:
        return bisect_right(self._entries, epoch, key=lambda entry: entry[0])

    def _note_latest(self) -> None:
        self.latest_epoch = self._entries[-1][0] if self._entries else NO_EPOCH

    def _write(self, sync: bool) -> None:
        self._note_latest()
        with self._lock:
            self._is_synced = self.is_put_off = False
            write_checkpoint(self._fs, self.path, self._entries, sync=sync)
            self._is_synced = sync
