"""
The tiered segments below one location: listed, described, removed.

A segment that we copied has a manifest, which says whether all of it is there. One that Kafka's
``LocalTieredStorage`` copied has none, because its broker keeps that knowledge in a topic: what is
needed is then read from the objects themselves, from the ends of the log and of its indexes.

Source: ``LocalTieredStorage``, ``RemoteStorageManager`` (KIP-405).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

import attrs

from logstore.errors import CorruptFileError, StorageError
from logstore.host import FileSystem, Host, read_file, write_file
from logstore.segments.kafka.batch_walk import walk_batches
from logstore.segments.kafka.offset_index import OffsetIndex
from logstore.segments.kafka.remote.fsspec_files import is_url, open_url
from logstore.segments.kafka.remote.lineage import Epochs, epochs_between, read_epochs
from logstore.segments.kafka.remote.object_names import (
    INDEX_BYTES_MAX,
    MANIFEST_SUFFIX,
    MANIFESTS,
    OBJECTS,
    ObjectKind,
    RemotePartition,
    SegmentId,
    parse_directory,
    parse_object,
)
from logstore.segments.kafka.remote.segment_metadata import SegmentMetadata, SegmentState
from logstore.segments.kafka.time_index import TimeIndex

_log = logging.getLogger(__name__)


class MissingObjectError(StorageError):
    """A tiered object, or a partition of which there should be some, is not there."""


class RemoteStorage:
    """
    What is stored below `location` of a file system.

    The file system is a host's, or one of fsspec (:func:`open_storage`).
    """

    def __init__(self, fs: FileSystem, location: str) -> None:
        self.fs = fs
        self.location = location

    # names

    def directory(self, partition: RemotePartition) -> str:
        """Return where the objects of a partition stand."""
        return f"{self.location}/{OBJECTS}/{partition.directory_name}"

    def path(self, metadata: SegmentMetadata, kind: ObjectKind) -> str:
        """Return the path of one object."""
        return f"{self.directory(metadata.partition)}/{metadata.segment.stem}{kind.value}"

    def manifest_path(self, metadata: SegmentMetadata) -> str:
        """Return the path of the segment's manifest."""
        directory = f"{self.location}/{MANIFESTS}/{metadata.partition.directory_name}"
        return f"{directory}/{metadata.segment.stem}{MANIFEST_SUFFIX}"

    # what is there

    def partitions(self) -> list[RemotePartition]:
        """Return the partitions of which there are objects, by topic and number."""
        found: list[RemotePartition] = []
        for name, _ in self._entries(f"{self.location}/{OBJECTS}", is_directory=True):
            partition = parse_directory(name)
            if partition is not None:
                found.append(partition)
        return sorted(found)

    def find(self, topic: str, partition: int) -> RemotePartition:
        """
        Return the one stored partition of that topic and number.

        Raises:
            MissingObjectError: there is none, or several topics had that name.

        """
        found = [p for p in self.partitions() if (p.topic, p.partition) == (topic, partition)]
        if len(found) != 1:
            names = ", ".join(one.directory_name for one in found) or "none"
            raise MissingObjectError(
                f"{self.location}: {topic}-{partition} is stored as: {names}; one is wanted"
            )
        return found[0]

    def segments(self, partition: RemotePartition) -> list[SegmentMetadata]:
        """
        Return the readable segments of a partition, oldest first.

        Raises:
            CorruptFileError: a manifest, or an object that stands in for one, cannot be understood.

        """
        manifests = self._manifests(partition)
        found: list[SegmentMetadata] = []
        for segment, sizes in self._bundles(partition).items():
            metadata = manifests.get(segment)
            if metadata is None:
                metadata = self._describe(partition, segment, sizes)
            if metadata is not None and metadata.is_readable:
                found.append(metadata)
        return sorted(found, key=lambda metadata: (metadata.start_offset, metadata.end_offset))

    def _bundles(self, partition: RemotePartition) -> dict[SegmentId, dict[ObjectKind, int]]:
        """Return the sizes of the objects of every segment."""
        found: dict[SegmentId, dict[ObjectKind, int]] = {}
        for name, size_bytes in self._entries(self.directory(partition), is_directory=False):
            parsed = parse_object(name)
            if parsed is not None:
                found.setdefault(parsed[0], {})[parsed[1]] = size_bytes
        return found

    def _manifests(self, partition: RemotePartition) -> dict[SegmentId, SegmentMetadata]:
        directory = f"{self.location}/{MANIFESTS}/{partition.directory_name}"
        found: dict[SegmentId, SegmentMetadata] = {}
        for name, _ in self._entries(directory, is_directory=False):
            if name.endswith(MANIFEST_SUFFIX):
                path = f"{directory}/{name}"
                metadata = SegmentMetadata.from_json(read_file(self.fs, path), path)
                if (metadata.partition, metadata.segment.stem + MANIFEST_SUFFIX) != (
                    partition,
                    name,
                ):
                    raise CorruptFileError(path, "is the manifest of another segment")
                found[metadata.segment] = metadata
        return found

    def _entries(self, directory: str, *, is_directory: bool) -> list[tuple[str, int]]:
        if not self.fs.exists(directory):
            return []
        entries = self.fs.list_directory(directory)
        return [(e.name, e.size_bytes) for e in entries if e.is_directory == is_directory]

    # what the objects say of themselves

    def _describe(
        self, partition: RemotePartition, segment: SegmentId, sizes: Mapping[ObjectKind, int]
    ) -> SegmentMetadata | None:
        """Return what is known of a segment without a manifest; None if objects are missing."""
        missing = [kind for kind in ObjectKind if not kind.is_optional and kind not in sizes]
        if missing:
            names = ", ".join(kind.value for kind in missing)
            _log.warning("%s: %s lacks %s; passed over", partition, segment.stem, names)
            return None
        start = segment.start_offset
        found = SegmentMetadata(partition, segment, start, -1, sizes[ObjectKind.LOG], ())
        index = OffsetIndex.open(
            self.fs, self.path(found, ObjectKind.OFFSET_INDEX), start, INDEX_BYTES_MAX
        )
        index.sanity_check()
        times = TimeIndex.open(
            self.fs, self.path(found, ObjectKind.TIME_INDEX), start, INDEX_BYTES_MAX
        )
        times.sanity_check()
        end_offset = self._last_offset(found, index.last_entry[1])
        return attrs.evolve(
            found,
            end_offset=end_offset,
            max_timestamp_ms=times.last_entry[0],
            leader_epochs=epochs_between(self.leader_epochs(found), start, end_offset + 1),
            is_transaction_index_empty=not sizes.get(ObjectKind.TRANSACTION_INDEX),
        )

    def _last_offset(self, metadata: SegmentMetadata, position: int) -> int:
        """Walk on from the last index entry; return the last offset of the last batch."""
        path = self.path(metadata, ObjectKind.LOG)
        file = self.fs.open(path, writable=False)
        try:
            last_offset = -1
            for batch in walk_batches(file, path, position, is_checked=False):
                last_offset = batch.last_offset
        finally:
            file.close()
        if last_offset < metadata.start_offset:
            raise CorruptFileError(path, f"its last batch ends at {last_offset}, before it starts")
        return last_offset

    def leader_epochs(self, metadata: SegmentMetadata) -> Epochs:
        """Return (epoch, start offset) of every epoch of the partition up to the segment's end."""
        path = self.path(metadata, ObjectKind.LEADER_EPOCHS)
        return read_epochs(self.fs, path)

    # changes

    def note(self, metadata: SegmentMetadata) -> None:
        """Write the segment's manifest in place of an older one."""
        path = self.manifest_path(metadata)
        self.fs.make_directory(path.rpartition("/")[0])
        write_file(self.fs, path, metadata.to_json())

    def remove(self, metadata: SegmentMetadata) -> None:
        """Remove a segment: marked first, so that one that is half removed is never read."""
        self.note(attrs.evolve(metadata, state=SegmentState.DELETE_SEGMENT_STARTED))
        for kind in ObjectKind:
            path = self.path(metadata, kind)
            if self.fs.exists(path):
                self.fs.remove(path)
        self.fs.sync_directory(self.directory(metadata.partition))
        self.fs.remove(self.manifest_path(metadata))


def open_storage(location: str, host: Host, **options: object) -> RemoteStorage:
    """
    Return what is stored at a local directory, or at a URL that fsspec knows.

    `options` are those of fsspec's file system (keys, endpoints). Nothing is read or made yet.
    """
    if is_url(location):
        return RemoteStorage(*open_url(location, **options))
    return RemoteStorage(host.fs, location.rstrip("/"))
