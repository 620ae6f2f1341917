"""Verify a data directory or one partition: scans anywhere, findings in order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache

import attrs

from logstore.errors import CorruptFileError, ForeignDirectoryError
from logstore.host import FileSystem
from logstore.segments.kafka import checkpoints, clean_shutdown
from logstore.segments.kafka.data_directory import LOCK_FILE
from logstore.segments.kafka.directory_name import (
    METADATA_DIRECTORY,
    DirectoryNameError,
    PartitionDirectory,
    Role,
    is_skipped_directory,
    parse_directory_name,
)
from logstore.segments.kafka.meta_properties import FILE_NAME as META_PROPERTIES
from logstore.segments.kafka.meta_properties import MetaProperties
from logstore.tools.inspection.cluster_image import cluster_image
from logstore.tools.inspection.lock_holder import lock_holder
from logstore.tools.inspection.survey import holds_a_log, is_partition, listed
from logstore.tools.inspection.verification.finding import Finding, Severity
from logstore.tools.inspection.verification.partition_check import (
    PartitionCheck,
    PartitionContext,
)
from logstore.tools.inspection.verification.scans import Progress, Scans, scan_on_threads
from logstore.tools.inspection.verification.second_look import lasting_findings
from logstore.tools.inspection.verification.segment_task import ScannedSegment
from logstore.tools.inspection.verification.topic_ids import topic_id_findings
from logstore.tools.inspection.verification.transactions import Coordinated

_COORDINATORS = "__transaction_state"
#: checkpoint -> what it says of an offset, that may not be beyond the end of the log
_BOUNDED = {
    checkpoints.RECOVERY_POINT: "all below offset {} is on disk",
    checkpoints.HIGH_WATERMARK: "all below offset {} is replicated",
    checkpoints.LOG_START: "the log starts at offset {}",
}


@attrs.frozen
class _Surroundings:
    """The checkpoints of a data directory, whether a broker has it, and whether it stopped well."""

    tables: dict[str, dict[tuple[str, int], int]]
    is_live: bool
    is_clean: bool
    has_records: bool
    coordinated: Callable[[], Coordinated | None]

    def context(self, place: PartitionDirectory) -> PartitionContext:
        key = (place.topic, place.partition)
        points = self.tables.get(checkpoints.RECOVERY_POINT, {})
        start = self.tables.get(checkpoints.LOG_START, {}).get(key) if place.is_live else None
        return PartitionContext(
            log_start_offset=start,
            is_cleaned=key in self.tables.get(checkpoints.CLEANER, {}),
            is_live=self.is_live,
            recovery_point=None if self.is_clean else points.get(key, 0),
            has_records=self.has_records,
            coordinated=self.coordinated,
        )


class DirectoryCheck:
    """
    The verification of `directory`: a data directory, or one partition's.

    `beside` are the node's other directories, or those of other nodes: coordinators that are in
    them count.

    Raises:
        ForeignDirectoryError: it is neither.

    """

    def __init__(
        self,
        fs: FileSystem,
        directory: str,
        *,
        has_records: bool = False,
        beside: Sequence[str] = (),
    ) -> None:
        self.fs = fs
        self.directory = directory
        self._beside = beside
        entries = listed(fs, directory)
        self.is_partition = is_partition(entries)
        self._names = [entry.name for entry in entries]
        self._early: list[Finding] = []
        if self.is_partition:
            self._roots = [""]
            around = directory.rpartition("/")[0] or "/"
        else:
            self._roots = [
                entry.name
                for entry in entries
                if entry.is_directory and self._is_partition_name(entry.name)
            ]
            around = directory
            if not self._roots and META_PROPERTIES not in self._names:
                raise ForeignDirectoryError(
                    f"{directory}: no meta.properties, no partition and no .log file is in it; "
                    "name a directory of Kafka's log.dirs, or of one partition, or a RocketMQ store"
                )
        self._around = around
        self._surroundings = self._look_around(around, has_records)

    def _is_partition_name(self, name: str) -> bool:
        try:
            return parse_directory_name(name).role is not Role.DELETE
        except DirectoryNameError:
            if is_skipped_directory(name):
                return name == METADATA_DIRECTORY
            return holds_a_log(self.fs, f"{self.directory}/{name}")

    def _look_around(self, around: str, has_records: bool) -> _Surroundings:
        tables: dict[str, dict[tuple[str, int], int]] = {}
        for name in (*_BOUNDED, checkpoints.CLEANER):
            path = f"{around}/{name}"
            try:
                tables[name] = checkpoints.read_offset_checkpoint(self.fs, path)
            except CorruptFileError as error:
                if not self.is_partition:
                    reason = f"cannot be read: {error.reason}"
                    self._early.append(Finding("checkpoint", name, reason))
        if META_PROPERTIES in self._names:
            try:
                MetaProperties.read(self.fs, self.directory)
            except CorruptFileError as error:
                reason = f"cannot be read: {error.reason}"
                self._early.append(Finding("metadata", META_PROPERTIES, reason))
        lock = f"{around}/{LOCK_FILE}"
        is_live = self.fs.exists(lock) and lock_holder(lock) is not None
        is_data_directory = self.fs.exists(f"{around}/{META_PROPERTIES}")
        return _Surroundings(
            tables,
            is_live,
            not is_data_directory or clean_shutdown.exists(self.fs, around),
            has_records,
            cache(lambda: self._coordinated(around)),
        )

    def _coordinated(self, around: str) -> Coordinated | None:
        places = [around, *self._beside]
        folders = {
            entry.name.rpartition("-")[2]: f"{place}/{entry.name}"
            for place in reversed(places)
            for entry in self.fs.list_directory(place)
            if entry.is_directory and entry.name.rpartition("-")[0] == _COORDINATORS
        }
        if not folders:
            return None
        # Only with an open transaction, and it brings all that groups write along.
        from logstore.tools.inspection.verification.coordinators import read_coordinators

        images = (cluster_image(self.fs, place) for place in places)
        image = next((one for one in images if one is not None), None)
        topic = None if image is None else image.topics.get(_COORDINATORS)
        wanted = range(len(folders)) if topic is None else topic.partitions
        is_all = all(str(index) in folders for index in wanted)
        return read_coordinators(self.fs, [*folders.values()], is_all=is_all)

    def findings(
        self, progress: Progress | None = None, scans: Scans = scan_on_threads
    ) -> Iterator[Finding]:
        """
        Yield every finding, partition by partition; `progress` is told (done, all) bytes.

        `scans` says where segments are scanned: on a few threads here, or in Spark's workers.
        """
        yield from self._early
        found = ((root, self._check_if_there(root)) for root in self._roots)
        checks = [(root, check) for root, check in found if check is not None]
        tasks = [check.tasks() for _, check in checks]
        segments = scans(self.fs, tasks, progress)
        for (root, check), scanned in zip(checks, segments, strict=True):
            yield from self._settled(check, root, scanned)
        if not self.is_partition:
            live = {root: one.place.topic for root, one in checks if one.place.is_live}
            yield from topic_id_findings(self.fs, self.directory, live)

    def _settled(
        self, check: PartitionCheck, root: str, scanned: list[ScannedSegment | None]
    ) -> Iterable[Finding]:
        """Return what is wrong with a partition; beside a broker that writes, what stays wrong."""
        first = self._concluded_if_whole(check, root, scanned)
        if first is not None and not self._surroundings.is_live:
            return first
        found = lasting_findings(first, lambda: self._looked_at_again(root))
        if found is not None:
            return found
        text = "is not checked: its files change faster than they can be read"
        return [Finding("unsettled", root or ".", text, severity=Severity.NOTE)]

    def _looked_at_again(self, root: str) -> list[Finding] | None:
        """Check a partition once more, by what the checkpoints say now; None as files went."""
        self._surroundings = self._look_around(self._around, self._surroundings.has_records)
        check = self._check_if_there(root)
        if check is None:
            return []
        (scanned,) = scan_on_threads(self.fs, [check.tasks()], None)
        return self._concluded_if_whole(check, root, scanned)

    def _concluded_if_whole(
        self, check: PartitionCheck, root: str, scanned: list[ScannedSegment | None]
    ) -> list[Finding] | None:
        """Return all findings of a partition; None where a file went while they were made."""
        segments = [one for one in scanned if one is not None]
        if len(segments) < len(scanned):
            return None
        try:
            return list(self._concluded(check, root, segments))
        except FileNotFoundError:
            return None

    def _check_if_there(self, root: str) -> PartitionCheck | None:
        """Return the check of a partition; None if a broker has removed it."""
        try:
            return self._check(root)
        except FileNotFoundError:
            return None

    def _check(self, root: str) -> PartitionCheck:
        path = f"{self.directory}/{root}".rstrip("/")
        name = path.rpartition("/")[2]
        try:
            place = parse_directory_name(name)
        except DirectoryNameError:
            place = PartitionDirectory(name, -1)
        return PartitionCheck(self.fs, path, place, self._surroundings.context(place))

    def _concluded(
        self, check: PartitionCheck, root: str, segments: list[ScannedSegment]
    ) -> Iterator[Finding]:
        prefix = f"{root}/" if root else ""
        for finding in check.conclude(segments):
            yield attrs.evolve(finding, file=f"{prefix}{finding.file}")
        if self.is_partition or not check.place.is_live:
            return
        if segments and segments[-1].scan.is_cut:
            return  # that it is shorter than it was has been said
        end = segments[-1].scan.next_offset if segments else 0
        key = (check.place.topic, check.place.partition)
        for name, said in _BOUNDED.items():
            offset = self._surroundings.tables.get(name, {}).get(key)
            if offset is not None and offset > end:
                yield Finding(
                    "checkpoint-beyond-end",
                    name,
                    f"says of {root} that {said.format(offset)}, but its log ends at {end}",
                    offset=offset,
                )
