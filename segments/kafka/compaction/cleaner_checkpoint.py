"""
``cleaner-offset-checkpoint``: up to where each compacted log is clean.

Written after a pass, when what it has replaced is durable: a crash in between only means that the
next pass does the same again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from logstore.errors import CorruptFileError
from logstore.host import FileSystem
from logstore.segments.kafka import checkpoints
from logstore.segments.kafka.partition import KafkaPartition

_log = logging.getLogger(__name__)


class CleanerCheckpoint:
    """
    The checkpoint of one data directory; `partitions` returns those that there are.

    Entries are kept by partition, not by name: a topic that is made anew has none. One that
    nobody can read is an empty one: then all counts as dirty.
    """

    def __init__(
        self,
        fs: FileSystem,
        directory: str,
        partitions: Callable[[], Iterable[KafkaPartition]],
    ) -> None:
        self._fs = fs
        self._path = f"{directory}/{checkpoints.CLEANER}"
        self._partitions = partitions
        self._offsets: dict[KafkaPartition, int] = {}
        try:
            found = checkpoints.read_offset_checkpoint(fs, self._path)
        except CorruptFileError as error:
            _log.warning("%s; everything counts as dirty", error)
            found = {}
        for partition in partitions():
            offset = found.get((partition.topic, partition.index))
            if offset is not None:
                self._offsets[partition] = offset

    def get(self, partition: KafkaPartition) -> int | None:
        """Return up to where the log is clean, None if no pass has ended."""
        return self._offsets.get(partition)

    def put(self, partition: KafkaPartition, offset: int) -> None:
        """Note, durably, up to where the log is clean; forget the partitions that are gone."""
        self._offsets[partition] = offset
        there = set(self._partitions())
        self._offsets = {p: o for p, o in self._offsets.items() if p in there}
        checkpoints.write_offset_checkpoint(
            self._fs,
            self._path,
            {(p.topic, p.index): offset for p, offset in self._offsets.items()},
        )
