"""
A partition directory made of stored objects, without a cluster.

It is built beside, under a name that ends in ``-delete``: what a crash leaves of it any broker
clears away. All of it is checked and durable before it gets its own name. A broker that starts on
the data directory serves it, and goes on behind its end.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from logstore.errors import StorageError
from logstore.host import Host
from logstore.segments.kafka.batch_walk import walk_batches
from logstore.segments.kafka.checkpoints import LEADER_EPOCHS, write_checkpoint
from logstore.segments.kafka.config import LogConfig
from logstore.segments.kafka.directory_name import PartitionDirectory
from logstore.segments.kafka.offset_index import OffsetIndex
from logstore.segments.kafka.partition_metadata import PartitionMetadata
from logstore.segments.kafka.producer_snapshot import snapshot_name
from logstore.segments.kafka.remote.bundle_check import Bundle
from logstore.segments.kafka.remote.copying import check_sum, copy_file
from logstore.segments.kafka.remote.lineage import Link
from logstore.segments.kafka.remote.object_names import ObjectKind
from logstore.segments.kafka.remote.remote_log import RemoteLog
from logstore.segments.kafka.remote.segment_metadata import SegmentMetadata
from logstore.segments.kafka.remote.storage import MissingObjectError
from logstore.segments.kafka.segment import KafkaSegment
from logstore.segments.kafka.segment_files import offset_file_name
from logstore.segments.kafka.time_index import TimeIndex
from logstore.segments.kafka.transaction_index import TransactionIndex
from logstore.span import Span

_INDEXES = (ObjectKind.OFFSET_INDEX, ObjectKind.TIME_INDEX)


class PartitionExistsError(StorageError):
    """Where a partition is to be restored there is one already."""


@attrs.frozen
class Restored:
    """A restored partition: its directory, what offsets are in it, in how many segments."""

    path: str
    span: Span
    segment_count: int
    size_bytes: int


def restore_partition(
    log: RemoteLog,
    host: Host,
    directory: str,
    *,
    config: LogConfig | None = None,
    has_new_indexes: bool = False,
) -> Restored:
    """
    Write the partition below the data directory `directory`, which no broker may have open.

    The ``.log`` files are those that were copied, byte for byte, and so is all that belongs to
    them; with `has_new_indexes` offset and time indexes are made anew from the batches, at the
    intervals of `config`. A segment that overlaps the one before it is taken from where that ends.

    Raises:
        PartitionExistsError: the partition is there already.
        MissingObjectError: an object that must be there is not.
        CorruptEntryError: a batch or an index entry is damaged; object and position are named.
        CorruptFileError: an object is, as a whole. Nothing is left of the partition either way.

    """
    fs = host.fs
    place = PartitionDirectory(log.partition.topic, log.partition.partition)
    target = f"{directory}/{place.name}"
    if fs.exists(target):
        raise PartitionExistsError(f"{target}: is there already; move it away first")
    unique = host.rng.getrandbits(128).to_bytes(16, "big").hex()
    building = f"{directory}/{place.deleted_name(unique)}"
    fs.make_directory(building)
    try:
        builder = _Builder(log, host, building, config or LogConfig(), has_new_indexes)
        size_bytes = sum(builder.add(link) for link in log.links)
        builder.finish()
        fs.rename(building, target)
    except BaseException:
        fs.remove_directory(building)
        raise
    fs.sync_directory(directory)
    return Restored(target, log.span, len(log.links), size_bytes)


class _Builder:
    """Fills one partition directory, segment by segment."""

    def __init__(
        self, log: RemoteLog, host: Host, directory: str, config: LogConfig, has_new_indexes: bool
    ) -> None:
        self.log = log
        self.host = host
        self.directory = directory
        self.config = config
        self.has_new_indexes = has_new_indexes

    def add(self, link: Link) -> int:
        """Write the files of one segment; return how many bytes its log has."""
        metadata, storage, fs = link.metadata, self.log.storage, self.host.fs
        names = {kind: storage.path(metadata, kind) for kind in self._kinds_of(metadata)}
        paths = {kind: self._path(metadata, kind) for kind in names}
        sums = {kind: copy_file(storage.fs, names[kind], fs, paths[kind]) for kind in names}
        Bundle(fs, paths, names, metadata).check()
        for kind, found in sums.items():  # only now: what was checked before names a position
            check_sum(found, metadata.sums.get(kind), names[kind])
        fs.remove(paths[ObjectKind.LEADER_EPOCHS])
        path, base_offset = paths[ObjectKind.LOG], metadata.start_offset
        if not link.is_whole:
            path, base_offset = self._without_front(link, paths), link.start_offset
        if self.has_new_indexes or not link.is_whole:
            self._index(path, base_offset)
        file = fs.open(path, writable=False)
        size_bytes = file.size()
        file.close()
        return size_bytes

    def _kinds_of(self, metadata: SegmentMetadata) -> list[ObjectKind]:
        """Return which objects are wanted; MissingObjectError if one is not there that must be."""
        found: list[ObjectKind] = []
        for kind in ObjectKind:
            if self.has_new_indexes and kind in _INDEXES:
                continue
            path = self.log.storage.path(metadata, kind)
            if self.log.storage.fs.exists(path):
                found.append(kind)
            elif not kind.is_optional or not metadata.is_transaction_index_empty:
                raise MissingObjectError(f"{path}: is missing from the storage")
        return found

    def _path(self, metadata: SegmentMetadata, kind: ObjectKind) -> str:
        if kind is ObjectKind.PRODUCER_SNAPSHOT:
            return f"{self.directory}/{snapshot_name(metadata.next_offset)}"
        return f"{self.directory}/{offset_file_name(metadata.start_offset, kind.value)}"

    def _without_front(self, link: Link, paths: Mapping[ObjectKind, str]) -> str:
        """Keep of a segment only what the one before it does not have; return the log's path."""
        fs, old = self.host.fs, paths[ObjectKind.LOG]
        file = fs.open(old, writable=False)
        position = 0
        for batch in walk_batches(file, old, is_checked=False):
            if batch.base_offset >= link.start_offset:
                break
            position += batch.size_bytes
        file.close()
        path = f"{self.directory}/{offset_file_name(link.start_offset, ObjectKind.LOG.value)}"
        copy_file(fs, old, fs, path, position)
        if ObjectKind.TRANSACTION_INDEX in paths:
            before = TransactionIndex(
                fs, paths[ObjectKind.TRANSACTION_INDEX], link.metadata.start_offset
            )
            extension = ObjectKind.TRANSACTION_INDEX.value
            name = offset_file_name(link.start_offset, extension)
            after = TransactionIndex(fs, f"{self.directory}/{name}", link.start_offset)
            for entry in before.entries():
                if entry.last_offset >= link.start_offset:
                    after.append(entry)
            after.close()
        for kind in (ObjectKind.LOG, ObjectKind.TRANSACTION_INDEX, *_INDEXES):
            if kind in paths:
                fs.remove(paths[kind])
        return path

    def _index(self, path: str, base_offset: int) -> None:
        """Make both indexes of a log anew."""
        fs, index_bytes = self.host.fs, self.config.segment_index_bytes
        stem = path.removesuffix(ObjectKind.LOG.value)
        index_path, times_path = (f"{stem}{kind.value}" for kind in _INDEXES)
        segment = KafkaSegment(
            self.host,
            path,
            base_offset,
            self.config,
            OffsetIndex.create(fs, index_path, base_offset, index_bytes),
            TimeIndex.create(fs, times_path, base_offset, index_bytes),
        )
        file = fs.open(path, writable=False)
        position = 0
        for batch in walk_batches(file, path, is_checked=False):
            segment.observe(batch, position)
            position += batch.size_bytes
        file.close()
        segment.seal()
        segment.sync_observations()
        segment.close()

    def finish(self) -> None:
        """Write what belongs to the partition as a whole, and make all names last."""
        fs = self.host.fs
        write_checkpoint(fs, f"{self.directory}/{LEADER_EPOCHS}", self.log.leader_epochs)
        PartitionMetadata(self.log.partition.topic_id).write(fs, self.directory)
        fs.sync_directory(self.directory)
