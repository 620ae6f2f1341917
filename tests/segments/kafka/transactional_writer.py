"""One partition on a simulated disk, and a transactional producer that writes to it."""

from __future__ import annotations

from typing import Any

from logstore.segments.kafka.config import LogConfig
from logstore.segments.kafka.partition import KafkaPartition
from logstore.segments.kafka.record import Record, encode_batch
from logstore.segments.kafka.segment_files import SegmentFiles
from logstore.segments.kafka.transaction_verification import Verification
from logstore.testing import SimulatedHost

DIRECTORY = "/t-0"
NOW_MS = 1_700_000_000_000
CONFIG = LogConfig(segment_bytes=400, index_interval_bytes=100, segment_index_bytes=240)
ONE, TWO = 7, 8


def a_host() -> SimulatedHost:
    """Return a disk with the directory of a partition."""
    host = SimulatedHost()
    host.fs.make_directory(DIRECTORY)
    host.fs.sync_directory("/")
    return host


def open_partition(
    host: SimulatedHost, recovery_point: int | None = None, config: LogConfig = CONFIG
) -> KafkaPartition:
    """Open the partition; `recovery_point` after an unclean stop."""
    files = SegmentFiles(host, DIRECTORY, config, is_clean=recovery_point is None)
    return KafkaPartition(host, files, "t", 0, recovery_point=recovery_point)


class Writer:
    """A transactional producer that numbers its records, and its coordinator."""

    def __init__(self, partition: KafkaPartition, producer_id: int, epoch: int = 0) -> None:
        self.partition = partition
        self.producer_id = producer_id
        self.epoch = epoch
        self.sequence = 0

    def batch(self, count: int = 1, **fields: Any) -> memoryview:
        """Return its next batch."""
        records = [Record(n, NOW_MS, b"k", b"%d" % self.producer_id) for n in range(count)]
        numbers: dict[str, Any] = {
            "producer_id": self.producer_id,
            "producer_epoch": self.epoch,
            "base_sequence": self.sequence,
            "is_transactional": True,
        }
        return memoryview(encode_batch(records, **{**numbers, **fields}))

    def write(self, count: int = 1, guard: Verification | None = None) -> int:
        """Append a batch in a transaction; return its offset."""
        appended = self.partition.append_produced(self.batch(count), NOW_MS, guard)
        self.sequence += count
        return appended.base_offset

    def end(self, *, is_commit: bool, coordinator_epoch: int = 0, version: int = 0) -> int:
        """End the transaction; return the marker's offset."""
        return self.partition.append_marker(
            self.producer_id,
            self.epoch,
            is_commit=is_commit,
            coordinator_epoch=coordinator_epoch,
            now_ms=NOW_MS + 5,
            transaction_version=version,
        )
