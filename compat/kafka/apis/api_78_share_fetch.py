"""
ShareFetch (78): versions 1-2. Records for a member of a share group, and what became of others.

* epoch 0 opens a session, -1 closes it and gives back what the member has, n goes on
* 122 no session, 123 another epoch, 133 (when the time to wait is over) no room for one more
* acknowledgements come first, and are answered partition by partition: 121 for what the member
  does not have; a first request can have none (42)
* records go out as they are stored, runs of files; which of them the member has acquired stands
  beside them
* 35 where there are no share groups; of a partition without a state for the group 3
* v2: record-limit mode (KIP-1206), and -1 for a mode that there is not; renewed locks, and then no
  records (KIP-1222)

Nobody looks whether the member is one, as in Kafka: whoever has a session reads.
Requests are read by messages of our own: the library does not have these.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from logstore.compat.kafka.declared_messages import read_request
from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.refused_request import RefusedRequestError
from logstore.compat.kafka.share_reads.acknowledging import Acknowledged, acknowledge, anything
from logstore.compat.kafka.share_reads.acquisition import Acquirer
from logstore.compat.kafka.share_reads.fetch_reply import FetchedPartition, encode
from logstore.compat.kafka.share_reads.messages import ShareFetchRequest
from logstore.compat.kafka.share_reads.request_check import member_of
from logstore.compat.kafka.share_reads.share_fetch import FetchWish, ShareFetch
from logstore.compat.kafka.share_reads.share_sessions import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    PartitionKey,
    SessionKey,
    ShareSession,
)
from logstore.compat.waiting import Later

if TYPE_CHECKING:
    from logstore.compat.connection import Chunk
    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client
    from logstore.compat.kafka.registry import RawRequest

_BATCHES_WHOLE, _RECORD_LIMIT = 0, 1
_ACQUIRE_MODES = frozenset((_BATCHES_WHOLE, _RECORD_LIMIT))
_READ_COMMITTED = "read_committed"


def handle(broker: Broker, client: Client, request: RawRequest) -> list[Chunk] | Later[list[Chunk]]:
    """Note what became of records, and hand out others."""
    asked = read_request(ShareFetchRequest, request)
    return serve(broker, client, request, asked, may_read=anything)


def serve(
    broker: Broker,
    client: Client,
    request: RawRequest,
    asked: ShareFetchRequest,
    *,
    may_read: Callable[[bytes], bool],
) -> list[Chunk] | Later[list[Chunk]]:
    """Do the same for a client that may read some topics, by their ids, and perhaps not others."""
    correlation_id = request.correlation_id
    try:
        member = member_of(broker, client, asked.group_id, asked.member_id)
        _check(asked)
        session = _session(broker, client, member, asked)
    except RefusedRequestError as error:
        refusal = encode(broker, client.listener, correlation_id, error_code=error.code)
        if error.code is not ErrorCode.SHARE_SESSION_LIMIT_REACHED:
            return refusal
        return _delayed(broker, asked.max_wait_ms, refusal)  # or the client would ask at once
    exchange = _Exchange(broker, client, request, member, asked, session, may_read)
    exchange.acknowledge()
    return exchange.fetch()


def _check(asked: ShareFetchRequest) -> None:
    has_limits = asked.max_bytes or asked.min_bytes or asked.max_records or asked.max_wait_ms
    if asked.is_renew_ack and has_limits:
        raise RefusedRequestError(ErrorCode.INVALID_REQUEST)


def _session(
    broker: Broker, client: Client, member: SessionKey, asked: ShareFetchRequest
) -> ShareSession | None:
    """Open or continue the member's session; None if it is to be closed at the end."""
    sessions, epoch = broker.share_partitions.sessions, asked.share_session_epoch
    if epoch == FINAL_EPOCH:
        sessions.get(member)
        return None
    named = _keys(asked)
    if epoch == INITIAL_EPOCH:
        if _speaks_of_records(asked):
            raise RefusedRequestError(ErrorCode.INVALID_REQUEST)
        return sessions.open(member, named, client)
    session = sessions.go_on(member, epoch)
    forgotten = (
        PartitionKey(topic.topic_id.bytes, index)
        for topic in asked.forgotten_topics_data
        for index in topic.partitions
    )
    session.update(named, forgotten)
    return session


def _keys(asked: ShareFetchRequest) -> list[PartitionKey]:
    return [
        PartitionKey(topic.topic_id.bytes, partition.partition_index)
        for topic in asked.topics
        for partition in topic.partitions
    ]


def _speaks_of_records(asked: ShareFetchRequest) -> bool:
    return any(
        partition.acknowledgement_batches
        for topic in asked.topics
        for partition in topic.partitions
    )


def _delayed(broker: Broker, delay_ms: int, answer: list[Chunk]) -> Later[list[Chunk]]:
    later: Later[list[Chunk]] = Later()
    broker.timers.after(max(delay_ms, 0), lambda: later.answer(answer))
    return later


class _Exchange:
    """One request whose session is known."""

    def __init__(
        self,
        broker: Broker,
        client: Client,
        request: RawRequest,
        member: SessionKey,
        asked: ShareFetchRequest,
        session: ShareSession | None,
        may_read: Callable[[bytes], bool],
    ) -> None:
        self.broker = broker
        self.client = client
        self.version = request.version
        self.correlation_id = request.correlation_id
        self.member = member
        self.asked = asked
        self.session = session
        self.may_read = may_read
        self.settings = broker.share_partitions.settings(member.group_id)
        self.acknowledged: dict[PartitionKey, Acknowledged] = {}

    def acknowledge(self) -> None:
        """End deliveries, if the request speaks of any."""
        if _speaks_of_records(self.asked):
            self.acknowledged = acknowledge(
                self.broker,
                self.broker.share_partitions,
                self.member,
                self.asked.topics,
                version=self.version,
                is_renewal=bool(self.asked.is_renew_ack),
                may_read=self.may_read,
            )

    def fetch(self) -> list[Chunk] | Later[list[Chunk]]:
        """Fetch what the session is about; who renews locks must not wait for that."""
        if self.session is None or self.asked.is_renew_ack:
            return self._answer([])
        wanted: list[PartitionKey] = []
        refused: list[FetchedPartition] = []
        for key in self.session.partitions:
            partitions = self.broker.by_id.get(key.topic_id)
            if partitions is None:
                refused.append(FetchedPartition(key, ErrorCode.UNKNOWN_TOPIC_ID))
            elif not self.may_read(key.topic_id):
                refused.append(FetchedPartition(key, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
            elif key.partition not in partitions:
                refused.append(FetchedPartition(key, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
            elif not self.broker.placements.leads(self.client.listener, partitions[key.partition]):
                refused.append(FetchedPartition(key, ErrorCode.NOT_LEADER_OR_FOLLOWER))
            else:
                wanted.append(key)
        if wanted and self.asked.share_acquire_mode not in _ACQUIRE_MODES:
            return encode(
                self.broker,
                self.client.listener,
                self.correlation_id,
                error_code=ErrorCode.UNKNOWN_SERVER_ERROR,
            )
        found = self._share_fetch().start(self._rotated(wanted), self.client)
        if not isinstance(found, Later):
            return self._answer(found + refused)
        later: Later[list[Chunk]] = Later()
        found.then(lambda found: later.answer(self._answer(found + refused)), later.fail)
        return later

    def _share_fetch(self) -> ShareFetch:
        asked = self.asked
        acquirer = Acquirer(
            self.member.member_id,
            asked.max_records,
            asked.batch_size,
            asked.share_acquire_mode == _RECORD_LIMIT,
        )
        bytes_max = min(asked.max_bytes, self.broker.config.fetch_max_bytes)
        wish = FetchWish(
            asked.max_wait_ms,
            min(asked.min_bytes, bytes_max),
            bytes_max,
            self.settings.isolation_level == _READ_COMMITTED,
        )
        broker = self.broker
        return ShareFetch(broker, broker.share_partitions, self.member.group_id, acquirer, wish)

    def _rotated(self, wanted: list[PartitionKey]) -> list[PartitionKey]:
        """Begin with another partition each time."""
        epoch = self.asked.share_session_epoch
        start = epoch % len(wanted) if wanted and epoch > 0 else 0
        return wanted[start:] + wanted[:start]

    def _answer(self, found: list[FetchedPartition]) -> list[Chunk]:
        session = self.session
        if session is not None and self.asked.share_session_epoch != INITIAL_EPOCH:
            found = [
                partition
                for partition in found
                if session.must_name(
                    partition.key, partition.error_code, has_records=partition.extent is not None
                )
            ]
        by_key = {partition.key: partition for partition in found}
        for key, outcome in self.acknowledged.items():
            partition = by_key.get(key)
            if partition is None:
                partition = FetchedPartition(key)
                found.append(partition)
            partition.acknowledge_code, partition.acknowledge_message = outcome
        answer = encode(
            self.broker,
            self.client.listener,
            self.correlation_id,
            found,
            lock_timeout_ms=self.settings.record_lock_duration_ms,
        )
        if session is None:
            self.broker.share_partitions.release_session(self.member)
        return answer
