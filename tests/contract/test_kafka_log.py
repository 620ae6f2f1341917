"""The log of a Kafka partition keeps the laws of a log."""

from __future__ import annotations

from logstore.host import Host
from logstore.segmented_log import SegmentedLog
from logstore.segments.kafka.config import LogConfig
from logstore.segments.kafka.record import Record, encode_batch
from logstore.segments.kafka.record_batch import RecordBatch, parse_batch
from logstore.segments.kafka.segment_files import SegmentFiles
from logstore.testing.recovery_contract import RecoveryContract
from logstore.testing.segment_contract import SegmentContract
from logstore.testing.witnessed_log import AnyLog, LogUnderTest

CONFIG = LogConfig(segment_bytes=700, segment_index_bytes=1024, index_interval_bytes=100)
START_MS = 1_700_000_000_000


class KafkaLog(LogUnderTest):
    """Record batches of one to three records, an index entry after every other one."""

    #: base offset and leader epoch lie outside of the batch's CRC
    unprotected_bytes = frozenset({*range(8), *range(12, 16)})

    def open(self, host: Host, directory: str, recovery_point: int | None) -> AnyLog:
        """Open or create."""
        files = SegmentFiles(host, directory, CONFIG, is_clean=recovery_point is None)
        return SegmentedLog(files, recovery_point)

    def draft(self, number: int) -> RecordBatch:
        """Return a batch whose values bear its number."""
        records = [
            Record(offset=n, timestamp_ms=START_MS + number, key=None, value=b"%d.%d" % (number, n))
            for n in range(number % 3 + 1)
        ]
        return parse_batch(memoryview(encode_batch(records)), 0, "draft")


class TestKafkaLog(SegmentContract, RecoveryContract):
    """Batches with sparse indexes beside them, in a log that may have holes."""

    layout = KafkaLog()
