"""One partition of a broker on a simulated disk, as one share group reads it."""

from __future__ import annotations

from typing import Any, cast

from logstore.compat.kafka.groups.share.settings import ShareGroupSettings
from logstore.compat.kafka.share_reads.acknowledgement import AcknowledgementBatch
from logstore.compat.kafka.share_reads.acquisition import AcquiredRecords, Acquirer
from logstore.compat.kafka.share_reads.fetched_batches import FetchedBatch, FetchedBatches
from logstore.compat.kafka.share_reads.in_flight_state import RecordState
from logstore.compat.kafka.share_reads.share_partition import SharePartition
from logstore.compat.kafka.share_state.persister import SharePartitionKey
from logstore.host import File
from logstore.segment import Extent
from logstore.segments.kafka.partition import KafkaPartition
from logstore.testing.simulated_host import SimulatedHost
from tests.compat.kafka.batches import batch
from tests.compat.kafka.peer import a_broker
from tests.compat.kafka.share_reads.memory_persister import MemoryPersister

_WORDS = {
    RecordState.AVAILABLE: "free",
    RecordState.ACQUIRED: "has",
    RecordState.ACKNOWLEDGED: "done",
    RecordState.ARCHIVED: "gone",
}
GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)
#: how long a lock lasts here
LOCK_MS = 30_000


class Stage:
    """A share-partition over a log that starts empty; the group reads from the earliest on."""

    def __init__(self, *batches: int, kept_from: int = -1, **settings: Any) -> None:
        self.host = SimulatedHost()
        self.broker = a_broker(self.host)
        topic = self.broker.create_topic("t", 1)
        self.log: KafkaPartition = topic.partitions[0]
        self.persister = MemoryPersister()
        self.key = SharePartitionKey("g", topic.topic_id, 0)
        self.persister.initialize(self.key, 1, kept_from)
        self.settings = ShareGroupSettings(auto_offset_reset="earliest")
        self.set(**settings)
        self.append(*batches)
        self.partition = self.open()

    def set(self, **settings: Any) -> None:
        """Change settings of the group."""
        self.settings = self.settings._replace(**settings)

    def open(self) -> SharePartition:
        """Read the share-partition's state anew, as after a restart."""
        self.partition = SharePartition(
            self.key, self.log, self.persister, lambda: self.settings, self.broker.timers
        )
        self.partition.initialize()
        return self.partition

    def append(self, *record_counts: int) -> None:
        """Append a batch for each number, of so many records."""
        for count in record_counts:
            now_ms = self.host.clock.wall_ms()
            data = bytearray(batch(*[b"value"] * count, timestamp_ms=now_ms))
            self.log.append_produced(memoryview(data), now_ms)

    def acquire(
        self,
        count_max: int = 500,
        *,
        member: str = "A",
        batch_size: int = 500,
        limit: bool = False,
        bytes_max: int = 1 << 20,
    ) -> str:
        """Fetch as a member; return what it got, ``5-9*2`` if it was for the second time."""
        offset = self.partition.next_fetch_offset()
        if offset is None:
            return "full"
        acquirer = Acquirer(member, count_max, batch_size, is_record_limit=limit)
        fetched = FetchedBatches.read(
            self.log.read(offset, bytes_max),
            offset,
            self.partition.records.end_offset,
            count_max,
        )
        if fetched is None:
            return "nothing"
        return self._shown(self.partition.acquire(acquirer, offset, fetched))

    def acquire_of(self, batches: list[tuple[int, int]], offset: int) -> str:
        """Acquire as member A as if the log had these batches from that offset on."""
        extent = Extent(cast(File, None), 0, 0)
        fetched = FetchedBatches(
            extent, tuple(FetchedBatch(*bounds, 0, 0) for bounds in batches), batches[-1][1]
        )
        return self._shown(self.partition.acquire(Acquirer("A", 500, 500), offset, fetched))

    def _shown(self, acquired: list[AcquiredRecords]) -> str:
        return " ".join(_shown(*some[:2]) + _times(some.delivery_count) for some in acquired)

    def say(self, first: int, last: int, *types: int, member: str = "A") -> None:
        """Acknowledge offsets as a member."""
        self.partition.acknowledge(member, [AcknowledgementBatch(first, last, types)])

    def let_pass(self, delay_ms: float) -> None:
        """Turn the clock and run what is due."""
        self.host.clock.advance(delay_ms)
        self.broker.timers.run()

    @property
    def in_flight(self) -> str:
        """
        What is in flight, ``|`` between batches.

        As ``0-4 A has | 5 free*2 6 gone``: who has it, its state, and how often it was delivered.
        """
        shown: list[str] = []
        for found in self.partition.records.batches.values():
            runs: list[tuple[int, int, str]] = []
            for first, last, state in found.runs():
                words = f"{state.member_id} {_WORDS[state.state]}".strip()
                words += _times(state.delivery_count)
                if runs and runs[-1][2] == words and runs[-1][1] == first - 1:
                    runs[-1] = runs[-1][0], last, words
                else:
                    runs.append((first, last, words))
            shown.append(" ".join(f"{_shown(first, last)} {words}" for first, last, words in runs))
        return " | ".join(shown)

    @property
    def bounds(self) -> tuple[int, int]:
        """Where what is in flight starts and ends."""
        return self.partition.records.start_offset, self.partition.records.end_offset

    def check_count(self) -> None:
        """How many are final and wait for others is what a count says."""
        records = self.partition.records
        assert records.delivery_complete_count == sum(
            records.in_flight_part(run.first_offset, run.last_offset)
            for found in records.batches.values()
            for run in found.runs()
            if run.state.state.is_final
        )


def _shown(first: int, last: int) -> str:
    return f"{first}" if first == last else f"{first}-{last}"


def _times(count: int) -> str:
    return "" if count == 1 else f"*{count}"
