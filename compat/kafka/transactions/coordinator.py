"""All transactional ids of a broker: the door to everything about transactions."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING

import attrs

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.transactions.config import TransactionConfig
from logstore.compat.kafka.transactions.ending import End, Ended, decide, prepared_v2
from logstore.compat.kafka.transactions.initialising import Initialised, Initialising, next_of
from logstore.compat.kafka.transactions.markers import Marker, MarkerResult, MarkerWriter
from logstore.compat.kafka.transactions.states import PREPARED
from logstore.compat.kafka.transactions.transaction import (
    EPOCH_MAX,
    EPOCH_PER_TRANSACTION,
    NO_EPOCH,
    TopicPartition,
    Transaction,
)
from logstore.compat.kafka.transactions.transactions_log import (
    TransactionsLog,
    decode_record,
    encode_key,
    encode_record,
)
from logstore.compat.waiting import Timer, Timers
from logstore.errors import LogStoreError, StorageError
from logstore.segments.kafka.internal_topics.transaction_log import TransactionStatus

if TYPE_CHECKING:
    from logstore.compat.kafka.re2_machine import Machine

_log = logging.getLogger(__name__)
#: between two parts of what comes before a marker
_PAUSE_MS = 1


@attrs.define(eq=False)
class _Entry:
    """
    A transactional id. `current` is what is written.

    `completion` is what will be, once the markers of a decided transaction stand everywhere.
    """

    current: Transaction
    completion: Transaction | None = None
    #: the epoch was raised to shut the producer out, and that could not be written
    has_failed_fence: bool = False
    #: how long the next try waits, if a disk refuses a marker
    retry_ms: int = 0

    @property
    def is_pending(self) -> bool:
        return self.completion is not None


class TransactionCoordinator:
    """
    Owns all transactional ids; a test broker has one, a cluster would have one a partition.

    :meth:`load` reads the log and finishes what was decided. Every method is one step that ends
    in a consistent state: first the log, then the memory. Markers are written in the same step; if
    a disk refuses one, the transaction stays decided and a timer tries again.
    """

    def __init__(
        self,
        config: TransactionConfig,
        timers: Timers,
        log: TransactionsLog,
        markers: MarkerWriter,
        new_producer_id: Callable[[], int],
    ) -> None:
        self.config = config
        self.timers = timers
        self.log = log
        self.markers = markers
        self.new_producer_id = new_producer_id
        #: what every request is refused with: NONE while the coordinator serves
        self.refusal = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        self._entries: dict[str, _Entry] = {}
        self._periodic: dict[int, Timer] = {}

    # coming and going

    def load(self) -> None:
        """
        Take over what the log holds, and carry out what was decided before the stop.

        Raises:
            TransactionRecordError: a record cannot be read.

        """
        for record in self.log.replay():
            found = decode_record(record)
            if found is None:
                _log.warning("a record of a version of the future is passed over")
                continue
            transactional_id, transaction = found
            if transaction is None:
                self._entries.pop(transactional_id, None)
            else:
                self._entries[transactional_id] = _Entry(transaction)
        self.refusal = ErrorCode.NONE
        for entry in self._entries.values():
            if entry.current.state in PREPARED:
                _log.info("transaction of %s is finished", entry.current.transactional_id)
                self._carry_out(entry)
        for interval_ms, call in (
            (self.config.abort_timed_out_interval_ms, self.abort_timed_out),
            (self.config.remove_expired_interval_ms, self.remove_expired),
        ):
            self._every(len(self._periodic), max(interval_ms, 1), call)

    def close(self) -> None:
        """Give all ids up; whoever asks is told to look for another coordinator."""
        self.refusal = ErrorCode.NOT_COORDINATOR
        for timer in self._periodic.values():
            timer.cancel()
        self._entries.clear()

    def _every(self, number: int, interval_ms: int, call: Callable[[], object]) -> None:
        def run() -> None:
            self._periodic[number] = self.timers.after(interval_ms, run)
            call()

        self._periodic[number] = self.timers.after(interval_ms, run)

    # producers

    def init_producer_id(self, wanted: Initialising) -> Initialised:
        """
        Give a transactional producer its id and its next epoch; whoever had the one before is out.

        An open transaction is aborted first: CONCURRENT_TRANSACTIONS, and the client asks again.
        """
        if not wanted.transactional_id:
            return Initialised(ErrorCode.INVALID_REQUEST)
        if not 0 < wanted.timeout_ms <= self.config.transaction_max_timeout_ms:
            return Initialised(ErrorCode.INVALID_TRANSACTION_TIMEOUT)
        if self.refusal is not ErrorCode.NONE:
            return Initialised(self.refusal)
        try:
            entry = self._entry_for(wanted)
            if entry.is_pending:
                return Initialised(ErrorCode.CONCURRENT_TRANSACTIONS)
            transaction = next_of(entry.current, wanted, self._now_ms(), self.new_producer_id)
        except (LogStoreError, OSError) as error:
            return Initialised(self._refused(wanted.transactional_id, error))
        if transaction is None:
            return Initialised(ErrorCode.PRODUCER_FENCED)
        if transaction.state is TransactionStatus.ONGOING:
            error_code = self._fence(entry)
            return Initialised(error_code or ErrorCode.CONCURRENT_TRANSACTIONS)
        error_code = self._write(entry, transaction)
        if error_code is not ErrorCode.NONE:
            return Initialised(error_code)
        return Initialised(ErrorCode.NONE, transaction.producer_id, transaction.producer_epoch)

    def _entry_for(self, wanted: Initialising) -> _Entry:
        """Return the id's entry; a new one is kept even if nothing can be written of it yet."""
        entry = self._entries.get(wanted.transactional_id)
        if entry is None:
            transaction = Transaction(
                transactional_id=wanted.transactional_id,
                producer_id=self.new_producer_id(),
                timeout_ms=wanted.timeout_ms,
                last_update_ms=self._now_ms(),
            )
            entry = self._entries[wanted.transactional_id] = _Entry(transaction)
        return entry

    # transactions

    def add_partitions(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Collection[TopicPartition],
        transaction_version: int,
    ) -> ErrorCode:
        """Take partitions into the producer's transaction, which begins with the first."""
        entry, error = self._look_up(transactional_id)
        if entry is None:
            return error
        transaction = entry.current
        if entry.is_pending:
            return ErrorCode.CONCURRENT_TRANSACTIONS
        if transaction.producer_id != producer_id:
            return ErrorCode.INVALID_PRODUCER_ID_MAPPING
        if transaction.producer_epoch != producer_epoch:
            return ErrorCode.PRODUCER_FENCED
        is_open = transaction.state is TransactionStatus.ONGOING
        if is_open and transaction.partitions.issuperset(partitions):
            return ErrorCode.NONE
        now_ms = self._now_ms()
        return self._write(
            entry, transaction.with_partitions(partitions, now_ms, transaction_version)
        )

    def verify(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Iterable[TopicPartition],
    ) -> dict[TopicPartition, ErrorCode]:
        """Tell for each partition whether the producer's transaction has it (KIP-890)."""
        entry, error = self._look_up(transactional_id)
        if entry is None:
            return dict.fromkeys(partitions, error)
        transaction = entry.current
        if transaction.producer_id != producer_id:
            return dict.fromkeys(partitions, ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        if transaction.producer_epoch != producer_epoch:
            return dict.fromkeys(partitions, ErrorCode.PRODUCER_FENCED)
        if transaction.state in PREPARED:
            return dict.fromkeys(partitions, ErrorCode.CONCURRENT_TRANSACTIONS)
        absent = ErrorCode.TRANSACTION_ABORTABLE
        return {
            one: ErrorCode.NONE if one in transaction.partitions else absent for one in partitions
        }

    def end(self, end: End) -> Ended:
        """Commit or abort; once the answer says so it is decided, whatever happens afterwards."""
        entry, error = self._look_up(end.transactional_id)
        if entry is None:
            return Ended(error)
        try:
            decided = decide(
                entry.current, end, self._now_ms(), self.new_producer_id,
                is_pending=entry.is_pending,
            )  # fmt: skip
        except (LogStoreError, OSError) as failure:
            return Ended(self._refused(end.transactional_id, failure))
        if isinstance(decided, Ended):
            return decided
        error = self._write(entry, decided)
        if error is not ErrorCode.NONE:
            return Ended(error)
        completion = self._carry_out(entry)
        if end.transaction_version < EPOCH_PER_TRANSACTION:
            return Ended(ErrorCode.NONE)
        return Ended(ErrorCode.NONE, completion.producer_id, completion.producer_epoch)

    def _fence(self, entry: _Entry) -> ErrorCode:
        """Abort an open transaction in an epoch that its producer does not have."""
        transaction, version = entry.current, self.config.transaction_version
        now_ms = self._now_ms()
        try:
            if version >= EPOCH_PER_TRANSACTION:
                decided = prepared_v2(transaction, now_ms, self.new_producer_id, is_commit=False)
            else:
                if not entry.has_failed_fence and transaction.producer_epoch < EPOCH_MAX:
                    transaction = transaction.fenced(transaction.producer_epoch + 1)
                entry.current = transaction  # never told to anybody, so a failure does no harm
                decided = transaction.decided(now_ms, is_commit=False, transaction_version=0)
        except (LogStoreError, OSError) as failure:
            return self._refused(transaction.transactional_id, failure)
        error = self._write(entry, decided)
        entry.has_failed_fence = error is not ErrorCode.NONE and version < EPOCH_PER_TRANSACTION
        if error is ErrorCode.NONE:
            self._carry_out(entry)
        return error

    # carrying out

    def _carry_out(self, entry: _Entry) -> Transaction:
        """Begin to write the markers of a decided transaction; return what it will end as."""
        entry.completion = completion = entry.current.completed(self._now_ms())
        self._write_markers(entry)
        return completion

    def _write_markers(self, entry: _Entry) -> None:
        """Write the markers that are missing, and then the completion; or try again later."""
        if self.refusal is not ErrorCode.NONE or entry.completion is None:
            return
        transaction = entry.current
        marker = Marker(
            producer_id=transaction.producer_id,
            producer_epoch=transaction.producer_epoch,
            is_commit=transaction.state is TransactionStatus.PREPARE_COMMIT,
            coordinator_epoch=self.log.coordinator_epoch(transaction.transactional_id),
            transaction_version=transaction.client_transaction_version,
        )
        results: set[MarkerResult] = set()
        for partition in sorted(transaction.partitions):
            result = self.markers.write(partition, marker)
            if result is MarkerResult.REFUSED:
                _log.error("%s: marker refused by %s", transaction.transactional_id, partition)
                return  # as in Kafka: decided for good, and never completed before a restart
            if result is MarkerResult.WRITTEN:
                entry.current = entry.current.without_partition(partition)
            results.add(result)
            if result is MarkerResult.GOES_ON:
                break  # one part a turn: others are to be served as well
        if MarkerResult.GOES_ON in results and MarkerResult.RETRY not in results:
            self.timers.after(_PAUSE_MS, lambda: self._write_markers(entry))
        elif entry.current.partitions or self._write(entry, entry.completion) is not ErrorCode.NONE:
            entry.retry_ms = min(
                max(2 * entry.retry_ms, self.config.marker_retry_ms),
                self.config.marker_retry_max_ms,
            )
            self.timers.after(entry.retry_ms, lambda: self._write_markers(entry))
        else:
            entry.completion, entry.retry_ms = None, 0

    # what time brings

    def abort_timed_out(self) -> int:
        """Abort the transactions that were open for too long; return how many."""
        now_ms = self._now_ms()
        late = [
            entry
            for entry in self._entries.values()
            if not entry.is_pending and entry.current.is_timed_out(now_ms)
        ]
        for entry in late:
            _log.info("transaction of %s has timed out", entry.current.transactional_id)
            self._fence(entry)
        return len(late)

    def remove_expired(self) -> int:
        """Forget the ids that nobody has used for long; return how many."""
        now_ms = self._now_ms()
        expiration_ms = self.config.transactional_id_expiration_ms
        expired = [
            transactional_id
            for transactional_id, entry in self._entries.items()
            if not entry.is_pending and entry.current.is_expired(now_ms, expiration_ms)
        ]
        count = 0
        for transactional_id in expired:
            record = (encode_key(transactional_id), None)
            try:
                if self._entries[transactional_id].current.producer_epoch != NO_EPOCH:
                    self.log.append(transactional_id, record)
            except (LogStoreError, OSError) as error:
                self._refused(transactional_id, error)
            else:
                del self._entries[transactional_id]
                count += 1
        return count

    # administration

    def describe(self, transactional_id: str) -> tuple[ErrorCode, Transaction | None]:
        """Return an id's transaction as it stands, or why there is none to see."""
        if not transactional_id:
            return ErrorCode.INVALID_REQUEST, None
        if self.refusal is not ErrorCode.NONE:
            return self.refusal, None
        entry = self._entries.get(transactional_id)
        if entry is None:
            return ErrorCode.TRANSACTIONAL_ID_NOT_FOUND, None
        return ErrorCode.NONE, entry.current

    def list_transactions(
        self,
        states: Collection[TransactionStatus] | None = None,
        producer_ids: Collection[int] = (),
        duration_ms: int = -1,
        pattern: Machine | None = None,
    ) -> tuple[ErrorCode, list[Transaction]]:
        """
        Return the transactions that fit.

        `states` None stands for all; `duration_ms` is how long they have lasted at least, if it is
        not negative; `pattern` must fit the whole id.
        """
        if self.refusal is not ErrorCode.NONE:
            return self.refusal, []
        now_ms = self._now_ms()
        return ErrorCode.NONE, [
            found
            for found in (entry.current for entry in self._entries.values())
            if (states is None or found.state in states)
            and (not producer_ids or found.producer_id in producer_ids)
            and (duration_ms < 0 or now_ms - found.start_ms > duration_ms)
            and (pattern is None or pattern.fits(found.transactional_id))
        ]

    # what the steps are made of

    def _now_ms(self) -> int:
        return self.timers.clock.wall_ms()

    def _look_up(self, transactional_id: str) -> tuple[_Entry | None, ErrorCode]:
        if not transactional_id:
            return None, ErrorCode.INVALID_REQUEST
        if self.refusal is not ErrorCode.NONE:
            return None, self.refusal
        return self._entries.get(transactional_id), ErrorCode.INVALID_PRODUCER_ID_MAPPING

    def _write(self, entry: _Entry, transaction: Transaction) -> ErrorCode:
        """Write what a transaction becomes, then believe it; return what went wrong."""
        record = encode_record(transaction, self.config.transaction_version)
        try:
            self.log.append(transaction.transactional_id, record)
        except (LogStoreError, OSError) as error:
            return self._refused(transaction.transactional_id, error)
        entry.current = transaction
        return ErrorCode.NONE

    def _refused(self, transactional_id: str, error: LogStoreError | OSError) -> ErrorCode:
        """
        Return what a client is told whose transaction could not be written.

        Behind a disk that refuses, another coordinator might do better; a record that is refused
        for itself would be refused everywhere.
        """
        _log.warning("transaction of %s not written: %s", transactional_id, error)
        is_disk = isinstance(error, StorageError | OSError)
        return ErrorCode.NOT_COORDINATOR if is_disk else ErrorCode.UNKNOWN_SERVER_ERROR
