"""
What share groups have read, as the group coordinator sees it: begun, looked at, moved, deleted.

The states themselves are the persister's. Here is written for which partitions there is one, in two
steps each: first what shall be, then, once the persister has done its part, what is.

Source: the share part of ``GroupMetadataManager`` and ``GroupCoordinatorService``.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.groups.modern.cluster import TopicShape
from logstore.compat.kafka.groups.modern.records import GroupChange
from logstore.compat.kafka.groups.share import records
from logstore.compat.kafka.groups.share.cluster import ShareCluster
from logstore.compat.kafka.groups.share.group import ShareGroup
from logstore.compat.kafka.groups.share.state_partitions import (
    PartitionsByTopic,
    StatePartitions,
    TopicPartitions,
    combined,
)
from logstore.compat.kafka.groups.surroundings import Surroundings
from logstore.compat.kafka.refused_request import RefusedRequestError
from logstore.compat.kafka.share_state.persister import (
    UNINITIALIZED_OFFSET,
    Outcome,
    SharePartitionKey,
)

if TYPE_CHECKING:
    from logstore.compat.kafka.groups.share.share_groups import ShareGroups

_LOG = logging.getLogger(__name__)

#: outcomes by topic and partition
Outcomes = Mapping[tuple[uuid.UUID, int], Outcome]


class Beginning(NamedTuple):
    """Partitions whose state shall begin, and the record that says so."""

    partitions: PartitionsByTopic
    records: list[GroupChange]


class GroupStates:
    """Keeps a coordinator's share groups and the persister in step."""

    def __init__(
        self, groups: ShareGroups, cluster: ShareCluster, surroundings: Surroundings
    ) -> None:
        self._groups = groups
        self._cluster = cluster
        self._surroundings = surroundings

    # beginning

    def beginning(self, group: ShareGroup, shapes: Iterable[TopicShape]) -> Beginning:
        """Return which partitions of topics that the group wants have no state yet."""
        known = group.state_partitions or StatePartitions()
        config = self._surroundings.config
        found = known.uninitialized(
            shapes, self._surroundings.now_ms(), config.share_group_initialize_retry_interval_ms
        )
        return self.beginning_of(group, found)

    def beginning_of(self, group: ShareGroup, partitions: PartitionsByTopic) -> Beginning:
        """Return the beginning of these partitions."""
        if not partitions:
            return Beginning(partitions, [])
        known = group.state_partitions or StatePartitions()
        return Beginning(partitions, [self._record(group, known.with_initializing(partitions))])

    def begin(
        self,
        group: ShareGroup,
        beginning: Beginning,
        state_epoch: int,
        starts: Mapping[tuple[uuid.UUID, int], int] | None = None,
    ) -> Outcomes:
        """
        Begin states, at the offsets `starts` where they are given, and note that.

        If one could not be begun, none counts as begun: they are begun again with a later
        heartbeat, which does no harm. Where `starts` are given nobody will; they stay noted.
        """
        outcomes: dict[tuple[uuid.UUID, int], Outcome] = {}
        for topic_id, topic in beginning.partitions.items():
            for index in sorted(topic.partitions):
                start = UNINITIALIZED_OFFSET if starts is None else starts[topic_id, index]
                key = SharePartitionKey(group.group_id, topic_id.bytes, index)
                outcome = self._cluster.persister.initialize(key, state_epoch, start)
                outcomes[topic_id, index] = outcome
        if not outcomes:
            return outcomes
        known = group.state_partitions or StatePartitions()
        failed = [one for one in outcomes.values() if one.error_code is not ErrorCode.NONE]
        if failed:
            _LOG.warning("group %s: states not begun: %s", group.group_id, failed[0])
            after = known.without_initializing(beginning.partitions)
        else:
            after = known.with_initialized(self._renamed(beginning.partitions))
        if not failed or starts is None:
            self._try_commit(group, after)
        return outcomes

    # deleting

    def delete_all(self, group: ShareGroup) -> None:
        """
        Delete all states of a group.

        Raises:
            RefusedRequestError: the first that could not be deleted, or the disk refused.

        """
        known = group.state_partitions
        if known is None:
            return
        found = combined(known.initialized, known.initializing)
        found = combined(found, self._still_deleting(known))
        after = StatePartitions(deleting=frozenset(found))
        self._groups.commit(group, [self._record(group, after)])
        for topic_id, topic in found.items():
            error = self.delete_topic(group, topic_id, topic.partitions)
            if error is not ErrorCode.NONE:
                raise RefusedRequestError(error)

    def delete_topic(
        self, group: ShareGroup, topic_id: uuid.UUID, partitions: Iterable[int]
    ) -> ErrorCode:
        """Delete the states of a topic; return the error of one that could not be."""
        error = ErrorCode.NONE
        for index in sorted(partitions):
            key = SharePartitionKey(group.group_id, topic_id.bytes, index)
            error = self._cluster.persister.delete(key).error_code or error
        return error

    def commit(self, group: ShareGroup, after: StatePartitions) -> None:
        """Write for which partitions a group has a state; RefusedRequestError if that fails."""
        self._groups.commit(group, [self._record(group, after)])

    def forget_topic(self, topic_id: bytes) -> None:
        """Take note that the topic of that id is gone; its states go with it."""
        for group in self._groups.groups.values():
            known = group.state_partitions
            if known is None:
                continue
            after = known.without_topics([uuid.UUID(bytes=topic_id)])
            if after != known:
                self._try_commit(group, after)

    # what the steps are made of

    def _still_deleting(self, known: StatePartitions) -> PartitionsByTopic:
        """Return the topics whose deletion was not finished, and that are still there."""
        shapes = (self._cluster.topic_with_id(topic_id) for topic_id in known.deleting)
        return {
            shape.topic_id: TopicPartitions(shape.name, frozenset(range(shape.partition_count)))
            for shape in shapes
            if shape is not None
        }

    def _try_commit(self, group: ShareGroup, after: StatePartitions) -> None:
        try:
            self.commit(group, after)
        except RefusedRequestError as refused:  # logged; what was begun is found again
            _LOG.warning("group %s: its states are not noted: %s", group.group_id, refused)

    def _record(self, group: ShareGroup, partitions: StatePartitions) -> GroupChange:
        return records.state_partitions(group.group_id, partitions, self._name_of)

    def _renamed(self, partitions: PartitionsByTopic) -> PartitionsByTopic:
        return {
            topic_id: topic._replace(name=self._name_of(topic_id))
            for topic_id, topic in partitions.items()
        }

    def _name_of(self, topic_id: uuid.UUID) -> str:
        shape = self._cluster.topic_with_id(topic_id)
        return "<UNKNOWN>" if shape is None else shape.name
