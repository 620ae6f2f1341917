"""What members and administrators ask of consumer groups and are told, without a wire version."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.groups.modern.group import Target, TopicIdPartition

#: a timeout that a heartbeat does not tell
UNTOLD_MS = -1


@attrs.frozen
class ConsumerHeartbeat:
    """
    A member joins, lives, or leaves; None is what has not changed since the last one.

    `needs_member_id` says that members make up their ids themselves (version 1 and later).
    """

    group_id: str
    member_id: str
    member_epoch: int
    client_id: str
    client_host: str
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = UNTOLD_MS
    subscribed_topic_names: frozenset[str] | None = None
    subscribed_topic_regex: str | None = None
    server_assignor: str | None = None
    #: what the member still has in its hands
    owned: frozenset[TopicIdPartition] | None = None
    needs_member_id: bool = True
    #: which topics the client may see; None if all of them
    may_see: Callable[[str], bool] | None = None

    @property
    def is_full(self) -> bool:
        """Tell whether it says everything, as after an error: then all is answered as well."""
        is_subscribing = (self.subscribed_topic_names, self.subscribed_topic_regex) != (None, None)
        has_timeout = self.rebalance_timeout_ms != UNTOLD_MS
        return has_timeout and is_subscribing and self.owned is not None


@attrs.frozen
class HeartbeatAnswer:
    """Where the member stands now; an `assignment` only if it must be told."""

    error_code: ErrorCode
    error_message: str | None = None
    member_id: str | None = None
    member_epoch: int = 0
    heartbeat_interval_ms: int = 0
    assignment: Target | None = None
