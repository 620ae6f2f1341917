"""
Produce (0): versions 3-13, advertised from 0 (KAFKA-18659: old clients look for it).

* one record batch of magic 2 per partition; it is appended as it came, offsets stamped in place
* acks 0: no answer, the connection is closed on an error; acks 1 and -1: answered after the append
* with ``flush.messages`` the answer waits for the flush that covers the append
* internal topics are closed to clients other than ``__admin_client``
* transactional batches need a transactional id (53), one producer (49), and a transaction that the
  coordinator knows of: before v12 one with the partition in it (48; v11: 120), from then on the
  partition is added
* v5: log start offset; v7: zstd allowed; v8: record errors and message (KIP-467)
* v9: flexible; v10: current leader tags (KIP-951); v13: topics by id (KIP-516)

Read and written by hand: no object per record, no copy of record bytes.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.framing import MalformedRequestError, Reader
from logstore.compat.kafka.nodes.appending import (
    LedElsewhereError,
    tell_leaders,
    with_node_refusals,
)
from logstore.compat.kafka.produce.alone import answer_by_route
from logstore.compat.kafka.produce.batches import (
    SOME_UNUSUAL,
    UNUSUAL,
    ZSTD_SINCE,
    PartitionBatch,
    is_zstd,
    read_batches,
)
from logstore.compat.kafka.produce.once import TopicBatches, each_once, flaw, parted
from logstore.compat.kafka.produce.reply import ProduceReply
from logstore.compat.kafka.produce.route import ProduceRoute
from logstore.compat.kafka.produce.run import LEAD_AT
from logstore.compat.kafka.produce.unknown_offsets import told_base_offset
from logstore.compat.kafka.refused_request import RefusedRequestError
from logstore.compat.kafka.registry import RawRequest
from logstore.compat.kafka.topics.names import INTERNAL_TOPICS
from logstore.compat.kafka.transactions.producing import (
    NOTHING_SPECIAL,
    admit_produced,
    is_transactional,
)
from logstore.compat.waiting import Later
from logstore.errors import LogStoreError
from logstore.segments.kafka.append_errors import ShortHeaderError, UnreadableBatchError
from logstore.segments.kafka.record_batch import TRANSACTIONAL_BIT
from logstore.segments.kafka.validation import first_batch_bytes, only_batch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from logstore.compat.connection import Chunk
    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client
    from logstore.compat.kafka.transactions.producing import ProduceAdmission
    from logstore.segments.kafka.config import LogConfig
    from logstore.segments.kafka.partition import KafkaPartition
    from logstore.segments.kafka.transaction_verification import Verification

_log = logging.getLogger(__name__)
_ADMIN = b"__admin_client"
_ACKS = (-1, 0, 1)
_IDS_SINCE = 13
#: where in a batch the producer's id ends, which Kafka reads of each
_PRODUCER_ID_END = 51


def handle(
    broker: Broker, client: Client, request: RawRequest
) -> list[Chunk] | Later[list[Chunk]] | None:
    """Append every partition's batch; answer, or say who answers later."""
    route = client.produce_route
    if route is not None and route.version == request.version:
        start = route.start_of(request.data, request.position)
        if start >= 0:
            response = answer_by_route(
                broker, client, route, request.data, start, request.correlation_id
            )
            if response is not None:
                return [response]
    return _by_parsing(broker, client, request)


def _by_parsing(
    broker: Broker, client: Client, request: RawRequest
) -> list[Chunk] | Later[list[Chunk]] | None:
    """Read all of the request, and only then append: a malformed one leaves nothing behind."""
    version = request.version
    transactional_id, acks, topics, prefix, attributes = _read(request)
    now_ms = broker.host.clock.wall_ms()
    by_key = broker.by_id if version >= _IDS_SINCE else broker.by_name
    refused = None
    if attributes & SOME_UNUSUAL:
        refused = _whole_refusal(topics, transactional_id) or _stumbled_over(by_key, topics)
    topics, overruled = each_once(topics, version, by_key)
    reply = ProduceReply(version, len(topics), client.software)
    route: ProduceRoute | None = None
    admission = NOTHING_SPECIAL
    if refused is None and attributes & TRANSACTIONAL_BIT:
        admission = admit_produced(broker, version, transactional_id, _existing(by_key, topics))
    may_learn = transactional_id is None and broker.nodes.is_alone and len(topics) == 1
    acks_error = 0 if acks in _ACKS else ErrorCode.INVALID_REQUIRED_ACKS
    for key, batches in topics:
        partitions = by_key.get(key)
        reply.open_topic(key, len(batches))
        route = (
            ProduceRoute.learn(version, prefix, len(batches), partitions, reply.head())
            if may_learn and partitions is not None
            else None
        )
        if refused is not None:
            for index, *_ in batches:
                reply.fail(index, refused.code, refused if refused.message else None)
        else:
            topic_error = acks_error or _topic_error(client, partitions)
            if partitions and not broker.nodes.is_alone:
                named = [partitions[index] for index, *_ in batches if index in partitions]
                admission = with_node_refusals(broker, client.listener, acks, named, admission)
            for some, told in parted(batches, overruled.get(key), reply):
                _append_all(partitions, some, told, now_ms, admission, topic_error)
        reply.close_topic()
    if not broker.nodes.is_alone:
        tell_leaders(broker, client.listener, admission, reply)
    if acks == 0:
        _finish_unanswered(broker, reply.worst)
        return None
    if broker.flusher.due:
        return _after_flush(broker, request, reply)
    if not reply.worst and reply.has_appended:
        client.produce_route = route and route.shared(broker.produce_routes)
        client.sends_usual = not attributes
        client.produce_lead = bytes(request.data[LEAD_AT : request.position]) + prefix
    return [reply.frame(request.correlation_id)]


def _read(request: RawRequest) -> tuple[bytes | None, int, list[TopicBatches], bytes, int]:
    """
    Read it to its end.

    Returns transactional id, acks, batches by topic, what stands before the first partition, and
    the attributes of all batches together.
    """
    reader = Reader(request.data, request.position, is_flexible=request.is_flexible)
    transactional_id = reader.string()
    acks = reader.i16()
    reader.i32()
    topics: list[TopicBatches] = []
    prefix, attributes = b"", 0
    for _ in range(reader.count()):
        key = bytes(reader.take(16)) if request.version >= _IDS_SINCE else reader.text()
        partition_count = reader.count()
        prefix = prefix or bytes(request.data[request.position : reader.position])
        batches, of_topic = read_batches(reader, partition_count)
        topics.append((key, batches))
        attributes |= of_topic
        reader.tags()
    reader.tags()
    return transactional_id, acks, topics, prefix, attributes


def _whole_refusal(
    topics: list[TopicBatches], transactional_id: bytes | None
) -> RefusedRequestError | None:
    """Return why everything is refused: what is no batch (2), a transaction without a name (53)."""
    for _, batches in topics:
        for _, records, last_delta, _, _ in batches:
            if last_delta != UNUSUAL:
                continue
            try:
                first_batch_bytes(records)
            except UnreadableBatchError as error:
                return RefusedRequestError(ErrorCode.CORRUPT_MESSAGE, str(error))
            if transactional_id is None and is_transactional(records):
                return RefusedRequestError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    return None


def _stumbled_over(
    by_key: dict[bytes, dict[int, KafkaPartition]], topics: list[TopicBatches]
) -> RefusedRequestError | None:
    """Return why everything is refused: a batch that is cut short of its producer (-1)."""
    for _, records in _existing(by_key, topics):
        try:
            only_batch(records)
        except ShortHeaderError as error:
            if error.size_bytes < _PRODUCER_ID_END:
                return RefusedRequestError(ErrorCode.UNKNOWN_SERVER_ERROR)
        except LogStoreError:
            continue
    return None


def _existing(
    by_key: dict[bytes, dict[int, KafkaPartition]], topics: list[TopicBatches]
) -> Iterator[tuple[KafkaPartition, memoryview]]:
    """Yield the batches of the partitions that there are."""
    for key, batches in topics:
        partitions = by_key.get(key, {})
        for index, records, *_ in batches:
            if index in partitions:
                yield partitions[index], records


def _refuse(reply: ProduceReply, index: int, refusal: RefusedRequestError) -> None:
    if isinstance(refusal, LedElsewhereError):
        reply.fail_elsewhere(index, refusal.code, refusal.leader, refusal.leader_epoch)
    else:
        reply.fail(index, refusal.code, refusal if refusal.message else None)


def _refuse_unknown(reply: ProduceReply, index: int, *, is_topic_known: bool) -> None:
    is_by_id = not is_topic_known and reply.version >= _IDS_SINCE
    reply.fail(
        index, ErrorCode.UNKNOWN_TOPIC_ID if is_by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    )


def _append_all(
    partitions: dict[int, KafkaPartition] | None,
    batches: list[PartitionBatch],
    reply: ProduceReply,
    now_ms: int,
    admission: ProduceAdmission,
    topic_error: int,
) -> None:
    """Append the batches of one topic and add the results to the reply."""
    refusals = admission.refusals
    rules: LogConfig | None = None  # of one topic all partitions have the same
    size_max = time_max = 0
    for batch in batches:
        index, records, last_delta, timestamp_ms, _ = batch
        partition = None if partitions is None else partitions.get(index)
        if partition is None:
            _refuse_unknown(reply, index, is_topic_known=partitions is not None)
        elif topic_error and (code := flaw(records, reply.version)):
            reply.fail(index, code)
        elif refusals and partition in refusals:
            _refuse(reply, index, refusals[partition])
        elif topic_error:
            reply.fail(index, topic_error)
        else:
            if partition.config is not rules:
                rules = partition.config
                size_max = rules.max_message_bytes if rules.has_usual_batches else 0
                time_max = now_ms + rules.message_timestamp_after_max_ms
            try:
                if last_delta >= 0 and timestamp_ms <= time_max and len(records) <= size_max:
                    start = partition.append_at_once(batch, now_ms)
                    if start >= 0:
                        reply.succeed_at_once(index, start, partition.start_offset)
                        continue
                _append(partition, records, reply, now_ms, admission.guards.get(partition))
            except (LogStoreError, OSError) as error:
                reply.refuse(partition, index, error)


def _append(
    partition: KafkaPartition,
    records: memoryview,
    reply: ProduceReply,
    now_ms: int,
    guard: Verification | None,
) -> None:
    """Append one partition's batch that may be special and add the result to the reply."""
    if reply.version < ZSTD_SINCE and is_zstd(records):
        reply.fail(partition.index, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
        return
    done = partition.append_produced(records, now_ms, guard)
    base_offset = told_base_offset(done.base_offset, reply.software)
    reply.succeed(partition, base_offset, done.log_append_time_ms)


def _topic_error(client: Client, partitions: dict[int, KafkaPartition] | None) -> int:
    """Return 17 for an internal topic, by its name also where the request names its id."""
    for partition in (partitions or {}).values():
        is_closed = partition.topic in INTERNAL_TOPICS and client.raw_client_id != _ADMIN
        return ErrorCode.INVALID_TOPIC_EXCEPTION if is_closed else 0
    return 0


def _finish_unanswered(broker: Broker, worst: int) -> None:
    """End a request with acks 0: an error can only be told by hanging up."""
    for partition in broker.flusher.take_due():
        broker.flusher.flush(partition)
    if worst:
        raise MalformedRequestError(f"acks 0, and the append failed: {ErrorCode(worst).name}")


def _after_flush(broker: Broker, request: RawRequest, reply: ProduceReply) -> Later[list[Chunk]]:
    """Answer once the flushes that this request made due have run; with an error if one failed."""
    due = broker.flusher.take_due()
    later: Later[list[Chunk]] = Later()
    waiting = len(due)

    def flushed(partition: KafkaPartition, failure: BaseException | None) -> None:
        nonlocal waiting
        waiting -= 1
        if failure is not None:
            # Who waited for a topic that was deleted meanwhile is told that, not of lost files.
            gone, lost = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.KAFKA_STORAGE_ERROR
            reply.retract(partition, lost if broker.is_here(partition) else gone, failure)
        if waiting == 0:
            later.answer([reply.frame(request.correlation_id)])

    for partition in due:
        broker.flusher.flush(partition, partial(flushed, partition))
    return later
