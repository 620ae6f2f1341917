"""The scans of many segments in Spark's workers: what crosses the JVM is what was found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import attrs

from logstore.compat.spark.worker_tasks import run_in_workers
from logstore.passing_files import PassingFileSystem
from logstore.tools.inspection.verification.segment_task import ScannedSegment, SegmentTask

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from logstore.host import FileSystem
    from logstore.tools.inspection.verification.scans import Progress

#: how many segments the driver asks for at a time: what was found in them it holds
_SEGMENTS_AT_A_TIME = 20_000


@attrs.frozen
class SparkScans:
    """Scans in the workers of a session, which must see the same files under the same names."""

    spark: SparkSession

    def __call__(
        self,
        fs: FileSystem,
        partitions: Sequence[Sequence[SegmentTask]],
        progress: Progress | None,
    ) -> Iterator[list[ScannedSegment | None]]:
        """Yield what the scans of each partition found, both in the order given; None: gone."""
        del fs  # each worker has its own
        total = sum(task.size_bytes for tasks in partitions for task in tasks)
        before = 0
        for wave in _waves(partitions):
            pieces = [task for tasks in wave for task in tasks]

            def tell(done: int, _: int, before: int = before) -> None:
                if progress is not None:
                    progress(before + done, total)

            found = iter(run_in_workers(self.spark, scan_here, pieces, tell))
            for tasks in wave:
                yield [next(found) for _ in tasks]
            before += sum(task.size_bytes for task in pieces)


def scan_here(tasks: list[SegmentTask]) -> list[ScannedSegment | None]:
    """Scan segments in this process."""
    fs = PassingFileSystem()
    return [task.run_if_there(fs, _ignore) for task in tasks]


def _ignore(size_bytes: int) -> None:
    del size_bytes


def _waves(
    partitions: Sequence[Sequence[SegmentTask]],
) -> Iterator[list[Sequence[SegmentTask]]]:
    """Yield runs of whole partitions that together have not too many segments."""
    wave: list[Sequence[SegmentTask]] = []
    count = 0
    for tasks in partitions:
        if wave and count + len(tasks) > _SEGMENTS_AT_A_TIME:
            yield wave
            wave, count = [], 0
        wave.append(tasks)
        count += len(tasks)
    if wave:
        yield wave
