"""
Guards of APIs whose messages are the house's own: heartbeats, groups described, coordinators.

What differs from kind to kind of group is given: the messages, and which topics stand in them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import attrs

from logstore.compat.kafka.authorized_operations import GROUP_OPERATIONS, bit_field
from logstore.compat.kafka.declared_messages import answered, read_request
from logstore.compat.kafka.faults.own_answers import OWN_ANSWERS
from logstore.compat.kafka.message_handlers import ask_declared
from logstore.compat.kafka.security.acl import Operation, ResourceType
from logstore.compat.kafka.security.guarded_request import REFUSALS

if TYPE_CHECKING:
    from logstore.compat.connection import Chunk
    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client
    from logstore.compat.kafka.groups.modern.messages import DescribedGroupHead
    from logstore.compat.kafka.registry import Api, RawRequest
    from logstore.compat.kafka.security.authorizer import Authorizer
    from logstore.compat.waiting import Later
    from logstore.segments.kafka.internal_topics.schema import Message

_GROUP, _TOPIC = ResourceType.GROUP, ResourceType.TOPIC


@attrs.frozen
class HeartbeatGuard:
    """To read the group, and to describe each of the `topics` that a heartbeat names."""

    request_class: type[Message]
    response_class: Callable[..., Message]
    topics: Callable[[Any], Iterable[str]]
    #: tells whether there are groups of the kind at all; if not the handler says so
    is_served: Callable[[Broker], bool]

    def __call__(
        self, authorizer: Authorizer, api: Api, broker: Broker, client: Client, raw: RawRequest
    ) -> list[Chunk] | Later[list[Chunk]] | None:
        """Let the member live, or refuse it."""
        asked: Any = read_request(self.request_class, raw)
        if self.is_served(broker):
            if not authorizer.allows(client, Operation.READ, _GROUP, asked.group_id):
                return answered(self.response_class(error_code=REFUSALS[_GROUP][0]), raw)
            if not _may_describe(authorizer, client, self.topics(asked)):
                return answered(self.response_class(error_code=REFUSALS[_TOPIC][0]), raw)
        assert api.handle_raw is not None
        return api.handle_raw(broker, client, raw)


@attrs.frozen
class DescribeGuard:
    """To describe each group, and each of the `topics` that its description names."""

    request_class: type[Message]
    response_class: Callable[..., Message]
    group_class: type[DescribedGroupHead]
    topics: Callable[[Any], Iterable[str]]
    #: what is said where topics are not to be seen
    unseen: str
    is_served: Callable[[Broker], bool]

    def __call__(
        self, authorizer: Authorizer, api: Api, broker: Broker, client: Client, raw: RawRequest
    ) -> list[Chunk] | Later[list[Chunk]] | None:
        """Describe what may be described, and refuse the rest."""
        assert api.handle_raw is not None
        if not self.is_served(broker):
            return api.handle_raw(broker, client, raw)
        asked: Any = read_request(self.request_class, raw)
        allowed = [
            one for one in asked.group_ids
            if authorizer.allows(client, Operation.DESCRIBE, _GROUP, one)
        ]  # fmt: skip
        less = attrs.evolve(asked, group_ids=tuple(allowed))
        kind: Any = self.response_class
        served = ask_declared(api, broker, client, raw, less, kind)
        groups = [self.group_class(group_id=one, error_code=REFUSALS[_GROUP][0])
                  for one in asked.group_ids if one not in allowed]  # fmt: skip
        for group in served.groups:
            if not _may_describe(authorizer, client, self.topics(group)):
                refused = self.group_class(
                    group_id=group.group_id,
                    error_code=REFUSALS[_TOPIC][0],
                    error_message=self.unseen,
                )
                groups.append(refused)
            elif asked.include_authorized_operations and not group.error_code:
                field = _operations(authorizer, client, group.group_id)
                groups.append(attrs.evolve(group, authorized_operations=field))
            else:
                groups.append(group)
        return answered(kind(groups=tuple(groups)), raw)


@attrs.frozen
class ClusterGuard:
    """To do something with the cluster; who may not is told so thing by thing, with the `text`."""

    operation: Operation
    text: str = REFUSALS[ResourceType.CLUSTER][1]

    def __call__(
        self, authorizer: Authorizer, api: Api, broker: Broker, client: Client, raw: RawRequest
    ) -> list[Chunk] | Later[list[Chunk]] | None:
        """Serve it, or refuse it."""
        if authorizer.allows_cluster(client, self.operation):
            assert api.handle_raw is not None
            return api.handle_raw(broker, client, raw)
        error = {"error_code": REFUSALS[ResourceType.CLUSTER][0], "error_message": self.text}
        return answered(OWN_ANSWERS[api.key](raw, error), raw)


cluster_action = ClusterGuard(Operation.CLUSTER_ACTION)
change_voters = ClusterGuard(Operation.ALTER)
unregister_broker = ClusterGuard(
    Operation.ALTER, "Request UnregisterBroker needs ALTER permission."
)


def _may_describe(authorizer: Authorizer, client: Client, topics: Iterable[str]) -> bool:
    return all(authorizer.allows(client, Operation.DESCRIBE, _TOPIC, name) for name in topics)


def _operations(authorizer: Authorizer, client: Client, group_id: str) -> int:
    """Return what the client may do with a group, as the wire has it."""
    return bit_field(
        frozenset(
            operation
            for operation in GROUP_OPERATIONS
            if authorizer.allows(client, Operation(operation), _GROUP, group_id, is_logged=False)
        )
    )
