"""Segments of a partition that a task writes, with their indexes, one behind the other."""

from __future__ import annotations

from pathlib import Path

import attrs

from logstore.deferred_sync import DeferredFileSystem
from logstore.os_host import system_host
from logstore.segments.kafka.config import LogConfig
from logstore.segments.kafka.record_batch import RecordBatch
from logstore.segments.kafka.segment import KafkaSegment
from logstore.segments.kafka.segment_files import SegmentFiles
from logstore.streamed_files import StreamedFileSystem

#: a converted segment may cover any time
_FOREVER_MS = 2**62


class SegmentWriter:
    """
    Writes batches to the segments of a partition, as its broker would; durable when it is closed.

    Segments roll by size, and where an index is full or could not say where a batch is. With an
    `fs` whose syncs are deferred they are durable when that is synced.
    """

    def __init__(
        self, directory: Path, config: LogConfig, fs: DeferredFileSystem | None = None
    ) -> None:
        self._fs = fs or StreamedFileSystem()
        self._host = attrs.evolve(system_host(), fs=self._fs)
        self._directory = str(directory)
        config = attrs.evolve(
            config, segment_ms=_FOREVER_MS, max_compaction_lag_ms=_FOREVER_MS, segment_jitter_ms=0
        )
        self._files = SegmentFiles(self._host, self._directory, config, is_new=True)
        self._segment: KafkaSegment | None = None

    def append(self, data: memoryview) -> int:
        """Write a batch; return its position in its segment."""
        batch = RecordBatch(data, len(data))
        segment = self._segment
        if segment is None or not segment.has_room_for(batch):
            self._seal()
            self._segment = segment = self._files.create(batch.base_offset)
        return segment.append(batch)

    def _seal(self) -> None:
        segment = self._segment
        if segment is not None:
            segment.seal()
            segment.flush()
            segment.close()

    def close(self) -> None:
        """Make all segments durable."""
        self._seal()
        if isinstance(self._fs, StreamedFileSystem):
            self._fs.close()
        self._fs.sync_directory(self._directory)
