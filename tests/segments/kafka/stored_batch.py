"""What must stand in a partition's log, and up to where batches stand there."""

from __future__ import annotations

import attrs

from logstore.segments.kafka.batch_walk import walk_batches
from logstore.segments.kafka.control_record import decode_marker
from logstore.segments.kafka.partition import KafkaPartition
from logstore.segments.kafka.record import decode_records
from logstore.segments.kafka.record_batch import RecordBatch
from logstore.testing import SimulatedHost


@attrs.frozen
class StoredBatch:
    """A batch as it must stand in the log."""

    data: bytes

    @property
    def header(self) -> RecordBatch:
        """Its header."""
        return RecordBatch(self.data, len(self.data))


def is_abort(batch: StoredBatch) -> bool:
    """Tell whether a marker aborts."""
    (record,) = decode_records(batch.data)
    marker = decode_marker(record)
    return marker is not None and marker.is_abort


def written_end(host: SimulatedHost, partition: KafkaPartition) -> int:
    """Return the offset behind the last batch in the newest segment; where that begins if empty."""
    active = partition.log.active
    file = host.fs.open(active.path, writable=False)
    ends = [batch.next_offset for batch in walk_batches(file, active.path)]
    file.close()
    return max([active.base_offset, *ends])
