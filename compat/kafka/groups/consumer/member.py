"""One member of a consumer group: what it wants, what it has and what it must give back."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping

import attrs

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.groups.modern.group import TopicIdPartition
from logstore.compat.kafka.groups.modern.member import MemberState, ModernMember
from logstore.segments.kafka.internal_topics.consumer_group import ClassicMemberMetadata

#: partitions by topic id, each with the epoch in which it was given
HeldPartitions = Mapping[uuid.UUID, Mapping[int, int]]


@attrs.frozen
class ConsumerMember(ModernMember):
    """
    A member of a consumer group.

    `classic` is what a member that speaks the classic protocol has said there; None for others.
    Source: ``ConsumerGroupMember``.
    """

    instance_id: str | None = None
    #: empty for none
    subscribed_topic_regex: str = ""
    server_assignor: str | None = None
    assigned: HeldPartitions = attrs.field(factory=dict[uuid.UUID, dict[int, int]])
    pending_revocation: HeldPartitions = attrs.field(factory=dict[uuid.UUID, dict[int, int]])
    classic: ClassicMemberMetadata | None = None

    @property
    def is_classic(self) -> bool:
        """Tell whether it speaks the classic protocol."""
        return self.classic is not None

    @property
    def is_giving_back(self) -> bool:
        """Tell whether it was told to give partitions back and has not done so."""
        return self.state is MemberState.UNREVOKED_PARTITIONS

    @property
    def stale_epoch_error(self) -> ErrorCode:
        """What it is told in another epoch than its own: in the classic protocol, a generation."""
        return ErrorCode.ILLEGAL_GENERATION if self.is_classic else ErrorCode.STALE_MEMBER_EPOCH

    def held(self) -> Iterator[TopicIdPartition]:
        """Yield every partition that nobody else may have: also what it has to give back."""
        for held in (self.assigned, self.pending_revocation):
            for topic_id, partitions in held.items():
                for partition in partitions:
                    yield topic_id, partition

    def has(self) -> dict[uuid.UUID, set[int]]:
        """Return by topic what nobody else may have."""
        found: dict[uuid.UUID, set[int]] = {}
        for topic_id, partition in self.held():
            found.setdefault(topic_id, set()).add(partition)
        return found

    def epoch_of(self, partition: TopicIdPartition) -> int | None:
        """Return in which epoch it was given a partition, None if it does not have it."""
        topic_id, index = partition
        for held in (self.assigned, self.pending_revocation):
            if index in held.get(topic_id, {}):
                return held[topic_id][index]
        return None

    def has_same_partitions(self, other: ConsumerMember) -> bool:
        """Tell whether both have the same partitions, whenever they were given."""
        return _without_epochs(self.assigned) == _without_epochs(other.assigned)


def _without_epochs(held: HeldPartitions) -> dict[uuid.UUID, set[int]]:
    return {topic_id: set(partitions) for topic_id, partitions in held.items()}
