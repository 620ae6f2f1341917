"""
Where logs start, as ``log-start-offset-checkpoint`` has to say it.

An ordinary log is told of only if it starts within a segment. A tiered one always is: below its
oldest segment there may be remote ones, which are its own for as long as the checkpoint says so.
Nobody reads them here; the broker that comes back to the directory does, and one that found another
start would remove them, or offer offsets that are gone.

Source: ``LogManager.checkpointLogStartOffsetsInDir``, ``LogLoader.load``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from logstore.segments.kafka.partition import KafkaPartition


class LogStarts:
    """What is to be written of some partitions; `stored` is what stood there when they opened."""

    def __init__(
        self, stored: Mapping[tuple[str, int], int], partitions: Iterable[KafkaPartition]
    ) -> None:
        #: partition -> where it started here when it was opened
        self._opened = {
            partition: partition.start_offset
            for partition in partitions
            if partition.config.remote_storage_enable
        }
        self._stored = stored

    def of(self, partitions: Iterable[KafkaPartition]) -> dict[tuple[str, int], int]:
        """Return the starts by topic and number."""
        starts: dict[tuple[str, int], int] = {}
        for partition in partitions:
            key, start = (partition.topic, partition.index), partition.start_offset
            if not partition.config.remote_storage_enable:
                if start > partition.log.start_offset:
                    starts[key] = start
            elif self._opened.get(partition) == start:  # nothing was removed since
                starts[key] = min(self._stored.get(key, 0), start)
            else:
                starts[key] = start
        return starts
