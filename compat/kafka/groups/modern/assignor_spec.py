"""What an assignor is asked: members, what they want and had, and how large the topics are."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from typing import TypeAlias

import attrs

from logstore.compat.kafka.groups.modern.group import Target, TopicIdPartition
from logstore.compat.kafka.groups.modern.hash_order import members_in_order

#: what each member shall have, by member id; one that is missing shall have nothing
Assignment: TypeAlias = dict[str, Target]


@attrs.frozen
class MemberSpec:
    """
    One member: the topics that it wants, and what it was to have until now.

    `name_count` is how many names it asks for, of topics that exist and others.
    """

    topic_ids: frozenset[uuid.UUID]
    target: Target
    name_count: int
    instance_id: str | None = None


@attrs.frozen
class GroupSpec:
    """A group; `partition_counts` tells of every topic that a member wants."""

    members: Mapping[str, MemberSpec]
    partition_counts: Mapping[uuid.UUID, int]
    #: all members want the same
    is_homogeneous: bool

    @property
    def member_ids(self) -> list[str]:
        """The members in the order in which Kafka goes through them."""
        return members_in_order(self.members)

    def assigned(self) -> set[TopicIdPartition]:
        """Return every partition that somebody was to have."""
        return {
            (topic_id, index)
            for member in self.members.values()
            for topic_id, indexes in member.target.items()
            for index in indexes
        }


Assignor: TypeAlias = Callable[[GroupSpec], Assignment]
