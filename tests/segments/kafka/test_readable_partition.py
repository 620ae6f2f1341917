"""Reading a partition of which a sealed segment is damaged."""

from __future__ import annotations

import pytest

from logstore.errors import CorruptEntryError
from logstore.segments.kafka.record_batch import RecordBatch
from logstore.testing import SimulatedHost
from tests.segments.kafka.test_partition import DIRECTORY, fill, open_partition


@pytest.fixture
def host() -> SimulatedHost:
    """A world with an empty partition directory."""
    host = SimulatedHost()
    host.fs.make_directory(DIRECTORY)
    return host


@pytest.mark.parametrize("left_bytes", [1, 40])
def test_a_read_goes_on_behind_a_batch_that_a_sealed_segment_lacks_the_end_of(
    host: SimulatedHost, left_bytes: int
) -> None:
    """Kafka reads on in the next segment; a consumer that got the remains would ask for ever."""
    partition = open_partition(host)
    fill(partition, 3)
    size = partition.log.size_bytes // 3
    partition.log.roll()
    fill(partition, 1)
    partition.close()
    file = host.fs.open(f"{DIRECTORY}/{0:020d}.log")
    file.truncate(2 * size + left_bytes)
    file.close()
    partition = open_partition(host)
    first, second = partition.read(0, 10_000), partition.read(2, 10_000)
    assert first is not None
    assert second is not None
    assert first.size_bytes == 2 * size + left_bytes, "a reader drops the remains"
    assert RecordBatch(second.read(), second.size_bytes).base_offset == 3
    committed = partition.read_committed(2, 10_000).extent
    assert committed is not None
    assert RecordBatch(committed.read(), committed.size_bytes).base_offset == 3


def test_a_read_at_a_length_that_can_be_none_is_refused(host: SimulatedHost) -> None:
    """As Kafka does (2, CORRUPT_MESSAGE): nobody is sent bytes that he can make nothing of."""
    partition = open_partition(host)
    fill(partition, 3)
    size = partition.log.size_bytes // 3
    partition.log.roll()
    fill(partition, 1)
    partition.close()
    host.fs.damage(f"{DIRECTORY}/{0:020d}.log", 2 * size + 8, (5).to_bytes(4, "big"))
    partition = open_partition(host)
    before = partition.read(0, 10_000)
    assert before is not None
    assert before.size_bytes == 3 * size
    with pytest.raises(CorruptEntryError, match="the length of a batch can be none"):
        partition.read(2, 10_000)
    after = partition.read(3, 10_000)
    assert after is not None
    assert RecordBatch(after.read(), after.size_bytes).base_offset == 3
