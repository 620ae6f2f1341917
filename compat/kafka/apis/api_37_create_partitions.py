"""
CreatePartitions (37): versions 0-3. Topics only grow.

* a count that is not above the present one: 37; an unknown topic: 3; a topic twice: 42
* assignments must be one per new partition, and name brokers that there are: 39
* more than 10,000 new partitions: 44
* no time at all: 7 for all of its topics, unless each comes twice
* v2: flexible; v3: throttled by a quota in Kafka, never here
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.refused_request import RefusedRequestError, refusal_of
from logstore.compat.kafka.topics.assignments import check_new
from logstore.compat.kafka.topics.creation import PARTITIONS_MAX
from logstore.compat.kafka.topics.growing_order import in_growing_order
from logstore.compat.kafka.topics.time_given import is_none_given, is_not_waited_for
from logstore.errors import LogStoreError

if TYPE_CHECKING:
    from kafka.protocol.admin.topics import CreatePartitionsRequest, CreatePartitionsResponse

    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client
    from logstore.segments.kafka.topic import Topic


def handle(
    broker: Broker, client: Client, request: CreatePartitionsRequest
) -> CreatePartitionsResponse:
    """Grow every topic that can grow so."""
    from kafka.protocol.admin.topics import CreatePartitionsResponse

    del client
    result_class = CreatePartitionsResponse.CreatePartitionsTopicResult
    counts = Counter(wanted.name for wanted in request.topics)
    if is_none_given(broker, request.timeout_ms) and 1 in counts.values():
        code = ErrorCode.REQUEST_TIMED_OUT
        told = [result_class(name=one.name, error_code=code) for one in request.topics]
        return CreatePartitionsResponse(version=request.API_VERSION, results=told)
    results: dict[str, CreatePartitionsResponse.CreatePartitionsTopicResult] = {}
    by_name = {wanted.name: wanted for wanted in request.topics}
    for name in in_growing_order(wanted.name for wanted in request.topics):
        wanted = by_name[name]
        code, message = ErrorCode.NONE, None
        try:
            if counts[wanted.name] > 1:
                raise RefusedRequestError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
            topic = _check(broker, wanted)
            if not request.validate_only:
                present = topic.partition_count
                broker.add_partitions(topic, wanted.count)
                assigned = [one.broker_ids for one in wanted.assignments or ()]
                broker.placements.assign(topic, enumerate(assigned, present))
                if is_not_waited_for(broker, request.timeout_ms):
                    code = ErrorCode.REQUEST_TIMED_OUT
        except (LogStoreError, OSError) as error:
            refusal = refusal_of(error, f"adding partitions to topic {wanted.name}")
            code, message = refusal.code, refusal.message
        results[wanted.name] = result_class(
            name=wanted.name, error_code=code, error_message=message
        )
    return CreatePartitionsResponse(version=request.API_VERSION, results=list(results.values()))


def _check(broker: Broker, wanted: CreatePartitionsRequest.CreatePartitionsTopic) -> Topic:
    """Return the topic, which can be grown as wanted; raises RefusedRequestError."""
    topic = broker.topics.get(wanted.name)
    if topic is None:
        raise RefusedRequestError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    present = topic.partition_count
    added = wanted.count - present
    if added <= 0:
        message = f"Topic already has {present} partition(s)."
        if added:
            message = (
                f"The topic {wanted.name} currently has {present} partition(s); "
                f"{wanted.count} would not be an increase."
            )
        raise RefusedRequestError(ErrorCode.INVALID_PARTITIONS, message)
    if added > PARTITIONS_MAX:
        raise RefusedRequestError(
            ErrorCode.POLICY_VIOLATION,
            "Unable to perform excessively large batch operation.",
        )
    if wanted.assignments is not None:
        if len(wanted.assignments) != added:
            raise RefusedRequestError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"Attempted to add {added} additional partition(s), but only "
                f"{len(wanted.assignments)} assignment(s) were specified.",
            )
        factor = len(broker.placements.find(topic, min(topic.partitions, default=0)).replicas)
        assigned = [one.broker_ids for one in wanted.assignments]
        check_new(broker, list(enumerate(assigned, present)), factor)
    return topic
