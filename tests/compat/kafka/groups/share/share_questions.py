"""Members and administrators of share groups, byte by byte: what no library would let one say."""

from __future__ import annotations

import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, TypeVar

from logstore.compat.kafka.groups.share import messages as of_groups
from logstore.compat.kafka.share_state import messages as of_state
from logstore.segments.kafka.internal_topics.schema import Message
from logstore.segments.kafka.internal_topics.share_group import StateBatch

MessageT = TypeVar("MessageT", bound=Message)


class ShareQuestions(ABC):
    """What can be asked about share groups; who asks says how a request reaches the broker."""

    @abstractmethod
    def ask_ours(self, key: int, version: int, request: Message, kind: type[MessageT]) -> MessageT:
        """Send a request of an API and return its answer."""

    def share_beat(
        self, group: str, member_id: str, epoch: int, /, **fields: Any
    ) -> of_groups.ShareGroupHeartbeatResponse:
        """Send a heartbeat; what is not told is null."""
        request = of_groups.ShareGroupHeartbeatRequest(
            group_id=group, member_id=member_id, member_epoch=epoch, **fields
        )
        return self.ask_ours(76, 1, request, of_groups.ShareGroupHeartbeatResponse)

    def describe_share(self, *groups: str) -> tuple[of_groups.DescribedGroup, ...]:
        """Ask for groups as they stand."""
        request = of_groups.ShareGroupDescribeRequest(
            group_ids=groups, include_authorized_operations=1
        )
        return self.ask_ours(77, 1, request, of_groups.ShareGroupDescribeResponse).groups

    def starts(
        self, group: str, topics: dict[str, tuple[int, ...]] | None = None, version: int = 1
    ) -> of_groups.DescribedOffsetsGroup:
        """Ask where a group starts."""
        return self.starts_of_each(group, None if topics is None else topics.items(), version)

    def starts_of_each(
        self, group: str, topics: Iterable[tuple[str, tuple[int, ...]]] | None, version: int = 1
    ) -> of_groups.DescribedOffsetsGroup:
        """Ask the same, of topics that may come twice."""
        wanted = of_groups.DescribeOffsetsGroup(
            group_id=group,
            topics=None
            if topics is None
            else tuple(
                of_groups.DescribeOffsetsTopic(topic_name=name, partitions=indexes)
                for name, indexes in topics
            ),
        )
        request = of_groups.DescribeShareGroupOffsetsRequest(groups=(wanted,))
        response = of_groups.DescribeShareGroupOffsetsResponse
        (found,) = self.ask_ours(90, version, request, response).groups
        return found

    def alter(
        self, group: str, topics: dict[str, dict[int, int]]
    ) -> of_groups.AlterShareGroupOffsetsResponse:
        """Let a group start elsewhere."""
        return self.alter_each(group, [(name, them.items()) for name, them in topics.items()])

    def alter_each(
        self, group: str, topics: Iterable[tuple[str, Iterable[tuple[int, int]]]]
    ) -> of_groups.AlterShareGroupOffsetsResponse:
        """Do the same with topics and partitions that may come twice."""
        request = of_groups.AlterShareGroupOffsetsRequest(
            group_id=group,
            topics=tuple(
                of_groups.AlterOffsetsTopic(
                    topic_name=name,
                    partitions=tuple(
                        of_groups.AlterOffsetsPartition(partition_index=index, start_offset=start)
                        for index, start in starts
                    ),
                )
                for name, starts in topics
            ),
        )
        return self.ask_ours(91, 0, request, of_groups.AlterShareGroupOffsetsResponse)

    def forget(self, group: str, *topics: str) -> of_groups.DeleteShareGroupOffsetsResponse:
        """Let a group forget what it has read of topics."""
        request = of_groups.DeleteShareGroupOffsetsRequest(
            group_id=group,
            topics=tuple(of_groups.DeleteOffsetsTopic(topic_name=name) for name in topics),
        )
        return self.ask_ours(92, 0, request, of_groups.DeleteShareGroupOffsetsResponse)

    # the share coordinator

    def begin_state(
        self, group: str, topic: uuid.UUID, *states: of_state.StateToBegin
    ) -> of_state.StateOutcomeResponse:
        """Begin states of a topic."""
        return self.begin_states(group, {topic: states})

    def begin_states(
        self, group: str, states: dict[uuid.UUID, tuple[of_state.StateToBegin, ...]]
    ) -> of_state.StateOutcomeResponse:
        """Begin states of several."""
        request = of_state.InitializeShareGroupStateRequest(
            group_id=group,
            topics=tuple(
                of_state.TopicToBegin(topic_id=topic, partitions=them)
                for topic, them in states.items()
            ),
        )
        return self.ask_ours(83, 0, request, of_state.StateOutcomeResponse)

    def read_state(
        self, group: str, topic: uuid.UUID, partition: int, leader_epoch: int
    ) -> of_state.ReadShareGroupStateResponse:
        """Read a state."""
        wanted = of_state.StateToRead(partition=partition, leader_epoch=leader_epoch)
        request = of_state.ReadShareGroupStateRequest(
            group_id=group, topics=(of_state.TopicToRead(topic_id=topic, partitions=(wanted,)),)
        )
        return self.ask_ours(84, 0, request, of_state.ReadShareGroupStateResponse)

    def write_state(
        self,
        group: str,
        topic: uuid.UUID,
        partition: int,
        *batches: tuple[int, int, int, int],
        epochs: tuple[int, int] = (0, 0),
        start: int = -1,
        done: int = 0,
    ) -> of_state.StateOutcomeResponse:
        """Write batches (first, last, state, count) under the epochs of state and leader."""
        wanted = of_state.StateToWrite(
            partition=partition,
            state_epoch=epochs[0],
            leader_epoch=epochs[1],
            start_offset=start,
            delivery_complete_count=done,
            state_batches=tuple(
                StateBatch(
                    first_offset=first, last_offset=last, delivery_state=state, delivery_count=count
                )
                for first, last, state, count in batches
            ),
        )
        request = of_state.WriteShareGroupStateRequest(
            group_id=group, topics=(of_state.TopicToWrite(topic_id=topic, partitions=(wanted,)),)
        )
        return self.ask_ours(85, 1, request, of_state.StateOutcomeResponse)

    def delete_state(
        self, group: str, topic: uuid.UUID, *partitions: int
    ) -> of_state.StateOutcomeResponse:
        """Forget states."""
        states = tuple(of_state.StateToDelete(partition=index) for index in partitions)
        request = of_state.DeleteShareGroupStateRequest(
            group_id=group, topics=(of_state.TopicToDelete(topic_id=topic, partitions=states),)
        )
        return self.ask_ours(86, 0, request, of_state.StateOutcomeResponse)

    def summarise_state(
        self, group: str, topic: uuid.UUID, *partitions: int
    ) -> of_state.ReadShareGroupStateSummaryResponse:
        """Read where states start."""
        states = tuple(
            of_state.StateToRead(partition=index, leader_epoch=-1) for index in partitions
        )
        request = of_state.ReadShareGroupStateSummaryRequest(
            group_id=group, topics=(of_state.TopicToRead(topic_id=topic, partitions=states),)
        )
        return self.ask_ours(87, 1, request, of_state.ReadShareGroupStateSummaryResponse)
