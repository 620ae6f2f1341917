"""
Where share groups start in partitions: told with the lag, moved, forgotten.

Source: ``GroupCoordinatorService.describeShareGroupOffsets`` and its neighbours.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.error_messages import MESSAGES
from logstore.compat.kafka.groups.modern.cluster import TopicShape
from logstore.compat.kafka.groups.modern.hash_order import numbers_in_order, topics_in_order
from logstore.compat.kafka.groups.share.cluster import ShareCluster
from logstore.compat.kafka.groups.share.exchange import (
    PartitionAltered,
    PartitionStart,
    TopicAltered,
    TopicDeleted,
    TopicStarts,
)
from logstore.compat.kafka.groups.share.group import ShareGroup
from logstore.compat.kafka.groups.share.group_states import Outcomes
from logstore.compat.kafka.groups.share.state_partitions import StatePartitions, TopicPartitions
from logstore.compat.kafka.refused_request import RefusedRequestError
from logstore.compat.kafka.share_state.persister import (
    UNINITIALIZED_OFFSET,
    UNKNOWN_DELIVERY_COMPLETE_COUNT,
    SharePartitionKey,
)
from logstore.segments.kafka.internal_topics.schema import NO_ID
from logstore.segments.kafka.kafka_uuid import uuid_to_text

if TYPE_CHECKING:
    from logstore.compat.kafka.groups.share.share_groups import ShareGroups

#: partitions by topic name
Wanted = Sequence[tuple[str, Sequence[int]]]
#: partitions and their new starts by topic name
NewStarts = Sequence[tuple[str, Sequence[tuple[int, int]]]]

_NO_PARTITION = MESSAGES[ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
_SERVER_ERROR = "The server experienced an unexpected error when processing the request."
_NOT_EMPTY = "The group is not empty."
_ANY_LEADER_EPOCH = -1


class ShareOffsets:
    """Answers for the starts of the share groups in `groups`."""

    def __init__(self, groups: ShareGroups, cluster: ShareCluster) -> None:
        self._groups = groups
        self._cluster = cluster

    # telling

    def describe(self, group_id: str, wanted: Wanted | None) -> list[TopicStarts]:
        """
        Return where a group starts, for None in all partitions that it has a state for.

        The group need not be there, nor the topics: what is not known starts at -1.

        Raises:
            RefusedRequestError: the request contradicts itself.

        """
        self._check()
        if wanted is None:
            return self._known_starts(group_id)
        named = [(self._cluster.topic_named(name), name, indexes) for name, indexes in wanted]
        there: dict[uuid.UUID, tuple[TopicShape, list[int]]] = {}
        for shape, _, indexes in named:
            if shape is None:
                continue
            if not group_id or _is_malformed(indexes):
                raise RefusedRequestError(ErrorCode.UNKNOWN_SERVER_ERROR, _SERVER_ERROR)
            there.setdefault(shape.topic_id, (shape, []))[1].extend(indexes)
        found = [self._starts(group_id, *there[one]) for one in topics_in_order(there)]
        missing = [
            TopicStarts(name, NO_ID, tuple(PartitionStart(index) for index in indexes))
            for shape, name, indexes in named
            if shape is None
        ]
        return [*found, *missing]

    def _known_starts(self, group_id: str) -> list[TopicStarts]:
        group = self._groups.groups.get(group_id)
        known = None if group is None else group.state_partitions
        if known is None:
            return []
        shapes = ((self._cluster.topic_with_id(one), one) for one in known.initialized)
        there = {
            topic_id: (shape, sorted(known.initialized[topic_id].partitions))
            for shape, topic_id in shapes
            if shape is not None
        }
        return [self._starts(group_id, *there[one]) for one in topics_in_order(there)]

    def _starts(self, group_id: str, shape: TopicShape, indexes: Iterable[int]) -> TopicStarts:
        indexes = numbers_in_order(dict.fromkeys(indexes))
        starts = tuple(self._start(group_id, shape, index) for index in indexes)
        return TopicStarts(shape.name, shape.topic_id, starts)

    def _start(self, group_id: str, shape: TopicShape, index: int) -> PartitionStart:
        key = SharePartitionKey(group_id, shape.topic_id.bytes, index)
        found = self._cluster.persister.read_summary(key, _ANY_LEADER_EPOCH)
        if found.error_code is not ErrorCode.NONE:
            return PartitionStart(index)
        start, done = found.start_offset, found.delivery_complete_count
        if start == UNINITIALIZED_OFFSET or done == UNKNOWN_DELIVERY_COMPLETE_COUNT:
            return PartitionStart(index, start, found.leader_epoch)
        end = self._cluster.end_offset_of(shape.name, index)
        if end is None:
            error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            return PartitionStart(index, 0, error_code=error, error_message=_NO_PARTITION)
        return PartitionStart(index, start, found.leader_epoch, lag=end - start - done)

    # moving

    def alter(self, group_id: str, starts: NewStarts) -> list[TopicAltered]:
        """
        Let a group without members start elsewhere; one that is not there comes into being.

        Raises:
            RefusedRequestError: the group is not empty or of another kind, or the disk refused.

        """
        self._check(group_id)
        group = self._groups.group_or_new(group_id, may_be_new=True)
        if not group.is_empty:
            raise RefusedRequestError(ErrorCode.NON_EMPTY_GROUP, _NOT_EMPTY)
        named = [(self._cluster.topic_named(name), name, them) for name, them in starts]
        there = [(shape, them) for shape, _, them in named if shape is not None]
        offsets = {
            (shape.topic_id, index): offset
            for shape, them in there
            for index, offset in them
            if index < shape.partition_count
        }
        _check_partitions(group_id, offsets)
        outcomes = self._begin_at(group, there, offsets)
        unknown = [
            TopicAltered(name, NO_ID, tuple(_unknown(index) for index, _ in them))
            for shape, name, them in named
            if shape is None and them
        ]
        known = [
            TopicAltered(
                shape.name,
                shape.topic_id,
                tuple(_altered(index, outcomes, shape) for index, _ in them),
            )
            for shape, them in there
        ]
        return [*unknown, *known]

    def _begin_at(
        self,
        group: ShareGroup,
        wanted: Sequence[tuple[TopicShape, Sequence[tuple[int, int]]]],
        offsets: Mapping[tuple[uuid.UUID, int], int],
    ) -> Outcomes:
        """Begin all; noted before that is, of a topic that comes twice, what is said of it last."""
        states = self._groups.states
        noted: dict[uuid.UUID, TopicPartitions] = {}
        begun: dict[uuid.UUID, TopicPartitions] = {}
        for shape, them in wanted:
            topic_id = shape.topic_id
            indexes = frozenset(index for index, _ in them if (topic_id, index) in offsets)
            before = begun[topic_id].partitions if topic_id in begun else frozenset[int]()
            noted[topic_id] = TopicPartitions(shape.name, indexes)
            if indexes:  # where nothing begins it stays noted
                begun[topic_id] = TopicPartitions(shape.name, before | indexes)
        beginning = states.beginning_of(group, noted)
        self._groups.commit(group, beginning.records)
        return states.begin(group, beginning._replace(partitions=begun), group.epoch, offsets)

    # forgetting

    def delete(self, group_id: str, names: Iterable[str]) -> list[TopicDeleted]:
        """
        Forget what a group without members has read in topics.

        Raises:
            RefusedRequestError: the group is not empty or not there, or the disk refused.

        """
        self._check(group_id)
        group = self._groups.group(group_id)
        if not group.is_empty:
            raise RefusedRequestError(ErrorCode.NON_EMPTY_GROUP, _NOT_EMPTY)
        known = group.state_partitions
        if known is None:
            return []
        refused: list[TopicDeleted] = []
        going: dict[uuid.UUID, tuple[TopicShape, Iterable[int]]] = {}
        for name in names:
            shape = self._cluster.topic_named(name)
            if shape is None:
                refused.append(_not_deleted(name, _NO_PARTITION))
            elif shape.topic_id in known.initialized and shape.topic_id not in going:
                going[shape.topic_id] = (shape, known.initialized[shape.topic_id].partitions)
            elif shape.topic_id in known.deleting or shape.topic_id in going:
                going[shape.topic_id] = (shape, range(shape.partition_count))
            else:
                refused.append(_not_deleted(name, "There is no offset information to delete."))
        return [*self._deleted(group, known, going), *refused]

    def _deleted(
        self,
        group: ShareGroup,
        known: StatePartitions,
        going: Mapping[uuid.UUID, tuple[TopicShape, Iterable[int]]],
    ) -> list[TopicDeleted]:
        """Return how the deletion of topics went; what failed comes behind what did not."""
        states = self._groups.states
        deleting = known.with_deleting(list(going))
        states.commit(group, deleting)
        errors = {
            topic_id: states.delete_topic(group, topic_id, going[topic_id][1])
            for topic_id in topics_in_order(going)
        }
        gone = [topic_id for topic_id, error in errors.items() if error is ErrorCode.NONE]
        if gone:
            states.commit(group, deleting.without_deleting(gone))
        outcomes = [
            TopicDeleted(going[topic_id][0].name, topic_id, error, error.name if error else None)
            for topic_id, error in errors.items()
        ]
        return sorted(outcomes, key=lambda one: one.error_code is not ErrorCode.NONE)

    def _check(self, group_id: str = "any") -> None:
        refusal = self._groups.refusal()
        if refusal is not ErrorCode.NONE:
            raise RefusedRequestError(refusal)
        if not group_id:
            raise RefusedRequestError(ErrorCode.INVALID_GROUP_ID, "The group id is invalid.")


def _is_malformed(indexes: Sequence[int]) -> bool:
    return not indexes or min(indexes) < 0


def _check_partitions(group_id: str, offsets: Iterable[tuple[uuid.UUID, int]]) -> None:
    for topic_id, index in offsets:
        if index < 0:
            raise RefusedRequestError(
                ErrorCode.UNKNOWN_SERVER_ERROR,
                "Initialize share group parameters has invalid partitionId - "
                f"{group_id} {uuid_to_text(topic_id.bytes)} {index}",
            )


def _unknown(index: int) -> PartitionAltered:
    return PartitionAltered(index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, _NO_PARTITION)


def _altered(index: int, outcomes: Outcomes, shape: TopicShape) -> PartitionAltered:
    outcome = outcomes.get((shape.topic_id, index))
    return _unknown(index) if outcome is None else PartitionAltered(index, *outcome)


def _not_deleted(name: str, reason: str) -> TopicDeleted:
    return TopicDeleted(name, NO_ID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, reason)
