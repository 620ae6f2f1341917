"""Rebuild the derived files of one partition, in place, one at a time."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cached_property

import attrs

from logstore.errors import CorruptEntryError, CorruptFileError, StorageError
from logstore.host import FileSystem, Host, read_file, write_file
from logstore.segments.kafka.checkpoints import LEADER_EPOCHS
from logstore.segments.kafka.leader_epochs import LeaderEpochs
from logstore.segments.kafka.producer_snapshot import snapshot_name
from logstore.segments.kafka.producer_state import ProducerStates
from logstore.segments.kafka.record import CorruptRecordError
from logstore.segments.kafka.segment_files import INDEX, LOG, SNAPSHOT, TIME_INDEX
from logstore.segments.kafka.transaction_index import EXTENSION as TRANSACTION_INDEX
from logstore.tools.inspection.rebuilding.derived_files import (
    DerivedFile,
    PartitionFold,
    derive_files,
)
from logstore.tools.inspection.rebuilding.outcome import Outcome, Rebuilt
from logstore.tools.inspection.verification.partition_check import PartitionCheck

_STEM_CHARACTERS = 20
_ENTRY_BYTES = {INDEX: 8, TIME_INDEX: 12}
_KEPT = (SNAPSHOT, TRANSACTION_INDEX, INDEX, TIME_INDEX)
_LOG_NAME = re.compile(r"([0-9]{20})\.log")


def log_bases(fs: FileSystem, directory: str) -> list[int]:
    """Return the base offsets of the logs in a partition's directory."""
    names = [entry.name for entry in fs.list_directory(directory) if not entry.is_directory]
    return sorted(int(found[1]) for name in names if (found := _LOG_NAME.fullmatch(name)))


def log_bytes(fs: FileSystem, directory: str) -> int:
    """Return how many bytes the logs of a partition have."""
    return sum(
        entry.size_bytes
        for entry in fs.list_directory(directory)
        if _LOG_NAME.fullmatch(entry.name) is not None
    )


@attrs.frozen(slots=False)
class PartitionRebuild:
    """
    The rebuild of one partition directory.

    `log_start_offset` is where the log starts by the checkpoint beside; without `is_changing` it
    is only told what would be done. `kept` are files that stay as they are though the logs alone
    would give others: they may tell of batches that retention, compaction or a restart took away.
    Of the indexes among them, which hold entries in other places if a broker was restarted or is
    one of before 0.11, those stay that have enough entries: a restart may cost one. The cleaner
    indexes in long steps: where it was (`is_cleaned`), any number is enough.
    """

    host: Host
    directory: str
    index_interval_bytes: int
    log_start_offset: int | None = None
    is_changing: bool = True
    kept: frozenset[str] = frozenset()
    is_cleaned: bool = False

    def run(self, note: Callable[[int], None]) -> Iterator[Rebuilt]:
        """
        Yield every derived file once it is right.

        Raises:
            CorruptEntryError: a log is damaged; files of the segments before it are right.
            StorageError: a transaction marker cannot be read.

        """
        fs = self.host.fs
        bases = log_bases(fs, self.directory)
        if not bases:
            return
        start_offset = max(bases[0], self.log_start_offset or 0)
        fold = PartitionFold(self.index_interval_bytes, start_offset, self._states(bases[0]))
        try:
            for file in derive_files(fs, self.directory, bases, fold, note):
                rebuilt = self._settle(file)
                if rebuilt is not None:
                    yield rebuilt
        except CorruptRecordError as error:
            raise StorageError(f"{self.directory}: {error}") from error

    def _states(self, base_offset: int) -> ProducerStates:
        """Return the producers at the start: those of the first snapshot, if there is one."""
        states = ProducerStates()
        path = f"{self.directory}/{snapshot_name(base_offset)}"
        if base_offset and self.host.fs.exists(path):
            try:
                states.load(self.host.fs, path)
            except CorruptFileError:
                return ProducerStates()
        return states

    def _settle(self, file: DerivedFile) -> Rebuilt | None:
        """Write a file unless it is right; None where it need not be there."""
        fs, path = self.host.fs, f"{self.directory}/{file.name}"
        before = read_file(fs, path) if fs.exists(path) else None
        if before is not None and (before == file.content or self._keeps(file, before)):
            size = len(before)
            return Rebuilt(file.name, Outcome.UNCHANGED, size, size)
        if before is None and not file.is_needed:
            return None
        if self.is_changing:
            write_file(fs, path, file.content)
        before_bytes = None if before is None else len(before)
        outcome = Outcome.MADE if before is None else Outcome.REPLACED
        return Rebuilt(file.name, outcome, before_bytes, len(file.content))

    def _keeps(self, file: DerivedFile, before: bytes) -> bool:
        if file.name not in self.kept:
            return False
        entry_bytes = _ENTRY_BYTES.get(file.name[_STEM_CHARACTERS:])
        if entry_bytes is None:
            return True
        enough_bytes = len(file.content) - entry_bytes * self._restart_count
        is_enough = self.is_cleaned or len(before) >= enough_bytes
        return is_enough and _is_trimmed(before, entry_bytes)

    @cached_property
    def _restart_count(self) -> int:
        """How often the log was opened anew, as far as leader epochs tell."""
        if LEADER_EPOCHS not in self.kept:
            return 0
        return max(len(LeaderEpochs.load(self.host.fs, self.directory).entries) - 1, 0)


def _is_trimmed(data: bytes, entry_bytes: int) -> bool:
    """Tell whether an index holds entries to its end: one that is in use ends with zeros."""
    return len(data) % entry_bytes == 0 and (not data or any(data[-entry_bytes:]))


def _ignore(size_bytes: int) -> None:
    del size_bytes


def files_to_keep(check: PartitionCheck) -> frozenset[str]:
    """
    Return the files of a partition that are right and hold what its logs may not tell any more.

    Raises:
        CorruptEntryError: a log is damaged.

    """
    segments = [task.run(check.fs, _ignore) for task in check.tasks()]
    wrong: set[str] = set()
    for finding in check.conclude(segments):
        if not finding.is_damage:
            continue
        wrong.add(finding.file)
        if finding.file.endswith(LOG) and finding.position is not None:
            path = f"{check.directory}/{finding.file}"
            raise CorruptEntryError(path, finding.position, finding.text)
    names = {name for name in check.sizes if name.endswith(_KEPT) or name == LEADER_EPOCHS}
    return frozenset(names - wrong)
