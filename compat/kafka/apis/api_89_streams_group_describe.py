"""
StreamsGroupDescribe (89): version 0. Streams groups (KIP-1071) as they stand.

* the topology, its internal topics with the partitions that they have, once the application can
  run; before that as its members told it
* each member with the tasks that it has and those that it shall have
* 35 as for StreamsGroupHeartbeat
* 69, with a message, for groups that are not there or of another kind; 24 for an empty name
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from logstore.compat.kafka.declared_messages import answered, read_request
from logstore.compat.kafka.features import STREAMS_VERSION
from logstore.compat.kafka.groups.modern.broker_cluster import serves_groups
from logstore.compat.kafka.groups.modern.describing import (
    described_groups,
    operations_for,
    refuse_unserved,
)
from logstore.compat.kafka.groups.modern.hash_order import (
    members_in_order,
    members_in_timeline_order,
)
from logstore.compat.kafka.groups.streams.member import StreamsMember
from logstore.compat.kafka.groups.streams.messages import (
    DescribedAssignment,
    DescribedGroup,
    DescribedMember,
    DescribedSubtopology,
    DescribedTopology,
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
)
from logstore.compat.kafka.groups.streams.tasks import HeldTasks, TargetTasks
from logstore.compat.kafka.groups.streams.topics.configured_topology import (
    ConfiguredSubtopology,
    ConfiguredTopology,
    InternalTopic,
)
from logstore.compat.kafka.groups.streams.topology import StreamsTopology
from logstore.segments.kafka.internal_topics.streams_group import (
    KeyValue,
    StreamsTopic,
    Subtopology,
    TaskIds,
)

if TYPE_CHECKING:
    from logstore.compat.connection import Chunk
    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client
    from logstore.compat.kafka.registry import RawRequest


def handle(broker: Broker, client: Client, request: RawRequest) -> list[Chunk]:
    """Return groups as they stand."""
    del client
    asked = read_request(StreamsGroupDescribeRequest, request)

    def describe(group_id: str) -> DescribedGroup:
        if not serves_groups(broker, "streams", STREAMS_VERSION):
            refuse_unserved()
        group = broker.groups.streams.described(group_id)
        configured = group.configured
        topology = configured if configured and configured.is_ready else group.topology
        return DescribedGroup(
            group_id=group_id,
            group_state=group.state.value,
            group_epoch=group.epoch,
            assignment_epoch=group.assignment_epoch,
            topology=None if topology is None else _topology(topology),
            members=tuple(
                _member(group.members[one], group.target_of(one))
                for one in members_in_timeline_order(group.members)
            ),
            authorized_operations=operations_for(asked),
        )

    groups = described_groups(asked, DescribedGroup, describe)
    return answered(StreamsGroupDescribeResponse(groups=groups), request)


def _topology(topology: StreamsTopology | ConfiguredTopology) -> DescribedTopology:
    if isinstance(topology, StreamsTopology):
        found = [_told(one) for _, one in sorted(topology.subtopologies.items())]
    else:
        found = [_configured(*one) for one in (topology.subtopologies or {}).items()]
    return DescribedTopology(epoch=topology.epoch, subtopologies=tuple(found))


def _told(subtopology: Subtopology) -> DescribedSubtopology:
    return DescribedSubtopology(
        subtopology_id=subtopology.subtopology_id,
        source_topics=tuple(sorted(subtopology.source_topics)),
        repartition_sink_topics=tuple(sorted(subtopology.repartition_sink_topics)),
        state_changelog_topics=_by_name(subtopology.state_changelog_topics),
        repartition_source_topics=_by_name(subtopology.repartition_source_topics),
    )


def _configured(name: str, subtopology: ConfiguredSubtopology) -> DescribedSubtopology:
    return DescribedSubtopology(
        subtopology_id=name,
        source_topics=tuple(sorted(subtopology.source_topics)),
        repartition_sink_topics=tuple(sorted(subtopology.repartition_sink_topics)),
        state_changelog_topics=_by_name(map(_topic, subtopology.state_changelog_topics.values())),
        repartition_source_topics=_by_name(
            map(_topic, subtopology.repartition_source_topics.values())
        ),
    )


def _topic(topic: InternalTopic) -> StreamsTopic:
    return StreamsTopic(
        name=topic.name,
        partitions=topic.partition_count,
        replication_factor=topic.replication_factor,
        topic_configs=tuple(
            KeyValue(key=key, value=value) for key, value in topic.settings.items()
        ),
    )


def _by_name(topics: Iterable[StreamsTopic]) -> tuple[StreamsTopic, ...]:
    return tuple(sorted(topics, key=lambda topic: topic.name))


def _member(member: StreamsMember, target: TargetTasks) -> DescribedMember:
    return DescribedMember(
        member_id=member.member_id,
        member_epoch=member.member_epoch,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        topology_epoch=member.topology_epoch,
        process_id=member.process_id,
        user_endpoint=member.user_endpoint,
        client_tags=tuple(
            KeyValue(key=key, value=member.client_tags[key])
            for key in members_in_order(member.client_tags)
        ),
        assignment=_assignment(member.assigned),
        target_assignment=_assignment(target),
    )


def _assignment(tasks: HeldTasks | TargetTasks) -> DescribedAssignment:
    return DescribedAssignment(
        active_tasks=_task_ids(tasks.active),
        standby_tasks=_task_ids(tasks.standby),
        warmup_tasks=_task_ids(tasks.warmup),
    )


def _task_ids(tasks: Mapping[str, Iterable[int]]) -> tuple[TaskIds, ...]:
    return tuple(
        TaskIds(subtopology_id=name, partitions=tuple(sorted(tasks[name])))
        for name in sorted(tasks)
    )
