"""
The broker makes the internal topics that an application needs, when a member brings it to mind.

Source: ``KafkaApis.handleStreamsGroupHeartbeat``, ``createStreamsInternalTopics`` of
``AutoTopicCreationManager``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import attrs

from logstore.compat.kafka.groups.streams.exchange import HeartbeatAnswer
from logstore.compat.kafka.groups.streams.states import StatusCode
from logstore.compat.kafka.groups.streams.topics.configured_topology import InternalTopic
from logstore.compat.kafka.refused_request import refusal_of
from logstore.compat.kafka.topics.creation import BROKER_DEFAULT, TopicPlan, create
from logstore.errors import LogStoreError

if TYPE_CHECKING:
    from logstore.compat.kafka.broker import Broker

_SHOWN_MAX = 3


def with_topics_made(
    broker: Broker, group_id: str, answer: HeartbeatAnswer, may_create: Callable[[str], bool]
) -> HeartbeatAnswer:
    """
    Make the topics that are missing, if the member may; return what it is told.

    It is told that they are missing once more. What has failed is told with the next heartbeat,
    and not tried again until two heartbeat intervals have passed. Who may not create one of them
    makes none.
    """
    if not answer.missing:
        return answer
    forbidden = [topic for topic in answer.missing if not may_create(topic)]
    if forbidden:
        return _telling(answer, f"; Unauthorized to CREATE on topics {', '.join(forbidden)}.")
    groups, now_ms = broker.groups.streams, broker.host.clock.wall_ms()
    expire_ms = now_ms + 2 * groups.settings(group_id).heartbeat_interval_ms
    failed = groups.creation_errors.of(answer.missing, now_ms)
    for topic in answer.missing.values():
        if topic.name in failed:
            continue
        message = _made(broker, topic)
        if message is not None:
            groups.creation_errors.put(topic.name, message, expire_ms, now_ms)
    return _telling(answer, _failures(failed)) if failed else answer


def _made(broker: Broker, topic: InternalTopic) -> str | None:
    """Make a topic; return None, or why it could not be made."""
    replicas = topic.replication_factor or BROKER_DEFAULT
    plan = TopicPlan(topic.name, topic.partition_count, replicas, settings=topic.settings)
    try:
        create(broker, plan)
    except (LogStoreError, OSError) as error:
        refusal = refusal_of(error, f"creating topic {topic.name}")
        return refusal.message or refusal.code.name
    return None


def _failures(failed: dict[str, str]) -> str:
    shown = [f"{topic} ({message})" for topic, message in failed.items()]
    more = len(shown) - _SHOWN_MAX
    rest = f" and {more} more" if more > 0 else ""
    return f"; Creation failed: {', '.join(shown[:_SHOWN_MAX])}{rest}."


def _telling(answer: HeartbeatAnswer, text: str) -> HeartbeatAnswer:
    """Return the answer with what keeps topics from being made."""
    return attrs.evolve(
        answer,
        statuses=tuple(
            attrs.evolve(status, detail=status.detail + text)
            if status.code is StatusCode.MISSING_INTERNAL_TOPICS
            else status
            for status in answer.statuses
        ),
    )
