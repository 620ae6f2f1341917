"""Members of streams groups, byte by byte: what no Kafka Streams application would say."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import attrs

from logstore.compat.kafka.groups.streams.messages import (
    DescribedGroup,
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    Topology,
)
from logstore.segments.kafka.internal_topics.streams_group import (
    CopartitionGroup,
    KeyValue,
    StreamsTopic,
    Subtopology,
    TaskIds,
)
from tests.interop.group_wire import GroupWire

HEARTBEAT, DESCRIBE = 88, 89
REBALANCE_MS = 60_000


class StreamsWire(GroupWire):
    """One connection to a broker that speaks of streams groups too."""

    def live(
        self, group: str, member_id: str, epoch: int, /, **fields: Any
    ) -> StreamsGroupHeartbeatResponse:
        """Send a heartbeat; what is not told is null."""
        request = StreamsGroupHeartbeatRequest(
            group_id=group, member_id=member_id, member_epoch=epoch
        )
        request = attrs.evolve(request, **fields)
        return self.ask_ours(HEARTBEAT, 0, request, StreamsGroupHeartbeatResponse)

    def describe_streams(self, *groups: str) -> tuple[DescribedGroup, ...]:
        """Ask for groups as they stand."""
        request = StreamsGroupDescribeRequest(group_ids=groups, include_authorized_operations=1)
        return self.ask_ours(DESCRIBE, 0, request, StreamsGroupDescribeResponse).groups


def topology(*subtopologies: Subtopology, epoch: int = 0) -> Topology:
    """Return a topology."""
    return Topology(epoch=epoch, subtopologies=subtopologies)


def subtopology(name: str, *sources: str, **fields: Any) -> Subtopology:
    """Return a subtopology that reads some topics, and does nothing else that is not said."""
    plain: dict[str, Any] = {
        "source_topic_regex": (),
        "state_changelog_topics": (),
        "repartition_sink_topics": (),
        "repartition_source_topics": (),
        "copartition_groups": (),
    }
    return Subtopology(subtopology_id=name, source_topics=sources, **plain | fields)


def internal(name: str, partitions: int = 0, **configs: str) -> StreamsTopic:
    """Return an internal topic; settings have underscores for dots."""
    pairs = tuple(
        KeyValue(key=key.replace("_", "."), value=value) for key, value in configs.items()
    )
    return StreamsTopic(name=name, partitions=partitions, replication_factor=0, topic_configs=pairs)


def together(sources: Iterable[int] = (), repartition: Iterable[int] = ()) -> CopartitionGroup:
    """Return a group of topics that are joined, by their places."""
    return CopartitionGroup(
        source_topics=tuple(sources),
        source_topic_regex=(),
        repartition_source_topics=tuple(repartition),
    )


def tasks(**partitions: Iterable[int]) -> tuple[TaskIds, ...]:
    """Return tasks by subtopology: ``tasks(s0=[1, 2])``."""
    return tuple(
        TaskIds(subtopology_id=name.removeprefix("s"), partitions=tuple(indexes))
        for name, indexes in partitions.items()
    )


def owned(active: tuple[TaskIds, ...] = (), standby: tuple[TaskIds, ...] = ()) -> dict[str, Any]:
    """Return what a member says that it has."""
    return {"active_tasks": active, "standby_tasks": standby, "warmup_tasks": ()}


def joining(told: Topology | None, process: str = "p", **fields: Any) -> dict[str, Any]:
    """Return what a member says first."""
    return {
        "rebalance_timeout_ms": REBALANCE_MS,
        "topology": told,
        "process_id": process,
        "client_tags": (),
        **owned(),
        **fields,
    }
