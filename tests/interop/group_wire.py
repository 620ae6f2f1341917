"""Members of KIP-848 groups, byte by byte: what no client library would let a test say."""

from __future__ import annotations

import uuid
from typing import Any

import attrs

from logstore.compat.kafka.groups.consumer.messages import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    DescribedGroup,
)
from logstore.segments.kafka.internal_topics.consumer_group import TopicPartition
from logstore.segments.kafka.internal_topics.schema import Message
from tests.compat.kafka.groups.questioner import Line
from tests.interop.eventually import eventually
from tests.interop.own_wire import MessageT, ask_own
from tests.interop.raw_wire import Wire

HEARTBEAT, DESCRIBE = 68, 69
VERSION = 1
REBALANCE_MS = 60_000


class GroupWire:
    """One connection to a broker that speaks of groups."""

    def __init__(self, bootstrap: str) -> None:
        self._wire = Wire(bootstrap)

    def close(self) -> None:
        """Hang up."""
        self._wire.close()

    def ask_ours(self, key: int, version: int, request: Message, kind: type[MessageT]) -> MessageT:
        """Send a request of an API and return its answer."""
        return ask_own(self._wire, key, version, request, kind)

    def beat(
        self, group: str, member_id: str, epoch: int, /, version: int = VERSION, **fields: Any
    ) -> ConsumerGroupHeartbeatResponse:
        """Send a heartbeat; what is not told is null."""
        request = ConsumerGroupHeartbeatRequest(
            group_id=group, member_id=member_id, member_epoch=epoch
        )
        request = attrs.evolve(request, **fields)
        return self.ask_ours(HEARTBEAT, version, request, ConsumerGroupHeartbeatResponse)

    def describe(self, *groups: str, version: int = VERSION) -> tuple[DescribedGroup, ...]:
        """Ask for groups as they stand."""
        request = ConsumerGroupDescribeRequest(group_ids=groups, include_authorized_operations=1)
        return self.ask_ours(DESCRIBE, version, request, ConsumerGroupDescribeResponse).groups


class Numbered:
    """Makes answers comparable: topics get numbers in place of the ids that a broker made up."""

    def __init__(self) -> None:
        self._numbers: dict[uuid.UUID, int] = {}

    def plain(self, value: Any) -> Any:
        """Return an answer, or a part of one, without ids and in an order of its own."""
        if isinstance(value, uuid.UUID):
            return self._numbers.setdefault(value, len(self._numbers))
        if isinstance(value, Message):
            return {
                field.name: self.plain(getattr(value, field.name))
                for field in attrs.fields(type(value))
            }
        if isinstance(value, tuple):
            # Topics come in the order of their ids: the numbers follow the partitions instead.
            parts = sorted(value, key=lambda part: -len(getattr(part, "partitions", ())))
            return sorted((self.plain(part) for part in parts), key=str)
        return value


class RawMember:
    """A well-behaved member of a group that wants one topic."""

    def __init__(self, group: str, member_id: str, topic: str) -> None:
        self.group = group
        self.member_id = member_id
        self.topic = topic
        self.epoch = 0
        self.owned: tuple[TopicPartition, ...] = ()

    def beat(self, wire: GroupWire) -> None:
        """Say that the member lives, and what it has; take what it is given."""
        fields: dict[str, Any] = {"topic_partitions": self.owned}
        if self.epoch == 0:
            names = {"subscribed_topic_names": (self.topic,), "rebalance_timeout_ms": REBALANCE_MS}
            fields |= names
        answer = wire.beat(self.group, self.member_id, self.epoch, **fields)
        assert answer.error_code == 0, answer
        self.epoch = answer.member_epoch
        if answer.assignment is not None:
            self.owned = answer.assignment.topic_partitions

    @property
    def partitions(self) -> set[tuple[uuid.UUID, int]]:
        """The partitions that it has."""
        return {(one.topic_id, index) for one in self.owned for index in one.partitions}


def change_group(bootstrap: str, group: str, change: str) -> None:
    """Give a group a setting of its own, and wait until the broker has it."""
    name, _, value = change.partition("=")
    line = Line(bootstrap)
    entry = {"name": name, "value": value, "config_operation": 0}
    resource = {"resource_type": 32, "resource_name": group, "configs": [entry]}
    told = line.ask("IncrementalAlterConfigs", 1, resources=[resource], validate_only=False)
    assert told["responses"][0]["error_code"] == 0, told

    def has_it() -> bool:
        asked = {"resource_type": 32, "resource_name": group, "configuration_keys": [name]}
        found = line.ask("DescribeConfigs", 4, resources=[asked])["results"][0]["configs"]
        return [one["value"] for one in found] == [value]

    eventually(has_it, what=change)
