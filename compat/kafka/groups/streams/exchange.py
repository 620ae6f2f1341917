"""What members and administrators ask of streams groups and are told, without a wire version."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.groups.streams.states import StatusCode
from logstore.compat.kafka.groups.streams.tasks import HeldTasks, TargetTasks
from logstore.compat.kafka.groups.streams.topics.configured_topology import (
    InternalTopic,
)
from logstore.segments.kafka.internal_topics.streams_group import (
    Endpoint,
    KeyValue,
    StreamsGroupTopologyValue,
)

#: a timeout that a heartbeat does not tell
UNTOLD_MS = -1


@attrs.frozen
class StreamsHeartbeat:
    """A member joins, lives, or leaves; None is what has not changed since the last one."""

    group_id: str
    member_id: str
    member_epoch: int
    client_id: str
    client_host: str
    #: the last state of :attr:`HeartbeatAnswer.endpoints` that the member has
    endpoint_epoch: int = 0
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = UNTOLD_MS
    topology: StreamsGroupTopologyValue | None = None
    #: what the member still has in its hands; of the kinds that it does not tell None
    active: Mapping[str, frozenset[int]] | None = None
    standby: Mapping[str, frozenset[int]] | None = None
    warmup: Mapping[str, frozenset[int]] | None = None
    #: a subtopology comes twice among those of a kind
    names_twice: bool = False
    process_id: str | None = None
    user_endpoint: Endpoint | None = None
    client_tags: tuple[KeyValue, ...] | None = None
    has_task_offsets: bool = False
    has_task_end_offsets: bool = False
    shuts_down_application: bool = False

    @property
    def owned(self) -> TargetTasks | None:
        """What the member has in its hands, None if it does not tell of every kind."""
        if self.active is None or self.standby is None or self.warmup is None:
            return None
        return TargetTasks(self.active, self.standby, self.warmup)


@attrs.frozen
class Status:
    """Something that members shall know about their group."""

    code: StatusCode
    detail: str


@attrs.frozen
class EndpointPartitions:
    """Which partitions can be asked for at an endpoint, and of which it has a copy."""

    endpoint: Endpoint
    active: tuple[tuple[str, tuple[int, ...]], ...]
    standby: tuple[tuple[str, tuple[int, ...]], ...]


@attrs.frozen
class HeartbeatAnswer:
    """Where the member stands now; `tasks` and `endpoints` only if it must be told."""

    error_code: ErrorCode
    error_message: str | None = None
    member_id: str = ""
    member_epoch: int = 0
    heartbeat_interval_ms: int = 0
    statuses: tuple[Status, ...] = ()
    tasks: HeldTasks | None = None
    endpoint_epoch: int = 0
    endpoints: tuple[EndpointPartitions, ...] | None = None
    #: topics that the application needs and that are not there
    missing: Mapping[str, InternalTopic] = attrs.field(factory=dict[str, InternalTopic])
