"""
The metadata log itself, ``__cluster_metadata-0``: read into an image, appended to as its leader.

Its files are those of any partition, and the same code writes them. Three things differ: it is
recovered whenever it is opened for appends, as in Kafka; a newer snapshot takes the place of what
lies below it; and whoever appends has won an election first, even alone: the epoch goes up,
``quorum-state`` says so, and a LeaderChange batch stands in front of the first record.

A directory that was only formatted has no log yet. What ``bootstrap.checkpoint`` holds is what its
log starts with, and the first change writes both.

Source: ``KafkaRaftLog``, ``QuorumController``, ``ActivationRecordsGenerator``.
"""

from __future__ import annotations

import logging
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager

from logstore.errors import CorruptEntryError, CorruptFileError
from logstore.host import Host, write_file
from logstore.segments.kafka.cluster_metadata.batches import (
    decode_entries,
    encode_leader_change,
    encode_values,
)
from logstore.segments.kafka.cluster_metadata.image import MetadataImage, ResourceType
from logstore.segments.kafka.cluster_metadata.quorum_state import QuorumState
from logstore.segments.kafka.cluster_metadata.records import (
    AbortTransactionRecord,
    AnyRecord,
    BeginTransactionRecord,
    ConfigRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    MetadataRecord,
    OtherRecord,
    PartitionChangeRecord,
    PartitionRecord,
    encode_record,
)
from logstore.segments.kafka.cluster_metadata.release import (
    ELIGIBLE_LEADER_REPLICAS,
    METADATA_VERSION,
    MetadataVersion,
)
from logstore.segments.kafka.cluster_metadata.snapshot import (
    BOOTSTRAP,
    SnapshotId,
    encode_bootstrap,
    newest_snapshot,
    read_snapshot,
)
from logstore.segments.kafka.config import parse_topic_configs
from logstore.segments.kafka.kafka_uuid import METADATA_TOPIC
from logstore.segments.kafka.partition import KafkaPartition
from logstore.segments.kafka.partition_metadata import PartitionMetadata
from logstore.segments.kafka.record_batch import RecordBatch
from logstore.segments.kafka.segment_files import LOG, SegmentFiles

_log = logging.getLogger(__name__)

TOPIC = "__cluster_metadata"
DIRECTORY = f"{TOPIC}-0"
#: of one batch: what a controller's operation may have (``QuorumController``)
RECORDS_MAX = 10_000

_RECORD_BYTES_MAX = 8 * 1024 * 1024  # of a batch: ``KafkaRaftClient.MAX_BATCH_SIZE_BYTES``


class MetadataLog:
    """
    The metadata log of the data directory `path`, for the node `node_id`.

    `image` is what it says; `release` is the metadata version of a directory that has none yet,
    maybe because it `is_upgraded` from ZooKeeper's time.

    Raises, on opening:
        CorruptFileError: a record, a snapshot or a file beside them cannot be understood.
    """

    def __init__(
        self,
        host: Host,
        path: str,
        node_id: int,
        *,
        release: MetadataVersion,
        is_upgraded: bool = False,
        min_insync_replicas: str = "1",
        is_writable: bool = True,
    ) -> None:
        self.host = host
        self.path = path
        self.directory = f"{path}/{DIRECTORY}"
        self.node_id = node_id
        self.is_writable = is_writable
        self.image = MetadataImage()
        #: the offset behind the last change of a feature's level; grows with each of them
        self.features_epoch = 0
        #: whether the log ended within a batch: records that were durable may be gone
        self.is_cut_short = False
        #: open from the first append on
        self._partition: KafkaPartition | None = None
        self._snapshot: SnapshotId | None = None
        #: up to where it was read
        self._read_end = 0
        #: that of our own appends; None before the first
        self._epoch: int | None = None
        #: whether appends leave the flush to :meth:`together`, and one did
        self._is_flush_put_off = self._owes_flush = False
        #: what the log has to start with, where it says nothing yet
        self._bootstrap: list[tuple[AnyRecord, int]] = []
        #: whether there was one, or at least what it is to start with
        self.was_there = self._is_there()
        if self.was_there:
            self._read()
        if METADATA_VERSION not in self.image.features:
            features = release.features_of(is_upgraded=is_upgraded)
            self._load_bootstrap(features, min_insync_replicas)

    # reading

    def _is_there(self) -> bool:
        fs = self.host.fs
        if not fs.is_directory(self.directory):
            return False
        self._snapshot = newest_snapshot(fs, self.directory)
        names = fs.list_directory(self.directory)
        return self._snapshot is not None or any(entry.name.endswith(LOG) for entry in names)

    def _open(self, *, is_writable: bool = True, is_new: bool = False) -> KafkaPartition:
        """Open the log: as it is to be read, or recovered to be appended to."""
        files = SegmentFiles(
            self.host,
            self.directory,
            parse_topic_configs({}),
            is_clean=not is_writable or is_new,
            is_writable=is_writable,
            is_new=is_new,
        )
        is_recovered = is_writable and not is_new
        return KafkaPartition(
            self.host,
            files,
            TOPIC,
            0,
            recovery_point=0 if is_recovered else None,
            log_start_offset=self._snapshot_end if is_writable else 0,
        )

    @property
    def _snapshot_end(self) -> int:
        return 0 if self._snapshot is None else self._snapshot.end_offset

    @property
    def end_offset(self) -> int:
        """The offset behind the last record that there is."""
        return self._read_end if self._partition is None else self._partition.end_offset

    def _read(self) -> None:
        """Fold the newest snapshot and the log behind it; nothing on disk changes by that."""
        end = self._snapshot_end
        if self._snapshot is not None:
            path = f"{self.directory}/{self._snapshot.file_name}"
            for entry in read_snapshot(self.host.fs, path):
                self.image.apply(entry.record)
            self.features_epoch = end
        partition = self._open(is_writable=False)
        try:
            start = partition.log.start_offset
            if start > end and partition.end_offset > start:
                raise CorruptFileError(
                    self.directory, f"starts at offset {start}; no snapshot has what was before"
                )
            if partition.end_offset > end:
                self._fold(partition, max(start, end))
            self._read_end = max(end, partition.end_offset)
        finally:
            partition.log.close()

    def _fold(self, partition: KafkaPartition, start: int) -> None:
        """Apply the records from `start` up to where a recovery would end the log."""
        self.is_cut_short = partition.log.active.unread_bytes > 0
        try:
            for batch in partition.batches(start):
                for entry in decode_entries(batch, self.directory):
                    if entry.offset >= start:
                        self.image.apply(entry.record)
                        if isinstance(entry.record, FeatureLevelRecord):
                            self.features_epoch = entry.offset + 1
        except CorruptEntryError as error:
            self.is_cut_short = True
            _log.warning("%s; the metadata log ends there", error)

    def _load_bootstrap(self, features: Mapping[str, int], min_insync_replicas: str) -> None:
        fs, path = self.host.fs, f"{self.path}/{BOOTSTRAP}"
        if fs.exists(path):
            self.was_there = True
            entries = list(read_snapshot(fs, path))
            self._bootstrap = [(entry.record, entry.version) for entry in entries]
        else:
            self._bootstrap = [
                (FeatureLevelRecord(name, level), 0) for name, level in features.items()
            ]
            if self.is_writable:
                content = encode_bootstrap(features, self.host.clock.wall_ms())
                write_file(fs, path, content)
        for record, _ in self._bootstrap:
            self.image.apply(record)
        if self.image.features.get(ELIGIBLE_LEADER_REPLICAS):
            # ELR counts replicas against it, so the controller fixes it for the whole cluster.
            safety = ConfigRecord(
                ResourceType.BROKER, "", "min.insync.replicas", min_insync_replicas
            )
            self._bootstrap.append((safety, 0))
            self.image.apply(safety)

    # writing

    def append(self, records: Sequence[MetadataRecord]) -> None:
        """
        Append records durably; up to `RECORDS_MAX` of them hold together or not at all.

        Raises:
            WriteFailedError: the disk refused.
            OSError: the disk refused the sync.

        """
        assert self.is_writable, f"{self.path} is only read"
        if not records:
            return
        epoch, partition = self._lead()
        values = [encode_record(record, self._version_of(record)) for record in records]
        for start in range(0, len(values), RECORDS_MAX):
            self._append(partition, values[start : start + RECORDS_MAX], epoch)
        self._owes_flush |= self._is_flush_put_off
        if not self._is_flush_put_off:
            partition.flush()
        for record in records:
            self.image.apply(record)
        if any(isinstance(record, FeatureLevelRecord) for record in records):
            self.features_epoch = partition.end_offset

    @contextmanager
    def together(self) -> Generator[None]:
        """
        Make durable together, at the end, what is appended until then.

        Raises, at the end:
            WriteFailedError, OSError: the disk refused.

        """
        self._is_flush_put_off = True
        try:
            yield
        finally:
            self._is_flush_put_off = False
            partition = self._partition
            if self._owes_flush and partition is not None:
                self._owes_flush = False
                partition.flush()

    def lead(self) -> tuple[int, int]:
        """
        Win the election of the only voter, unless that was done; return (epoch, end offset).

        Raises as :meth:`append` does.
        """
        assert self.is_writable, f"{self.path} is only read"
        epoch, partition = self._lead()
        if partition.log.recovery_point < partition.end_offset:
            partition.flush()
        return epoch, partition.end_offset

    def _version_of(self, record: MetadataRecord) -> int:
        """Return the version in which the record's kind is written now."""
        if isinstance(record, (PartitionRecord, PartitionChangeRecord)):
            return self.image.metadata_version.partition_record_version
        assert record.VERSION_MAX == 0, f"{type(record).__name__} is not written here"
        return 0

    def _append(self, partition: KafkaPartition, values: Iterable[bytes], epoch: int) -> None:
        start, now_ms = partition.end_offset, self.host.clock.wall_ms()
        batch = encode_values(values, start, epoch=epoch, timestamp_ms=now_ms)
        assert len(batch) <= _RECORD_BYTES_MAX, f"a batch of {len(batch)} bytes"
        partition.append_stored(RecordBatch(batch, len(batch)))

    def _lead(self) -> tuple[int, KafkaPartition]:
        """Win the election, unless that was done; return the epoch and the log."""
        partition = self._partition
        if self._epoch is not None and partition is not None:
            return self._epoch, partition
        if partition is None:
            partition = self._open() if self._is_there() else self._create()
            self._partition = partition
        fs = self.host.fs
        before = QuorumState.read(fs, self.directory) or QuorumState(self.node_id, 0)
        snapshot_epoch = 0 if self._snapshot is None else self._snapshot.epoch
        newest = max(before.leader_epoch, partition.leader_epochs.latest_epoch, snapshot_epoch)
        epoch = newest + 1
        QuorumState(self.node_id, epoch, before.version).write(fs, self.directory)
        start, now_ms = partition.end_offset, self.host.clock.wall_ms()
        # Synced, although a recovery finds it in the log: it may replace a file, and a power loss
        # would leave one of which no start can make anything.
        partition.leader_epochs.assign(epoch, start)
        batch = encode_leader_change(self.node_id, start, epoch=epoch, timestamp_ms=now_ms)
        partition.append_stored(RecordBatch(batch, len(batch)))
        values = self._opening_values()
        if values:
            self._append(partition, values, epoch)
            self._bootstrap = []
        self._epoch = epoch
        return epoch, partition

    def _create(self) -> KafkaPartition:
        """Make the log's directory, durably."""
        fs = self.host.fs
        fs.make_directory(self.directory)
        PartitionMetadata(METADATA_TOPIC).write(fs, self.directory, sync=False)
        fs.sync_directory(self.path)
        return self._open(is_new=True)

    def _opening_values(self) -> list[bytes]:
        """Return what a new leader has to say first."""
        if self._bootstrap:
            values = [
                record.value if isinstance(record, OtherRecord) else encode_record(record, version)
                for record, version in self._bootstrap
            ]
            if self.image.metadata_version.has_transactions:
                begin, end = BeginTransactionRecord("Bootstrap records"), EndTransactionRecord()
                return [encode_record(begin), *values, encode_record(end)]
            return values
        if self.image.is_in_transaction:
            aborted = AbortTransactionRecord("Controller failover")
            self.image.apply(aborted)
            return [encode_record(aborted)]
        return []

    def close(self) -> None:
        """Let go of the files in good order."""
        if self._partition is not None:
            self._partition.close()
            self._partition = None

    def abandon(self) -> None:
        """Let go of the files as they are."""
        if self._partition is not None:
            self._partition.log.close()
            self._partition = None
