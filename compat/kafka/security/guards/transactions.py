"""Guards of what is about producers and their transactions."""

from __future__ import annotations

from typing import Any

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.library_messages import library_class
from logstore.compat.kafka.security.acl import Operation, ResourceType
from logstore.compat.kafka.security.guarded_request import PASS, REFUSALS, GuardedRequest
from logstore.compat.kafka.security.guards.needs import Each, cluster, spare
from logstore.compat.kafka.topics.names import INTERNAL_TOPICS

_TRANSACTION, _TOPIC = ResourceType.TRANSACTIONAL_ID, ResourceType.TOPIC
_OF_BROKERS_SINCE = 4
_of_brokers = cluster(Operation.CLUSTER_ACTION)
_DESCRIBED = Each(Operation.DESCRIBE, _TRANSACTION, "transactional_ids", "transaction_states")


def init_producer_id(request: GuardedRequest) -> Any:
    """To write a transaction; without one to write at all: idempotently, or to any topic."""
    transactional_id = request.message.transactional_id
    if transactional_id is not None:
        is_allowed = request.may(Operation.WRITE, _TRANSACTION, transactional_id)
        return PASS if is_allowed else request.refused(_TRANSACTION)
    if request.authorizer.allows_cluster(request.client, Operation.IDEMPOTENT_WRITE):
        return PASS
    if request.authorizer.allows_any(request.client, Operation.WRITE, _TOPIC):
        return PASS
    return request.refused(ResourceType.CLUSTER)


def add_partitions_to_txn(request: GuardedRequest) -> Any:
    """To write the transaction and each topic: one that is refused spoils all."""
    if request.version >= _OF_BROKERS_SINCE:
        return _of_brokers(request)
    message = request.message
    if not request.may(Operation.WRITE, _TRANSACTION, message.v3_and_below_transactional_id):
        return request.refused(_TRANSACTION)
    refused = {
        topic.name
        for topic in message.v3_and_below_topics
        if topic.name in INTERNAL_TOPICS or not request.may(Operation.WRITE, _TOPIC, topic.name)
    }
    if not refused:
        return PASS
    answer = request.failed(ErrorCode.OPERATION_NOT_ATTEMPTED)
    for topic in answer.results_by_topic_v3_and_below:
        for result in topic.results_by_partition:
            if topic.name in refused:
                result.partition_error_code = REFUSALS[_TOPIC][0]
            elif request.broker.partition(topic.name, result.partition_index) is None:
                result.partition_error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return answer


def describe_transactions(request: GuardedRequest) -> Any:
    """To describe each transaction; of its topics those are told that one may describe."""
    answer = spare(request, _DESCRIBED)

    def seen(served: Any) -> Any:
        for state in served.transaction_states:
            state.topics = [one for one in state.topics if request.sees(_TOPIC, one.topic)]
        return served

    return request.then(answer, seen)


def list_transactions(request: GuardedRequest) -> Any:
    """Those are told that one may describe."""

    def seen(served: Any) -> Any:
        served.transaction_states = [
            one for one in served.transaction_states
            if request.sees(_TRANSACTION, one.transactional_id)
        ]  # fmt: skip
        return served

    return request.served(seen)


def describe_producers(request: GuardedRequest) -> Any:
    """To read each topic; one that is none is refused by the handler."""
    from logstore.compat.kafka.topics.names import flaw_of

    kind = library_class(request.api, "Response").TopicResponse
    topics = list(request.message.topics)
    refused = {
        topic.name
        for topic in topics
        if flaw_of(topic.name) is None and not request.may(Operation.READ, _TOPIC, topic.name)
    }
    if not refused:
        return PASS
    code, text = REFUSALS[_TOPIC]
    request.message.topics = [topic for topic in topics if topic.name not in refused]

    def changed(served: Any) -> Any:
        answers = iter(served.topics)
        served.topics = [
            kind(
                version=request.version, name=topic.name,
                partitions=[
                    kind.PartitionResponse(
                        version=request.version, partition_index=index, error_code=code,
                        error_message=text, active_producers=[],
                    )
                    for index in topic.partition_indexes
                ],
            ) if topic.name in refused else next(answers)
            for topic in topics
        ]  # fmt: skip
        return served

    return request.served(changed)
