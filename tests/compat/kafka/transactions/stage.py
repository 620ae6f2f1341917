"""A transaction coordinator on a stage: time that a test turns, a log and markers in memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.transactions.config import TransactionConfig
from logstore.compat.kafka.transactions.coordinator import TransactionCoordinator
from logstore.compat.kafka.transactions.ending import End, Ended
from logstore.compat.kafka.transactions.initialising import Initialised, Initialising
from logstore.compat.kafka.transactions.markers import Marker, MarkerResult
from logstore.compat.kafka.transactions.transaction import TopicPartition, Transaction
from logstore.compat.kafka.transactions.transactions_log import (
    TransactionRecord,
    decode_record,
)
from logstore.compat.waiting import Timers
from logstore.errors import WriteFailedError
from logstore.segments.kafka.internal_topics.transaction_log import TransactionStatus
from logstore.testing.manual_clock import ManualClock

ID = "payments"
TIMEOUT_MS = 60_000
P0, P1 = ("t", 0), ("t", 1)


class MemoryTransactionsLog:
    """Keeps records in a list; refuses while `is_full`, or once `room` records are in it."""

    def __init__(self) -> None:
        self.records: list[TransactionRecord] = []
        self.is_full = False
        self.epoch = 3

    def append(self, transactional_id: str, record: TransactionRecord) -> None:
        """Keep a record."""
        if self.is_full:
            raise WriteFailedError(f"no room for {transactional_id}")
        self.records.append(record)

    def coordinator_epoch(self, transactional_id: str) -> int:
        """Return the epoch that the test says."""
        del transactional_id
        return self.epoch

    def replay(self) -> Iterator[TransactionRecord]:
        """Yield all records, oldest first."""
        return iter(list(self.records))

    def states(self) -> list[str]:
        """Return the states that were written, in order."""
        found: list[str] = []
        for record in self.records:
            decoded = decode_record(record)
            assert decoded is not None
            transaction = decoded[1]
            found.append("-" if transaction is None else transaction.state.java_name)
        return found


class MemoryMarkers:
    """Keeps markers in a list; partitions in `results` answer something else than WRITTEN."""

    def __init__(self) -> None:
        self.written: list[tuple[TopicPartition, Marker]] = []
        self.results: dict[TopicPartition, MarkerResult] = {}

    def write(self, partition: TopicPartition, marker: Marker) -> MarkerResult:
        """Keep a marker unless the partition has another answer."""
        result = self.results.get(partition, MarkerResult.WRITTEN)
        if result is MarkerResult.WRITTEN:
            self.written.append((partition, marker))
        return result


class Stage:
    """One coordinator and shortcuts for what the producer of one transactional id does."""

    def __init__(self, **settings: int) -> None:
        self.config = TransactionConfig(**settings)
        self.clock = ManualClock()
        self.log = MemoryTransactionsLog()
        self.markers = MemoryMarkers()
        self.timers = Timers(self.clock)
        self._producer_ids = iter(range(100, 1_000_000))
        self.coordinator = self._open()

    def _open(self) -> TransactionCoordinator:
        coordinator = TransactionCoordinator(
            self.config, self.timers, self.log, self.markers, lambda: next(self._producer_ids)
        )
        coordinator.load()
        return coordinator

    def restart(self) -> None:
        """Lose the coordinator as a crash would, and start another one over the same log."""
        self.timers = Timers(self.clock)
        self.coordinator = self._open()

    def wait(self, delay_ms: float) -> None:
        """Let time pass, and what is due happen."""
        self.clock.advance(delay_ms)
        self.timers.run()

    @property
    def transaction(self) -> Transaction:
        """The transaction as administrators see it."""
        error, found = self.coordinator.describe(ID)
        assert (error, found is None) == (ErrorCode.NONE, False)
        assert found is not None
        return found

    @property
    def state(self) -> TransactionStatus:
        """Its state."""
        return self.transaction.state

    @property
    def producer(self) -> tuple[int, int]:
        """Its producer's id and epoch."""
        return self.transaction.producer_id, self.transaction.producer_epoch

    def init(
        self, expected: tuple[int, int] | None = None, timeout_ms: int = TIMEOUT_MS
    ) -> Initialised:
        """Begin as a producer."""
        return self.coordinator.init_producer_id(Initialising(ID, timeout_ms, expected))

    def add(
        self, *partitions: TopicPartition, producer: tuple[int, int] | None = None, version: int = 2
    ) -> ErrorCode:
        """Add partitions, by default the current producer's."""
        who = producer or self.producer
        return self.coordinator.add_partitions(ID, *who, partitions or (P0,), version)

    def end(
        self, *, is_commit: bool, producer: tuple[int, int] | None = None, version: int = 2
    ) -> Ended:
        """Commit or abort, by default as the current producer."""
        who = producer or self.producer
        return self.coordinator.end(End(ID, *who, is_commit, version))

    def put(self, **changes: Any) -> None:
        """Start over with a log that says just this of the transactional id."""
        from logstore.compat.kafka.transactions.transactions_log import encode_record

        fields: dict[str, Any] = {
            "transactional_id": ID,
            "producer_id": 7,
            "producer_epoch": 5,
            "timeout_ms": TIMEOUT_MS,
            "last_update_ms": self.clock.wall_ms(),
            **changes,
        }
        self.log.records = [encode_record(Transaction(**fields), 2)]
        self.restart()
