"""
How full the disk is, and what that means for a store (``CleanCommitLogService``).

Above 75 % of the volume expired files are removed at any hour, above 85 % the oldest files go
whether expired or not, above 90 % puts are refused until there is room again.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable

import attrs

from logstore.host import FileSystem


class DiskState(enum.Enum):
    """What is to be done about a disk that is so full."""

    FINE = "nothing"
    ABOVE_LIMIT = "expired files go at any hour"
    FORCED = "the oldest files go, expired or not"
    FULL = "as FORCED, and nothing is put"


@attrs.frozen
class DiskRule:
    """The three ratios, as parts of one."""

    max_used_ratio: float = 0.75
    force_ratio: float = 0.85
    warning_ratio: float = 0.90

    def state(self, log_ratio: float, queue_ratio: float) -> DiskState:
        """Return what follows from the ratios of the commit log's volume and the queues'."""
        for ratio in (log_ratio, queue_ratio):
            if ratio > self.warning_ratio:
                return DiskState.FULL
            if ratio > self.force_ratio:
                return DiskState.FORCED
        if max(log_ratio, queue_ratio) > self.max_used_ratio:
            return DiskState.ABOVE_LIMIT
        return DiskState.FINE


def used_ratio(fs: FileSystem, path: str) -> float:
    """
    Return the part of the volume at `path` that is in use, -1 where that cannot be said.

    Free space that is not ours is left out of both, the rest rounded up to a whole percent. What
    is not there yet will be on the volume of what is above it.
    Source: ``UtilAll.getDiskPartitionSpaceUsedPercent``.
    """
    while not fs.exists(path) and path.strip("/"):
        path = path.rpartition("/")[0] or "/"
    try:
        space = fs.volume_space(path)
    except OSError:
        return -1.0
    used_bytes = space.total_bytes - space.reserved_bytes - space.usable_bytes
    entire_bytes = used_bytes + space.usable_bytes
    if entire_bytes <= 0:
        return -1.0
    return -(-used_bytes * 100 // entire_bytes) / 100


def smallest_ratio(fs: FileSystem, paths: Iterable[str]) -> float:
    """Return the smallest of the ratios of several places: new files go to the emptiest."""
    return min((used_ratio(fs, path) for path in paths), default=-1.0)
