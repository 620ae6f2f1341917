"""
CreateTopics (19): versions 2-7.

* the rules stand in ``topics.creation``; one refused topic does not hold the others up
* a name that comes twice is 42, once in the answer; too many partitions in one request are 44 for
  all of its topics
* v4: -1 partitions and replicas mean the broker's defaults
* v5: flexible; what was created: partitions, replicas, every setting and where it comes from
* v7: topic ids (zero for a topic that was only validated)
* the timeout does not matter: a topic stands when it is answered
"""

from __future__ import annotations

import uuid
from collections import Counter
from typing import TYPE_CHECKING, Any

from logstore.compat.kafka.configs.entries import settings_of_created
from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.refused_request import RefusedRequestError, refusal_of
from logstore.compat.kafka.registry import register
from logstore.compat.kafka.topics.creation import BROKER_DEFAULT, PARTITIONS_MAX, TopicPlan, check
from logstore.errors import LogStoreError

if TYPE_CHECKING:
    from kafka.protocol.admin.topics import CreateTopicsRequest, CreateTopicsResponse

    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client


def handle(broker: Broker, client: Client, request: CreateTopicsRequest) -> CreateTopicsResponse:
    """Create every topic that can be created."""
    from kafka.protocol.admin.topics import CreateTopicsResponse

    del client
    plans = [_plan(topic) for topic in request.topics]
    counts = Counter(plan.name for plan in plans)
    excess = _excess(broker, plans)
    results: dict[str, dict[str, Any]] = {}
    for plan in plans:
        try:
            if excess is not None:
                raise excess
            if counts[plan.name] > 1:
                raise RefusedRequestError(
                    ErrorCode.INVALID_REQUEST, f"the request names topic '{plan.name}' twice"
                )
            results[plan.name] = _create(broker, plan, is_rehearsal=request.validate_only)
        except (LogStoreError, OSError) as error:
            refusal = refusal_of(error, f"creating topic {plan.name}")
            results[plan.name] = {"error_code": refusal.code, "error_message": refusal.message}
    topic_class = CreateTopicsResponse.CreatableTopicResult
    return CreateTopicsResponse(
        version=request.API_VERSION,
        topics=[
            topic_class(version=request.API_VERSION, **_fields(name, result))
            for name, result in results.items()
        ],
    )


def _plan(topic: CreateTopicsRequest.CreatableTopic) -> TopicPlan:
    return TopicPlan(
        topic.name,
        topic.num_partitions,
        topic.replication_factor,
        [(assigned.partition_index, assigned.broker_ids) for assigned in topic.assignments],
        {setting.name: setting.value for setting in topic.configs},
    )


def _excess(broker: Broker, plans: list[TopicPlan]) -> RefusedRequestError | None:
    """Return why the request as a whole is too much, None if it is not."""
    count = 0
    for plan in plans:
        if plan.assignments:
            count += len(plan.assignments)
        elif plan.partition_count == BROKER_DEFAULT:
            count += broker.config.num_partitions
        else:
            count += max(plan.partition_count, 0)
    if count <= PARTITIONS_MAX:
        return None
    return RefusedRequestError(
        ErrorCode.POLICY_VIOLATION,
        f"{count} partitions in one request are more than {PARTITIONS_MAX}",
    )


def _create(broker: Broker, plan: TopicPlan, *, is_rehearsal: bool) -> dict[str, Any]:
    """Create one topic, or only see whether that would go; return its result's fields."""
    checked = check(broker, plan)
    topic_id = uuid.UUID(int=0)
    if not is_rehearsal:
        topic = broker.create_topic(checked.name, checked.partition_count, dict(checked.settings))
        topic_id = uuid.UUID(bytes=topic.topic_id)
    return {
        "error_message": None,
        "topic_id": topic_id,
        "num_partitions": checked.partition_count,
        "replication_factor": 1,
        "settings": settings_of_created(broker, checked.settings),
    }


def _fields(name: str, result: dict[str, Any]) -> dict[str, Any]:
    from kafka.protocol.admin.topics import CreateTopicsResponse

    setting_class = CreateTopicsResponse.CreatableTopicResult.CreatableTopicConfigs
    settings = [
        setting_class(
            name=setting.name,
            value=setting.value,
            read_only=False,
            config_source=setting.source,
            is_sensitive=False,
        )
        for setting in result.pop("settings", ())
    ]
    return {"name": name, "configs": settings, **result}


register(19, "CreateTopics", (2, 7), flexible_from=5, module="admin.topics", handle=handle)
