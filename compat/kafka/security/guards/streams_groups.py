"""
Guards of streams groups (KIP-1071): members' heartbeats, and groups described.

The internal topics of an application are made by the broker, for the member whose heartbeat brings
them to mind: it is that member who must be allowed to create them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING

import attrs

from logstore.compat.kafka.apis.api_88_streams_group_heartbeat import flaw_of_names, serve
from logstore.compat.kafka.features import STREAMS_VERSION
from logstore.compat.kafka.groups.modern.broker_cluster import serves_groups
from logstore.compat.kafka.groups.streams.messages import (
    DescribedGroup,
    DescribedSubtopology,
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
)
from logstore.compat.kafka.security.acl import CLUSTER_NAME, Operation, ResourceType
from logstore.compat.kafka.security.guards.own_messages import DescribeGuard, HeartbeatGuard

if TYPE_CHECKING:
    from logstore.compat.connection import Chunk
    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client
    from logstore.compat.kafka.registry import Api, RawRequest
    from logstore.compat.kafka.security.authorizer import Authorizer
    from logstore.compat.waiting import Later
    from logstore.segments.kafka.internal_topics.streams_group import Subtopology


def streams_group_heartbeat(
    authorizer: Authorizer, api: Api, broker: Broker, client: Client, raw: RawRequest
) -> list[Chunk] | Later[list[Chunk]] | None:
    """Let the member live, and make what it may create, or refuse it."""
    handle = partial(serve, may_create=partial(_may_create, authorizer, client))
    return _heartbeat(authorizer, attrs.evolve(api, handle_raw=handle), broker, client, raw)


def _may_create(authorizer: Authorizer, client: Client, topic: str) -> bool:
    create = Operation.CREATE
    return authorizer.allows(
        client, create, ResourceType.CLUSTER, CLUSTER_NAME, is_logged=False
    ) or authorizer.allows(client, create, ResourceType.TOPIC, topic)


def _told(asked: StreamsGroupHeartbeatRequest) -> Iterable[str]:
    if asked.topology is None or flaw_of_names(asked.topology) is not None:
        return ()  # a flaw is the handler's to tell
    return _named(asked.topology.subtopologies)


def _named(subtopologies: Iterable[Subtopology | DescribedSubtopology]) -> Iterator[str]:
    for one in subtopologies:
        yield from one.source_topics
        yield from one.repartition_sink_topics
        yield from (topic.name for topic in one.repartition_source_topics)
        yield from (topic.name for topic in one.state_changelog_topics)


def _described(group: DescribedGroup) -> Iterable[str]:
    return () if group.topology is None else _named(group.topology.subtopologies or ())


def _is_served(broker: Broker) -> bool:
    return serves_groups(broker, "streams", STREAMS_VERSION)


_heartbeat = HeartbeatGuard(
    StreamsGroupHeartbeatRequest, StreamsGroupHeartbeatResponse, _told, _is_served
)
streams_group_describe = DescribeGuard(
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
    DescribedGroup,
    _described,
    "The described group uses topics that the client is not authorized to describe.",
    _is_served,
)
