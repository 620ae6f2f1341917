"""
Incremental fetch sessions (KIP-227): a fetcher names its partitions once, then only what changes.

======================  =================================================================
(session id, epoch)     meaning
======================  =================================================================
(any, -1)               full fetch, no session; closes the one named
(any, 0)                full fetch that opens a session; closes the one named
(id, n)                 incremental: topics listed are new or changed, forgotten ones go
(unknown, n)            error 70, FETCH_SESSION_ID_NOT_FOUND
(id, not the next n)    error 71, INVALID_FETCH_SESSION_EPOCH
(id of names, n)        from version 13 on, which has ids, error 106; and the other way round
======================  =================================================================

Epochs count requests and wrap from 2^31-1 to 1. Incremental answers leave out what has not changed;
partitions that had data are served last next time. After the full answer that opens a session all
are served in its order.

Slots stand in eight shards, as in Kafka, which get new sessions in turn; so of
``max.incremental.fetch.session.cache.slots`` only multiples of eight count. In a full shard a new
session takes the place of the one that was idle longest, if that is more than two minutes; else of
the smallest one that was still used two minutes after it began, if the new one has more partitions;
else there is none (id 0), which is always allowed: the client then sends full fetches.

Source: ``FetchSessionCacheShard``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import attrs

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.host import Host

if TYPE_CHECKING:
    from logstore.segments.kafka.partition import KafkaPartition

SLOTS_MAX = 1000
SHARD_COUNT = 8
IDLE_MS_MAX = 120_000
_EPOCH_MAX = 2**31 - 1
#: how many ids a shard has
_SHARD_IDS = 2**31 // SHARD_COUNT

#: topic (UTF-8 name, or the 16 bytes of its id) and partition number
PartitionKey = tuple[bytes, int]


@attrs.define(slots=True, eq=False)
class FetchPartition:
    """What a fetcher wants of one partition, and what its session last told it."""

    key: PartitionKey
    fetch_offset: int
    size_bytes_max: int
    leader_epoch: int = -1
    last_fetched_epoch: int = -1
    told_high_watermark: int = -1
    told_log_start: int = -1
    #: what the topic with this id was called when it was asked for; empty where there was none
    topic: bytes = b""
    #: where it was looked at last, in which epoch, and beside which others: a topic that is deleted
    #: has none any more
    log: KafkaPartition | None = None
    epoch: int = -1
    siblings: dict[int, KafkaPartition] | None = None
    #: nothing was there to read, and all else was told
    is_quiet: bool = False

    def renew(self, wanted: FetchPartition) -> None:
        """Take over what a later request says, keep what was told."""
        self.fetch_offset = wanted.fetch_offset
        self.size_bytes_max = wanted.size_bytes_max
        self.leader_epoch = wanted.leader_epoch
        self.last_fetched_epoch = wanted.last_fetched_epoch
        self.is_quiet = False

    def looked_at(self, log: KafkaPartition, siblings: dict[int, KafkaPartition]) -> None:
        """Take note of where it is."""
        self.log, self.epoch, self.siblings = log, log.leader_epoch, siblings
        self.is_quiet = False

    def is_as_it_was(self, start_offset: int, end_offset: int) -> bool:
        """Tell whether the log still starts and ends there, as when it was looked at."""
        log = self.log
        return (
            log is not None
            and log.end_offset == end_offset
            and log.start_offset == start_offset
            and log.leader_epoch == self.epoch
            and bool(self.siblings)
        )


def stirred(partitions: Iterable[FetchPartition]) -> list[FetchPartition]:
    """Return those of which there may be news: at the others a glance is enough."""
    return [
        wanted
        for wanted in partitions
        if not wanted.is_quiet
        or not wanted.is_as_it_was(wanted.told_log_start, wanted.told_high_watermark)
    ]


@attrs.define(eq=False)
class FetchSession:
    """One fetcher's partitions, in the order in which they are served."""

    session_id: int
    uses_ids: bool
    partitions: dict[PartitionKey, FetchPartition]
    next_epoch: int = 1
    created_ms: float = 0.0
    last_used_ms: float = 0.0

    @property
    def may_yield(self) -> bool:
        """Whether a larger one may take its place: it was still used long after it began."""
        return self.last_used_ms - self.created_ms > IDLE_MS_MAX

    def rotate(self, key: PartitionKey) -> None:
        """Serve this partition, if it is still wanted, last next time."""
        wanted = self.partitions.pop(key, None)
        if wanted is not None:
            self.partitions[key] = wanted


class FetchSessions:
    """All sessions of a broker."""

    def __init__(self, host: Host, slots_max: int = SLOTS_MAX) -> None:
        self._host = host
        self._shard_slots_max = slots_max // SHARD_COUNT
        self._sessions: dict[int, FetchSession] = {}
        self._next_shard = 0

    def __len__(self) -> int:
        return len(self._sessions)

    def ids(self) -> list[int]:
        """Return the ids of all sessions, oldest first."""
        return list(self._sessions)

    def partitions_of(self, session_id: int) -> list[PartitionKey]:
        """Return the partitions that a session holds, in the order in which they are served."""
        session = self._sessions.get(session_id)
        return [] if session is None else list(session.partitions)

    def close(self, session_id: int) -> None:
        """Forget a session, if it is there."""
        self._sessions.pop(session_id, None)

    def open(self, partitions: list[FetchPartition], *, uses_ids: bool) -> FetchSession | None:
        """Make a session of a full fetch; None where there is no room for it."""
        now_ms = self._host.clock.monotonic_ms()
        shard = self._next_shard
        self._next_shard = (shard + 1) % SHARD_COUNT
        if not self._make_room(shard, len(partitions), now_ms):
            return None
        session_id = 0
        while session_id == 0 or session_id in self._sessions:
            session_id = self._host.rng.randrange(_SHARD_IDS * shard, _SHARD_IDS * (shard + 1))
        session = FetchSession(
            session_id, uses_ids, {wanted.key: wanted for wanted in partitions}, 1, now_ms, now_ms
        )
        self._sessions[session_id] = session
        return session

    def continued(
        self,
        session_id: int,
        epoch: int,
        changed: list[FetchPartition],
        forgotten: list[PartitionKey],
        *,
        uses_ids: bool,
    ) -> FetchSession | ErrorCode:
        """
        Apply an incremental request to its session; return it, or why not.

        A session that wants nothing any more is closed, as in Kafka.
        """
        session = self._sessions.get(session_id)
        if session is None:
            return ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        if epoch != session.next_epoch:
            return ErrorCode.INVALID_FETCH_SESSION_EPOCH
        if session.uses_ids != uses_ids:
            return ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
        session.next_epoch = 1 if epoch == _EPOCH_MAX else epoch + 1
        session.last_used_ms = self._host.clock.monotonic_ms()
        for wanted in changed:
            known = session.partitions.get(wanted.key)
            if known is None:
                session.partitions[wanted.key] = wanted
            else:
                known.renew(wanted)
        for key in forgotten:
            session.partitions.pop(key, None)
        if not session.partitions:
            self.close(session_id)
        return session

    def _make_room(self, shard: int, size: int, now_ms: float) -> bool:
        """Tell whether a session of `size` partitions has a slot, once another has gone for it."""
        if len(self._sessions) < self._shard_slots_max:
            return True
        present = [
            session
            for session_id, session in self._sessions.items()
            if session_id // _SHARD_IDS == shard
        ]
        if len(present) < self._shard_slots_max:
            return True
        idlest = min(present, key=lambda session: session.last_used_ms, default=None)
        if idlest is not None and now_ms - idlest.last_used_ms > IDLE_MS_MAX:
            self.close(idlest.session_id)
            return True
        yielding = [session for session in present if session.may_yield]
        smallest = min(yielding, key=lambda session: len(session.partitions), default=None)
        if smallest is None or len(smallest.partitions) >= size:
            return False
        self.close(smallest.session_id)
        return True
