"""
Segments of a partition directory copied to a storage.

As in KIP-405 a segment's manifest is written before its objects, as started, and after them, as
finished. A copy that was cut short is never read; the next one begins anew, with a new id.

Source: ``RemoteLogManager.RLMCopyTask.copyLogSegment``, ``LogSegmentData``.
"""

from __future__ import annotations

import contextlib
from itertools import pairwise

import attrs

from logstore.checksum import crc32c
from logstore.errors import ForeignDirectoryError, LogStoreError
from logstore.host import Host, read_file
from logstore.segments.kafka.batch_walk import walk_batches
from logstore.segments.kafka.checkpoints import LEADER_EPOCHS, write_checkpoint
from logstore.segments.kafka.directory_name import DirectoryNameError, parse_directory_name
from logstore.segments.kafka.kafka_uuid import random_uuid
from logstore.segments.kafka.offset_index import OffsetIndex
from logstore.segments.kafka.partition_metadata import PartitionMetadata
from logstore.segments.kafka.producer_history import ProducerHistory
from logstore.segments.kafka.producer_snapshot import list_snapshots, snapshot_name
from logstore.segments.kafka.remote.bundle_check import Bundle
from logstore.segments.kafka.remote.copying import copy_file
from logstore.segments.kafka.remote.lineage import Epochs, epochs_between, read_epochs
from logstore.segments.kafka.remote.object_names import (
    INDEX_BYTES_MAX,
    ObjectKind,
    RemotePartition,
    SegmentId,
)
from logstore.segments.kafka.remote.segment_metadata import (
    NO_BROKER,
    ObjectSum,
    SegmentMetadata,
    SegmentState,
)
from logstore.segments.kafka.remote.storage import RemoteStorage
from logstore.segments.kafka.segment_files import LOG, offset_file_name
from logstore.segments.kafka.time_index import TimeIndex

_COPIED = (
    ObjectKind.LOG,
    ObjectKind.OFFSET_INDEX,
    ObjectKind.TIME_INDEX,
    ObjectKind.TRANSACTION_INDEX,
)


@attrs.frozen
class LocalSegment:
    """A segment on disk: it covers the offsets in ``[base_offset, next_offset)``."""

    base_offset: int
    next_offset: int
    size_bytes: int


class PartitionSource:
    """
    A partition directory whose segments are to be copied.

    Its sealed segments may be copied while a store writes to it; the active one only when no store
    has it open, after a clean stop.

    Raises, on opening:
        ForeignDirectoryError: it is not a partition's, or nobody knows the topic's id.
    """

    def __init__(self, host: Host, directory: str, topic_id: bytes | None = None) -> None:
        self.host = host
        self.fs = host.fs
        self.directory = directory
        try:
            place = parse_directory_name(directory.rstrip("/").rpartition("/")[2])
        except DirectoryNameError as error:
            raise ForeignDirectoryError(f"{directory}: {error}") from error
        metadata = PartitionMetadata.read(self.fs, directory) if topic_id is None else None
        topic_id = metadata.topic_id if metadata is not None else topic_id
        if topic_id is None:
            raise ForeignDirectoryError(
                f"{directory}: has no partition.metadata; give the id of the topic"
            )
        self.partition = RemotePartition(place.topic, place.partition, topic_id)

    def segments(self, *, has_active: bool = False) -> list[LocalSegment]:
        """Return the sealed segments, oldest first, and with `has_active` the last one too."""
        sizes = {
            int(entry.name.removesuffix(LOG)): entry.size_bytes
            for entry in self.fs.list_directory(self.directory)
            if entry.name.endswith(LOG) and entry.name.removesuffix(LOG).isdecimal()
        }
        bases = sorted(sizes)
        found = [LocalSegment(base, following, sizes[base]) for base, following in pairwise(bases)]
        if has_active and bases and sizes[bases[-1]]:
            found.append(LocalSegment(bases[-1], self._end_of(bases[-1]), sizes[bases[-1]]))
        return found

    def _end_of(self, base_offset: int) -> int:
        """Return the offset behind the last batch of the active segment."""
        index_path = self.path(base_offset, ObjectKind.OFFSET_INDEX)
        position = 0
        if self.fs.exists(index_path):
            index = OffsetIndex.open(
                self.fs, index_path, base_offset, INDEX_BYTES_MAX, zero_tail=True
            )
            position = index.last_entry[1]
        path = self.path(base_offset, ObjectKind.LOG)
        file = self.fs.open(path, writable=False)
        try:
            next_offset = base_offset
            for batch in walk_batches(file, path, position, is_checked=False):
                next_offset = batch.next_offset
            return next_offset
        finally:
            file.close()

    def path(self, base_offset: int, kind: ObjectKind) -> str:
        """Return where one of a segment's own files stands."""
        return f"{self.directory}/{offset_file_name(base_offset, kind.value)}"

    def snapshot_path(self, offset: int) -> str:
        """Return where the producer snapshot of that offset stands."""
        return f"{self.directory}/{snapshot_name(offset)}"

    def leader_epochs(self, segment: LocalSegment) -> Epochs:
        """Return the epochs up to the segment's end; those of its batches if nobody kept them."""
        path = f"{self.directory}/{LEADER_EPOCHS}"
        entries = read_epochs(self.fs, path) if self.fs.exists(path) else ()
        found = epochs_between(entries, -1, segment.next_offset)
        if found:
            return tuple((epoch, max(start, 0)) for epoch, start in found)
        return ((0, segment.base_offset),)  # KIP-405 wants one, and readers of old logs take 0

    def describe(self, segment: LocalSegment, uuid: bytes, broker_id: int) -> SegmentMetadata:
        """Return the metadata of a copy that starts now."""
        base_offset = segment.base_offset
        times = self.path(base_offset, ObjectKind.TIME_INDEX)
        max_timestamp_ms = -1
        if self.fs.exists(times):
            index = TimeIndex.open(self.fs, times, base_offset, INDEX_BYTES_MAX)
            max_timestamp_ms = index.last_entry[0]
        transactions = self.path(base_offset, ObjectKind.TRANSACTION_INDEX)
        return SegmentMetadata(
            partition=self.partition,
            segment=SegmentId(base_offset, uuid),
            end_offset=segment.next_offset - 1,
            max_timestamp_ms=max_timestamp_ms,
            size_bytes=segment.size_bytes,
            leader_epochs=epochs_between(
                self.leader_epochs(segment), base_offset, segment.next_offset
            ),
            state=SegmentState.COPY_SEGMENT_STARTED,
            broker_id=broker_id,
            event_timestamp_ms=self.host.clock.wall_ms(),
            is_transaction_index_empty=not self.fs.exists(transactions)
            or not read_file(self.fs, transactions),
        )


def upload_partition(
    source: PartitionSource,
    storage: RemoteStorage,
    *,
    end_offset: int | None = None,
    has_active: bool = False,
    broker_id: int = NO_BROKER,
) -> list[SegmentMetadata]:
    """
    Copy the segments that are not stored yet; return what was copied, oldest first.

    With `end_offset`, such as the last stable offset, only segments that end at or below it. A
    damaged segment is not copied.

    Raises:
        CorruptEntryError: a batch or an index entry of a segment is wrong.
        CorruptFileError: a whole file is.
        OSError: a copy failed; nothing of it is left that would be read.

    """
    stored = {(one.start_offset, one.end_offset) for one in storage.segments(source.partition)}
    copied: list[SegmentMetadata] = []
    for segment in source.segments(has_active=has_active):
        is_stable = end_offset is None or segment.next_offset <= end_offset
        if is_stable and (segment.base_offset, segment.next_offset - 1) not in stored:
            copied.append(_upload(source, segment, storage, broker_id))
    return copied


def _upload(
    source: PartitionSource, segment: LocalSegment, storage: RemoteStorage, broker_id: int
) -> SegmentMetadata:
    uuid = random_uuid(source.host.rng)
    metadata = source.describe(segment, uuid, broker_id)
    paths = {
        kind: source.path(segment.base_offset, kind)
        for kind in _COPIED
        if source.fs.exists(source.path(segment.base_offset, kind))
    }
    Bundle(source.fs, paths, paths, metadata).check()
    storage.note(metadata)
    try:
        storage.fs.make_directory(storage.directory(source.partition))
        sums = {
            kind: copy_file(source.fs, path, storage.fs, storage.path(metadata, kind))
            for kind, path in paths.items()
        }
        for kind in (ObjectKind.OFFSET_INDEX, ObjectKind.TIME_INDEX):
            if kind not in sums:
                raise ForeignDirectoryError(
                    f"{source.path(segment.base_offset, kind)}: is missing; rebuild it first"
                )
        _write_snapshot(source, segment, storage, metadata)
        epochs_path = storage.path(metadata, ObjectKind.LEADER_EPOCHS)
        write_checkpoint(storage.fs, epochs_path, source.leader_epochs(segment))
        for kind in (ObjectKind.PRODUCER_SNAPSHOT, ObjectKind.LEADER_EPOCHS):
            data = read_file(storage.fs, storage.path(metadata, kind))
            sums[kind] = ObjectSum(len(data), crc32c(data))
        storage.fs.sync_directory(storage.directory(source.partition))
        finished = attrs.evolve(
            metadata,
            state=SegmentState.COPY_SEGMENT_FINISHED,
            event_timestamp_ms=source.host.clock.wall_ms(),
            sums=sums,
        )
        storage.note(finished)
    except (OSError, LogStoreError):
        with contextlib.suppress(OSError, LogStoreError):
            storage.remove(metadata)
        raise
    return finished


def _write_snapshot(
    source: PartitionSource,
    segment: LocalSegment,
    storage: RemoteStorage,
    metadata: SegmentMetadata,
) -> None:
    """Copy the producers of the segment's end; make the snapshot where it was not kept."""
    target = storage.path(metadata, ObjectKind.PRODUCER_SNAPSHOT)
    local = source.snapshot_path(segment.next_offset)
    if source.fs.exists(local):
        copy_file(source.fs, local, storage.fs, target)
        return
    history = ProducerHistory(source.host, source.directory, (), is_writable=False)
    offsets = list_snapshots(source.fs, source.directory)
    start = max((offset for offset in offsets if offset < segment.next_offset), default=0)
    if start:
        history.states.load(source.fs, source.snapshot_path(start))
    for one in source.segments(has_active=True):
        if one.next_offset <= start or one.base_offset >= segment.next_offset:
            continue
        path = source.path(one.base_offset, ObjectKind.LOG)
        file = source.fs.open(path, writable=False)
        try:
            for batch in walk_batches(file, path, is_checked=False):
                if start <= batch.base_offset < segment.next_offset and batch.producer_id >= 0:
                    history.note(batch, None)
        finally:
            file.close()
    history.states.snapshot(storage.fs, target)
