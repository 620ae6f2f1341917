"""
The groups that are not classic, of every kind, as the coordinator has to do with them.

Each kind has its own package, which is imported where there is such a group.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.groups.commit import Commit
from logstore.compat.kafka.groups.exchange import NO_MEMBER_ID, Join, Joined
from logstore.compat.kafka.groups.group import Group
from logstore.compat.kafka.groups.offsets_log import (
    is_of_consumer_group,
    is_of_share_group,
    is_of_streams_group,
)
from logstore.compat.kafka.groups.surroundings import Surroundings

if TYPE_CHECKING:
    from logstore.compat.kafka.groups.consumer.consumer_groups import ConsumerGroups
    from logstore.compat.kafka.groups.consumer.group import ConsumerGroup
    from logstore.compat.kafka.groups.modern.cluster import Cluster
    from logstore.compat.kafka.groups.share.cluster import ShareCluster
    from logstore.compat.kafka.groups.share.group import ShareGroup
    from logstore.compat.kafka.groups.share.share_groups import ShareGroups
    from logstore.compat.kafka.groups.streams.group import StreamsGroup
    from logstore.compat.kafka.groups.streams.streams_groups import StreamsGroups

    #: those whose members commit offsets
    OtherGroup = ConsumerGroup | StreamsGroup


class OtherGroups:
    """
    Owns the groups of KIP-848, KIP-932 and KIP-1071 of one coordinator.

    `classic` are its other groups; `refusal` tells what every request is refused with.
    """

    def __init__(
        self,
        surroundings: Surroundings,
        cluster: Cluster | None,
        share_cluster: Callable[[], ShareCluster] | None,
        classic: dict[str, Group],
        refusal: Callable[[], ErrorCode],
    ) -> None:
        self.consumer_groups: dict[str, ConsumerGroup] = {}
        self.share_groups: dict[str, ShareGroup] = {}
        self.streams_groups: dict[str, StreamsGroup] = {}
        self._surroundings = surroundings
        self._given_cluster = cluster
        self._share_cluster = share_cluster
        self._classic = classic
        self._refusal = refusal

    @cached_property
    def consumers(self) -> ConsumerGroups:
        """Who answers for the groups of KIP-848."""
        from logstore.compat.kafka.groups.consumer.consumer_groups import ConsumerGroups

        return ConsumerGroups(
            self._surroundings, self._cluster, self.consumer_groups, self._classic,
            lambda group_id: group_id in self.share_groups or group_id in self.streams_groups,
            self._refusal,
        )  # fmt: skip

    @cached_property
    def shares(self) -> ShareGroups:
        """Who answers for the share groups of KIP-932."""
        from logstore.compat.kafka.groups.share.share_groups import ShareGroups

        assert self._share_cluster is not None, "a coordinator without share groups"
        return ShareGroups(
            self._surroundings, self._share_cluster(), self.share_groups, self._classic,
            lambda group_id: self.get(group_id) is not None,
            self._refusal,
        )  # fmt: skip

    @cached_property
    def streams(self) -> StreamsGroups:
        """Who answers for the groups of KIP-1071."""
        from logstore.compat.kafka.groups.streams.streams_groups import StreamsGroups

        return StreamsGroups(
            self._surroundings, self._cluster, self.streams_groups, self._classic,
            lambda group_id: group_id in self.consumer_groups or group_id in self.share_groups,
            self._refusal,
        )  # fmt: skip

    @cached_property
    def _cluster(self) -> Cluster:
        from logstore.compat.kafka.groups.modern.cluster import MemoryCluster

        return self._given_cluster or MemoryCluster()

    def get(self, group_id: str) -> OtherGroup | None:
        """Return a group whose members commit offsets, None if there is none."""
        return self.consumer_groups.get(group_id) or self.streams_groups.get(group_id)

    def has(self, group_id: str) -> bool:
        """Tell whether there is a group of one of these kinds."""
        return self.get(group_id) is not None or group_id in self.share_groups

    def all(self) -> list[OtherGroup]:
        """Return the groups whose members commit offsets."""
        return [*self.consumer_groups.values(), *self.streams_groups.values()]

    # coming and going

    def replay(self, key: bytes, value: bytes | None) -> None:
        """
        Take over a record of the log, if it is about such a group.

        Raises:
            GroupRecordError: it cannot be read.

        """
        if is_of_consumer_group(key):
            self.consumers.replay(key, value)
        elif is_of_share_group(key):
            self.shares.replay(key, value)
        elif is_of_streams_group(key):
            self.streams.replay(key, value)

    def start_timers(self) -> None:
        """Expect a sign of life of every member from now on; called once after loading."""
        if self.consumer_groups:
            self.consumers.start_timers()
        if self.share_groups:
            self.shares.start_timers()
        if self.streams_groups:
            self.streams.start_timers()

    def close(self) -> None:
        """Give all groups up."""
        if self.consumer_groups:
            self.consumers.close()
        if self.share_groups:
            self.shares.close()
        if self.streams_groups:
            self.streams.close()

    def forget(self, group_id: str) -> None:
        """Take note that an empty group was removed from the log, if there was one."""
        if group_id in self.consumer_groups:
            self.consumers.forget(group_id)
        elif group_id in self.streams_groups:
            self.streams.forget(group_id)

    def refuses_classic(self, group_id: str) -> bool:
        """Tell whether a group does not become a classic one when somebody joins it as such."""
        group = self.get(group_id)
        return group_id in self.share_groups or not (group is None or group.is_empty)

    def join(self, join: Join) -> Joined:
        """Answer a member of the classic protocol who wants to join such a group."""
        if join.group_id in self.consumer_groups:
            return self.consumers.classic_members.join(join)
        return Joined(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, NO_MEMBER_ID)

    # offsets

    def commit_error(self, commit: Commit) -> ErrorCode:
        """Return NONE if these may commit offsets to a group of ours, else what to tell them."""
        if commit.group_id in self.consumer_groups:
            return self.consumers.commit_error(commit)
        if commit.group_id in self.share_groups:
            return ErrorCode.GROUP_ID_NOT_FOUND
        return self.streams.commit_error(commit)

    def fetch_error(self, group_id: str, member_id: str | None, member_epoch: int) -> ErrorCode:
        """Return NONE if these may ask for a group's offsets, else what to tell them."""
        group = self.get(group_id)
        return ErrorCode.NONE if group is None else group.fetch_error(member_id, member_epoch)
