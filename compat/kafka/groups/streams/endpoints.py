"""
Where which partitions can be asked for: every member is told of all that answer queries.

Source: ``EndpointToPartitionsManager``, ``StreamsGroup.buildEndpointToPartitions``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.groups.modern.cluster import Cluster
from logstore.compat.kafka.groups.modern.hash_order import members_in_order
from logstore.compat.kafka.groups.streams.exchange import EndpointPartitions
from logstore.compat.kafka.groups.streams.member import StreamsMember
from logstore.compat.kafka.groups.streams.topics.configured_topology import ConfiguredTopology
from logstore.compat.kafka.refused_request import RefusedRequestError

_Partitions = tuple[tuple[str, tuple[int, ...]], ...]


def endpoints_of(
    members: Iterable[StreamsMember], configured: ConfiguredTopology, cluster: Cluster
) -> tuple[EndpointPartitions, ...]:
    """
    Return the partitions of all members that have an endpoint.

    Raises:
        RefusedRequestError: -1, as in Kafka: a member has an endpoint, and the topics do not go
            with the topology.

    """
    found: list[EndpointPartitions] = []
    for member in members:
        if member.user_endpoint is not None:
            active = {name: epochs.keys() for name, epochs in member.assigned.active.items()}
            found.append(
                EndpointPartitions(
                    member.user_endpoint,
                    _partitions(active, configured, cluster),
                    _partitions(member.assigned.standby, configured, cluster),
                )
            )
    return tuple(found)


def _partitions(
    tasks: Mapping[str, Iterable[int]], configured: ConfiguredTopology, cluster: Cluster
) -> _Partitions:
    if configured.subtopologies is None:
        raise RefusedRequestError(ErrorCode.UNKNOWN_SERVER_ERROR)
    found: list[tuple[str, tuple[int, ...]]] = []
    for name, partitions in sorted(tasks.items()):
        subtopology = configured.subtopologies.get(name)
        if subtopology is None:
            raise RefusedRequestError(ErrorCode.UNKNOWN_SERVER_ERROR)
        topics = subtopology.source_topics | subtopology.repartition_source_topics.keys()
        for topic in members_in_order(sorted(topics)):
            shape = cluster.topic_named(topic)
            if shape is None:
                raise RefusedRequestError(ErrorCode.UNKNOWN_SERVER_ERROR)
            found.append((topic, tuple(sorted(partitions))[: shape.partition_count]))
    return tuple(found)
