"""
The producers of one log together with the snapshots that keep them.

The state is a fold over the log. A snapshot, ``%020d.snapshot``, holds it as of an offset: the base
of each segment, and the end at a clean stop. A start loads the newest one it can read and replays
what follows. Snapshots of another history, of before the log start, and damaged ones go.

Source: ``ProducerStateManager``, ``UnifiedLog.rebuildProducerState``.
"""

from __future__ import annotations

import logging
from bisect import insort
from collections.abc import Sequence

from logstore.errors import CorruptEntryError, CorruptFileError
from logstore.host import Host
from logstore.segments.kafka.producer_snapshot import snapshot_name
from logstore.segments.kafka.producer_state import ProducerStates
from logstore.segments.kafka.record import CorruptRecordError
from logstore.segments.kafka.record_batch import RecordBatch
from logstore.segments.kafka.segment import KafkaSegment
from logstore.segments.kafka.transaction_index import AbortedTransaction

_log = logging.getLogger(__name__)


class ProducerHistory:
    """
    `states` are those of `end_offset` after a :meth:`rebuild`; appends then go on without it.

    `snapshot_offset` is up to where a snapshot is on disk for sure; an empty log needs none. A
    history that is only read changes no file.
    """

    def __init__(
        self, host: Host, directory: str, snapshots: Sequence[int], *, is_writable: bool = True
    ) -> None:
        self.states = ProducerStates()
        self.end_offset = 0
        self.snapshot_offset = 0
        self._host = host
        self._directory = directory
        self._is_writable = is_writable
        self._snapshots = sorted(snapshots)

    @property
    def snapshots(self) -> list[int]:
        """The offsets of the snapshots on disk, in order."""
        return list(self._snapshots)

    def path(self, offset: int) -> str:
        """Return where the snapshot of that offset stands."""
        return f"{self._directory}/{snapshot_name(offset)}"

    # one batch

    def note(self, batch: RecordBatch, segment: KafkaSegment | None) -> None:
        """
        Take note of a producer's batch that is in the log.

        An aborted transaction goes into the index of `segment`; None in a replay: it is there.
        """
        states = self.states
        if not batch.is_control:
            states.append(
                producer_id=batch.producer_id,
                epoch=batch.producer_epoch,
                first_sequence=batch.base_sequence,
                last_sequence=batch.last_sequence,
                last_offset=batch.last_offset,
                offset_delta=batch.last_offset_delta,
                timestamp_ms=batch.max_timestamp_ms,
                is_transactional=batch.is_transactional,
            )
            return
        for ended in states.append_marker_batch(batch.data):
            if ended.is_aborted and segment is not None:
                segment.transaction_index.append(
                    AbortedTransaction(
                        ended.producer_id,
                        ended.first_offset,
                        ended.last_offset,
                        ended.last_stable_offset,
                    )
                )

    # the whole log

    def start_over(self) -> None:
        """Know nothing, as at a start; the snapshots stay."""
        self.states.start_over()
        self.end_offset = self.snapshot_offset = 0

    def restart(self, offset: int) -> None:
        """Forget everything and all snapshots: the log goes on, empty, at `offset`."""
        self.start_over()
        for snapshot in self.snapshots:
            self._remove(snapshot)
        self.end_offset = self.snapshot_offset = offset

    def rebuild(
        self,
        segments: Sequence[KafkaSegment],
        start_offset: int,
        end_offset: int,
        *,
        is_clean: bool = False,
    ) -> None:
        """
        Bring the states to `end_offset` of a log that starts at `start_offset`.

        Snapshots are taken, where there is anything to replay, at the bases of the last two
        segments and at the end. A log that was stopped cleanly (`is_clean`) and has no snapshot
        had no producers: it gets empty ones. (A log that is only read may be in use by a broker
        that has not rolled it yet: its one segment is replayed.) As in Kafka, producers that were
        silent for a day are forgotten whenever a snapshot is loaded.
        """
        offsets = [segment.base_offset for segment in segments[-2:]]
        is_in_use = not self._is_writable and len(segments) == 1
        if is_clean and not self._snapshots and not is_in_use:
            for offset in (*offsets, end_offset):
                self.take_snapshot(offset)
            self.end_offset = end_offset
            return
        had_none = not len(self.states) and self.end_offset >= end_offset
        self._reload(start_offset, end_offset, is_clean=is_clean)
        if end_offset > self.end_offset and not had_none:
            self._replay(segments, start_offset, end_offset, offsets)
        self.end_offset = end_offset
        self.take_snapshot(end_offset)

    def _reload(self, start_offset: int, end_offset: int, *, is_clean: bool) -> None:
        """
        Remove the snapshots of no use, and load the newest one (``truncateAndReload``).

        After a clean stop the one at the very end stays even if the log is empty; Kafka lets it
        go, and forgets whose retries it would have to refuse.
        """
        for offset in self.snapshots:
            is_needed = is_clean and offset == end_offset
            if offset > end_offset or (offset <= start_offset and not is_needed):
                self._remove(offset)
        if end_offset == self.end_offset:
            self.end_offset = max(self.end_offset, start_offset)
            self.snapshot_offset = self._snapshots[-1] if self._snapshots else start_offset
            return
        self.states.clear()
        while self._snapshots:
            offset = self._snapshots[-1]
            now_ms = self._host.clock.wall_ms()
            try:
                self.states.load(self._host.fs, self.path(offset), now_ms=now_ms)
            except CorruptFileError as error:
                _log.warning("%s; the one before it is used", error)
                self._remove(offset)
                continue
            self.end_offset = self.snapshot_offset = offset
            return
        self.end_offset = self.snapshot_offset = start_offset

    def _replay(
        self,
        segments: Sequence[KafkaSegment],
        start_offset: int,
        end_offset: int,
        snapshot_offsets: Sequence[int],
    ) -> None:
        """
        Take note of every batch in ``[self.end_offset, end_offset)``.

        As in Kafka no CRC is looked at: a log must open although the disk lost a byte of it, and
        whoever reads that byte will know.
        """
        bases = [segment.base_offset for segment in segments]
        floor = max((base for base in bases if base <= self.end_offset), default=0)
        for segment in segments:
            if not floor <= segment.base_offset < end_offset:
                continue
            start = max(segment.base_offset, self.end_offset, start_offset)
            self.end_offset = start
            if segment.base_offset in snapshot_offsets:
                self.take_snapshot(start)
            try:
                for batch in segment.entries(segment.locate(start), is_checked=False):
                    if batch.base_offset >= end_offset:
                        return
                    if batch.producer_id >= 0:
                        self.note(batch, None)
            except (CorruptEntryError, CorruptRecordError) as error:
                _log.warning(
                    "%s: %s; its producers are not known from there on", segment.path, error
                )

    # snapshots

    def take_snapshot(self, offset: int, *, sync: bool = True) -> None:
        """
        Write the states, which are those of `offset`, unless they are on disk already.

        What was written without `sync` does not count as being there.
        """
        if offset <= self.snapshot_offset or not self._is_writable:
            return
        self.states.snapshot(self._host.fs, self.path(offset), sync=sync)
        if offset not in self._snapshots:
            insort(self._snapshots, offset)
        if sync:
            self.snapshot_offset = offset

    def forget_snapshot(self, offset: int) -> None:
        """Take note that somebody else takes the snapshot of that offset away."""
        if offset in self._snapshots:
            self._snapshots.remove(offset)

    def remove_strays(self, bases: Sequence[int]) -> None:
        """
        Remove the snapshots that belong to no segment (``removeStraySnapshots``).

        But not the newest of them, if it is at the last segment or behind: a clean stop left it.
        """
        strays = [offset for offset in self._snapshots if offset not in bases]
        if strays and strays[-1] >= bases[-1]:
            strays.pop()
        for offset in strays:
            self._remove(offset)

    def remove_below(self, base_offset: int) -> None:
        """
        Remove the snapshots that nothing leads on from: the log behind them is gone.

        They may tell of a transaction as open whose marker was removed with it.
        """
        for offset in [one for one in self._snapshots if one < base_offset]:
            self._remove(offset)

    def _remove(self, offset: int) -> None:
        self.forget_snapshot(offset)
        if self._is_writable:
            self._host.fs.remove(self.path(offset))
