"""
StreamsGroupHeartbeat (88): version 0. All that a member of a streams group (KIP-1071) ever sends.

* epoch 0 joins, and tells the topology; -1 leaves
* the answer tells the epoch, when to come again, statuses of the group and, if they have changed,
  the tasks to run and the endpoints that answer queries
* internal topics that are missing are made; what keeps one from being made is told with the
  status, and it is tried again after two heartbeat intervals
* 35 where a directory of before 4.2, or ``group.coordinator.rebalance.protocols``, has no groups
  of this kind
* 42 contradicts itself, wants to be a static member, or brings another topology; 130 the topology
  cannot be, or has names that no topic can have; 81 the group is full
* 69 no such group, or one of another kind; only an empty classic one becomes a streams group
* 25 no such member; 110 it must give up everything and join again
* -1, as Kafka: what contradicts itself in a way that Kafka does not look for

Read and written by messages of our own: the library does not have these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

import attrs

from logstore.compat.kafka.declared_messages import answered, read_request
from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.features import STREAMS_VERSION
from logstore.compat.kafka.groups.modern.broker_cluster import serves_groups
from logstore.compat.kafka.groups.modern.hash_order import members_in_order
from logstore.compat.kafka.groups.streams.exchange import (
    EndpointPartitions,
    HeartbeatAnswer,
    StreamsHeartbeat,
)
from logstore.compat.kafka.groups.streams.internal_topics import with_topics_made
from logstore.compat.kafka.groups.streams.messages import (
    EndpointToPartitions,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    ToldStatus,
    TopicPartitions,
    Topology,
)
from logstore.compat.kafka.topics.names import INTERNAL_TOPICS, flaw_of
from logstore.segments.kafka.internal_topics.streams_group import (
    StreamsGroupTopologyValue,
    TaskIds,
)

if TYPE_CHECKING:
    from logstore.compat.connection import Chunk
    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client
    from logstore.compat.kafka.registry import RawRequest


def handle(broker: Broker, client: Client, request: RawRequest) -> list[Chunk]:
    """Note that a member lives, and tell it what it shall run."""
    return serve(broker, client, request, may_create=_anything)


def _anything(topic: str) -> bool:
    del topic
    return True


def serve(
    broker: Broker, client: Client, request: RawRequest, *, may_create: Callable[[str], bool]
) -> list[Chunk]:
    """Do the same for a client that may create some topics, and perhaps not others."""
    asked = read_request(StreamsGroupHeartbeatRequest, request)
    return answered(_response(_answer(broker, client, asked, may_create)), request)


def _answer(
    broker: Broker,
    client: Client,
    asked: StreamsGroupHeartbeatRequest,
    may_create: Callable[[str], bool],
) -> HeartbeatAnswer:
    if not serves_groups(broker, "streams", STREAMS_VERSION):
        return HeartbeatAnswer(ErrorCode.UNSUPPORTED_VERSION)
    flaw = None if asked.topology is None else flaw_of_names(asked.topology)
    if flaw is not None:
        return HeartbeatAnswer(ErrorCode.STREAMS_INVALID_TOPOLOGY, flaw)
    answer = broker.groups.streams.heartbeat(_beat(client, asked))
    return with_topics_made(broker, asked.group_id, answer, may_create)


def flaw_of_names(topology: Topology) -> str | None:
    """Return why a topology cannot be served, going by the names of its topics."""
    names = dict.fromkeys(
        name
        for one in topology.subtopologies
        for name in (
            *one.source_topics,
            *one.repartition_sink_topics,
            *(topic.name for topic in one.repartition_source_topics),
            *(topic.name for topic in one.state_changelog_topics),
        )
    )
    internal = [name for name in names if name in INTERNAL_TOPICS]
    if internal:
        return (
            f"Use of Kafka internal topics {','.join(internal)} in a Kafka Streams topology is "
            "prohibited."
        )
    invalid = [name for name in names if flaw_of(name) is not None]
    return f"Topic names {','.join(invalid)} are not valid topic names." if invalid else None


def _beat(client: Client, asked: StreamsGroupHeartbeatRequest) -> StreamsHeartbeat:
    topology = asked.topology
    return StreamsHeartbeat(
        group_id=asked.group_id,
        member_id=asked.member_id,
        member_epoch=asked.member_epoch,
        client_id=client.client_id,
        # Java prints an address as name/number, and the name of a peer is not looked up.
        client_host=f"/{client.host}",
        endpoint_epoch=asked.endpoint_information_epoch,
        instance_id=asked.instance_id,
        rack_id=asked.rack_id,
        rebalance_timeout_ms=asked.rebalance_timeout_ms,
        topology=None
        if topology is None
        else StreamsGroupTopologyValue(epoch=topology.epoch, subtopologies=topology.subtopologies),
        active=_tasks(asked.active_tasks),
        standby=_tasks(asked.standby_tasks),
        warmup=_tasks(asked.warmup_tasks),
        names_twice=any(
            len({one.subtopology_id for one in told}) < len(told)
            for told in (asked.active_tasks, asked.standby_tasks, asked.warmup_tasks)
            if told is not None
        ),
        process_id=asked.process_id,
        user_endpoint=asked.user_endpoint,
        client_tags=asked.client_tags,
        has_task_offsets=asked.task_offsets is not None,
        has_task_end_offsets=asked.task_end_offsets is not None,
        shuts_down_application=asked.shutdown_application != 0,
    )


def _tasks(told: Iterable[TaskIds] | None) -> dict[str, frozenset[int]] | None:
    if told is None:
        return None
    found: dict[str, frozenset[int]] = {}
    for one in told:
        found[one.subtopology_id] = found.get(one.subtopology_id, frozenset()).union(one.partitions)
    return found


def _response(answer: HeartbeatAnswer) -> StreamsGroupHeartbeatResponse:
    response = StreamsGroupHeartbeatResponse(
        error_code=answer.error_code,
        error_message=answer.error_message,
        member_id=answer.member_id,
        member_epoch=answer.member_epoch,
        heartbeat_interval_ms=answer.heartbeat_interval_ms,
        status=tuple(
            ToldStatus(status_code=one.code, status_detail=one.detail) for one in answer.statuses
        ),
        endpoint_information_epoch=answer.endpoint_epoch,
    )
    tasks = answer.tasks
    if tasks is not None:
        response = attrs.evolve(
            response,
            active_tasks=_told(tasks.active),
            standby_tasks=_told(tasks.standby),
            warmup_tasks=_told(tasks.warmup),
        )
    if answer.endpoints is None:
        return response
    endpoints = tuple(_told_endpoint(one) for one in answer.endpoints)
    return attrs.evolve(response, partitions_by_user_endpoint=endpoints)


def _told(tasks: Mapping[str, Iterable[int]]) -> tuple[TaskIds, ...]:
    return tuple(
        TaskIds(subtopology_id=name, partitions=tuple(sorted(tasks[name])))
        for name in members_in_order(tasks)
    )


def _told_endpoint(found: EndpointPartitions) -> EndpointToPartitions:
    return EndpointToPartitions(
        user_endpoint=found.endpoint,
        active_partitions=_topic_partitions(found.active),
        standby_partitions=_topic_partitions(found.standby),
    )


def _topic_partitions(
    found: Iterable[tuple[str, tuple[int, ...]]],
) -> tuple[TopicPartitions, ...]:
    return tuple(TopicPartitions(topic=topic, partitions=indexes) for topic, indexes in found)
