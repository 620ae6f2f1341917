"""
DescribeTopicPartitions (75): version 0. Topics in pages (KIP-966).

* topics in the order of their names, partitions in that of their numbers; no topics asks for all
* a page ends at the asked number of partitions, at most ``max.request.partition.size.limit``; the
  cursor says where the next one starts
* a cursor that is not among the asked topics, or before the first partition: 42 for every topic
* where a page would end at a partition beyond Java's ints it has none of the cursor's topic, and
  the next one starts below zero
* 3 unknown, 17 not a name that a topic can have; with all topics neither can happen
* replicas that are eligible though they fell out of sync, and who led last where none is in sync
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

import attrs

from logstore.compat.kafka.authorized_operations import TOPIC_OPERATIONS, bit_field
from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.nodes.placement import NOBODY
from logstore.compat.kafka.topics.names import INTERNAL_TOPICS, flaw_of

if TYPE_CHECKING:
    from kafka.protocol.admin.topics import (
        DescribeTopicPartitionsRequest,
        DescribeTopicPartitionsResponse,
    )

    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client
    from logstore.segments.kafka.topic import Topic

_INT_MAX = 2**31 - 1


@attrs.frozen
class _Place:
    """A topic's partition: where a page starts."""

    topic: str = ""
    index: int = 0


@attrs.frozen
class _Page:
    """Topics' fields, and where the next page starts (None: this is the last one)."""

    topics: list[dict[str, Any]]
    next_place: _Place | None


def handle(
    broker: Broker, client: Client, request: DescribeTopicPartitionsRequest
) -> DescribeTopicPartitionsResponse:
    """Return one page."""
    from kafka.protocol.admin.topics import DescribeTopicPartitionsResponse

    del client
    names = {topic.name for topic in request.topics}
    start = _Place()
    error = ErrorCode.NONE
    if request.cursor is not None:
        start = _Place(request.cursor.topic_name, request.cursor.partition_index)
        if start.index < 0 or (names and start.topic not in names):
            error = ErrorCode.INVALID_REQUEST
    elif "" in names:
        error = ErrorCode.UNKNOWN_SERVER_ERROR  # Kafka takes it for the topic of a cursor
    if error is not ErrorCode.NONE:
        asked = [{"name": topic.name, "error_code": error} for topic in request.topics]
        page = _Page(asked, None)
    else:
        wanted = sorted(name for name in names or broker.topics if name >= start.topic)
        count_max = min(
            request.response_partition_limit, broker.config.max_request_partition_size_limit
        )
        page = _page(broker, wanted, start, max(count_max, 1))
    topic_class = DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic
    place = page.next_place
    return DescribeTopicPartitionsResponse(
        version=request.API_VERSION,
        topics=[topic_class(version=0, **fields) for fields in page.topics],
        next_cursor=None
        if place is None
        else DescribeTopicPartitionsResponse.Cursor(
            topic_name=place.topic, partition_index=place.index
        ),
    )


def _page(broker: Broker, names: list[str], start: _Place, count_max: int) -> _Page:
    topics: list[dict[str, Any]] = []
    count_left = count_max
    for name in names:
        if count_left == 0:
            return _Page(topics, _Place(name, 0))
        topic = broker.topics.get(name)
        if topic is None:
            topics.append(_missing(broker, name))
            continue
        first = start.index if name == start.topic else 0
        if first + count_left > _INT_MAX:
            topics.append(_described(broker, topic, []))
            return _Page(topics, _Place(name, first + count_left - 2**32))
        indexes = [index for index in sorted(topic.partitions) if index >= first]
        topics.append(_described(broker, topic, indexes[:count_left]))
        if len(indexes) > count_left:
            return _Page(topics, _Place(name, indexes[count_left]))
        count_left -= len(indexes)
    return _Page(topics, None)


def _missing(broker: Broker, name: str) -> dict[str, Any]:
    is_possible = (flaw_of(name) or broker.flaw_of_new_topic(name)) is None
    return {
        "name": name,
        "error_code": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if is_possible
        else ErrorCode.INVALID_TOPIC_EXCEPTION,
        "is_internal": name in INTERNAL_TOPICS,
        "topic_authorized_operations": bit_field(TOPIC_OPERATIONS),
    }


def _described(broker: Broker, topic: Topic, indexes: list[int]) -> dict[str, Any]:
    from kafka.protocol.admin.topics import DescribeTopicPartitionsResponse

    topic_class = DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic
    return {
        "name": topic.name,
        "topic_id": uuid.UUID(bytes=topic.topic_id),
        "is_internal": topic.name in INTERNAL_TOPICS,
        "topic_authorized_operations": bit_field(TOPIC_OPERATIONS),
        "partitions": [
            topic_class.DescribeTopicPartitionsResponsePartition(**_partition(broker, topic, index))
            for index in indexes
        ],
    }


def _partition(broker: Broker, topic: Topic, index: int) -> dict[str, Any]:
    placement = broker.placements.find(topic, index)
    return {
        "error_code": ErrorCode.NONE,
        "partition_index": index,
        "leader_id": placement.leader,
        "leader_epoch": topic.partitions[index].leader_epoch,
        "replica_nodes": list(placement.replicas),
        "isr_nodes": list(placement.in_sync),
        "eligible_leader_replicas": list(placement.eligible),
        "last_known_elr": [] if placement.last_leader == NOBODY else [placement.last_leader],
        "offline_replicas": list(broker.nodes.down_among(placement.replicas)),
    }
