"""What all groups of one coordinator share: settings, time, chance, the log, ready answers."""

from __future__ import annotations

import logging
import random
import uuid
from collections.abc import Callable

import attrs

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.groups.config import GroupConfig
from logstore.compat.kafka.groups.exchange import Answers
from logstore.compat.kafka.groups.offsets_log import (
    GroupRecord,
    OffsetsLog,
    TransactionalProducer,
)
from logstore.compat.kafka.groups.record_versions import RecordVersions
from logstore.compat.kafka.refusals import code_of
from logstore.compat.waiting import Timer, Timers
from logstore.errors import LogStoreError, StorageError
from logstore.segments.kafka.append_errors import (
    InvalidProducerEpochError,
    InvalidTransactionStateError,
)

_LOG = logging.getLogger(__name__)


@attrs.define
class Surroundings:
    """
    The world of a group.

    Where not `gives_up_on_syncs`, a member of a classic group that has joined may ask for its share
    as late as its session lasts. `versions` are those that records are written in.
    """

    config: GroupConfig
    timers: Timers
    rng: random.Random
    log: OffsetsLog
    answers: Answers = attrs.field(factory=Answers)
    gives_up_on_syncs: bool = True
    versions: RecordVersions = attrs.field(factory=RecordVersions)

    def after(self, delay_ms: float, call: Callable[[], None]) -> Timer:
        """Make `call` in `delay_ms`, and then give the answers that it brought about."""

        def call_and_answer() -> None:
            call()
            self.answers.give()

        return self.timers.after(delay_ms, call_and_answer)

    def now_ms(self) -> int:
        """Return the wall clock."""
        return self.timers.clock.wall_ms()

    def monotonic_ms(self) -> float:
        """Return the clock that timers run on."""
        return self.timers.clock.monotonic_ms()

    def new_member_id(self, prefix: str) -> str:
        """Return a member id that nobody else has."""
        return f"{prefix}-{uuid.UUID(int=self.rng.getrandbits(128), version=4)}"

    def write(
        self,
        group_id: str,
        records: list[GroupRecord],
        then: Callable[[], None],
        producer: TransactionalProducer | None = None,
    ) -> ErrorCode:
        """
        Write all records or none; return NONE, or what the client whose request it was is told.

        `then` lets them hold. That is done once they are in the log, whatever becomes of the flush:
        the next coordinator will find them there, and must find what this one goes on with.

        Behind a disk that refuses, another coordinator might do better: NOT_COORDINATOR makes the
        client look for it. A record that is refused for itself would be refused everywhere. A
        `producer` may have been shut out (47), or have no transaction here (48).
        """
        if not records:
            then()
            return ErrorCode.NONE
        try:
            self.log.append(group_id, records, producer)
        except LogStoreError as error:
            return _told_of(error, group_id, records)
        then()
        try:
            self.log.flush()
        except LogStoreError as error:
            return _told_of(error, group_id, records)
        return ErrorCode.NONE


def _told_of(error: LogStoreError, group_id: str, records: list[GroupRecord]) -> ErrorCode:
    """Return what a client is told whose records were not written."""
    if isinstance(error, (InvalidProducerEpochError, InvalidTransactionStateError)):
        return code_of(error)
    _LOG.warning("group %s: %d records not written: %s", group_id, len(records), error)
    is_disk = isinstance(error, StorageError)
    return ErrorCode.NOT_COORDINATOR if is_disk else ErrorCode.UNKNOWN_SERVER_ERROR
