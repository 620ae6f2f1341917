"""A world that stops before every operation, so that the power can go there."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

import pytest

from logstore.host import Clock, Host
from logstore.segments.kafka.cluster_metadata import metadata_log
from logstore.segments.kafka.config import LogConfig, parse_topic_configs
from logstore.testing import ManualClock, SimulatedDisk, SimulatedHost

SECTOR_BYTES = 32


class WatchedDisk(SimulatedDisk):
    """Calls `watch` before every operation that changes something."""

    def __init__(self, clock: Clock, watch: Callable[[], None]) -> None:
        super().__init__(clock, sector_bytes=SECTOR_BYTES)
        self.journal.is_recording = False
        self._watch = watch

    def _count_operation(self, path: str, *, changes: bool) -> None:
        self._watch()
        super()._count_operation(path, changes=changes)


class WatchedHost(SimulatedHost):
    """Calls `visit` with itself before every operation; forks of it are not watched."""

    def __init__(self, visit: Callable[[SimulatedHost], None], seed: int = 0) -> None:
        clock = ManualClock()
        disk = WatchedDisk(clock, lambda: visit(self))
        Host.__init__(self, disk, clock, random.Random(seed))


def keep_metadata_indexes_small(patch: pytest.MonkeyPatch) -> None:
    """Preallocate 1 kB for the indexes of the metadata log: 10 MB of zeros take a test's time."""

    def small(settings: Mapping[str, str]) -> LogConfig:
        return parse_topic_configs({**settings, "segment.index.bytes": "1200"})

    patch.setattr(metadata_log, "parse_topic_configs", small)
