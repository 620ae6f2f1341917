"""
What a request asks of many share-partitions, asked one by one.

A real broker gathers the answers in hash maps, so they come in the order of those; a request that
contradicts itself (no group, a topic without partitions) is answered with nothing; of states that
shall begin, a topic without partitions is passed over.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from logstore.compat.kafka.groups.modern.hash_order import numbers_in_order, topics_in_order
from logstore.compat.kafka.share_state.messages import (
    PartitionOutcome,
    StateOutcomeResponse,
    TopicOutcome,
)
from logstore.compat.kafka.share_state.persister import Outcome, SharePartitionKey


class _Partition(Protocol):
    @property
    def partition(self) -> int: ...


PartitionT = TypeVar("PartitionT", bound=_Partition)
PartitionT_co = TypeVar("PartitionT_co", bound=_Partition, covariant=True)
ResultT = TypeVar("ResultT")


class _Topic(Protocol[PartitionT_co]):
    @property
    def topic_id(self) -> uuid.UUID: ...
    @property
    def partitions(self) -> Sequence[PartitionT_co]: ...


def ask_each(
    group_id: str,
    topics: Sequence[_Topic[PartitionT]],
    ask: Callable[[SharePartitionKey, PartitionT], ResultT],
    *,
    passes_over: bool = False,
) -> list[tuple[uuid.UUID, tuple[ResultT, ...]]]:
    """Return what `ask` says of every partition, by topic."""
    if not group_id or not (passes_over or all(topic.partitions for topic in topics)):
        return []
    found: dict[uuid.UUID, dict[int, ResultT]] = {}
    for topic in topics:
        if not topic.partitions:
            continue
        results = found.setdefault(topic.topic_id, {})
        for wanted in topic.partitions:
            key = SharePartitionKey(group_id, topic.topic_id.bytes, wanted.partition)
            results[wanted.partition] = ask(key, wanted)
    return [
        (topic_id, tuple(found[topic_id][index] for index in numbers_in_order(found[topic_id])))
        for topic_id in topics_in_order(found)
    ]


def change_each(
    group_id: str,
    topics: Sequence[_Topic[PartitionT]],
    change: Callable[[SharePartitionKey, PartitionT], Outcome],
    *,
    passes_over: bool = False,
) -> StateOutcomeResponse:
    """Return how the changes of every partition went."""

    def changed(key: SharePartitionKey, wanted: PartitionT) -> PartitionOutcome:
        outcome = change(key, wanted)
        return PartitionOutcome(
            partition=wanted.partition,
            error_code=outcome.error_code,
            error_message=outcome.error_message,
        )

    return StateOutcomeResponse(
        results=tuple(
            TopicOutcome(topic_id=topic_id, partitions=partitions)
            for topic_id, partitions in ask_each(group_id, topics, changed, passes_over=passes_over)
        )
    )
