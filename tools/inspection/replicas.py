"""Which of several directories has the copy of a partition that counts."""

from __future__ import annotations

from collections.abc import Sequence

from logstore.host import FileSystem
from logstore.segments.kafka.leader_epochs import LeaderEpochs
from logstore.tools.inspection.stored_partition import StoredPartition


def directories_with(fs: FileSystem, directories: Sequence[str], name: str) -> list[str]:
    """Return those that have the partition `name`, the one that counts first."""
    having = [one for one in directories if fs.is_directory(f"{one}/{name}")]
    if len(having) < 2:
        return having
    return sorted(having, key=lambda one: _rank(fs, f"{one}/{name}"), reverse=True)


def _rank(fs: FileSystem, directory: str) -> tuple[int, int]:
    """Return what Kafka elects a leader by: the latest epoch, then how far the log goes."""
    epoch = LeaderEpochs.load_or_flaw(fs, directory).latest_epoch
    return epoch, StoredPartition(fs, directory).end_offset
