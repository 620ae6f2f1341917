"""Leaders that are chosen: the preferred one, the next in sync, or whoever is up."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.nodes.placement import NOBODY, Placement

if TYPE_CHECKING:
    from logstore.compat.kafka.broker import Broker
    from logstore.segments.kafka.topic import Topic


def elect(broker: Broker, topic: Topic, index: int, *, is_unclean: bool) -> ErrorCode:
    """
    Let the preferred replica lead, or any if nobody does; return why that is not done.

    Source: ``ReplicationControlManager.electLeader``.
    """
    before, up = broker.placements.find(topic, index), broker.nodes.ids_up
    if is_unclean:
        if before.leader != NOBODY:
            return ErrorCode.ELECTION_NOT_NEEDED
        after = before.uncleanly_led(up)
        if after.leader == NOBODY:
            return ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
        broker.placements.change(topic, {index: after})
        return ErrorCode.NONE
    leader = before.replicas[0]
    if before.leader == leader:
        return ErrorCode.ELECTION_NOT_NEEDED
    if leader not in up or leader not in before.in_sync:
        return ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
    broker.placements.change(topic, {index: before._replace(leader=leader)})
    return ErrorCode.NONE


def move_leaders(
    broker: Broker, topic: Topic, indexes: Iterable[int], to: int | None = None
) -> dict[int, int]:
    """
    Let the next node in sync lead partitions, or the node `to`; return the leader epochs.

    Raises:
        ValueError: the node is not up, or not in sync.

    """
    changes: dict[int, Placement] = {}
    for index in indexes:
        before = broker.placements.find(topic, index)
        leader = _next_leader(before) if to is None else to
        if leader not in before.in_sync or leader not in broker.nodes.ids_up:
            raise ValueError(
                f"node {leader} cannot lead {topic.name}-{index}: of its replicas "
                f"{list(before.replicas)} those in sync are {list(before.in_sync)}"
            )
        changes[index] = before._replace(leader=leader)
    broker.placements.change(topic, changes, anew=set(changes))
    return {index: topic.partitions[index].leader_epoch for index in changes}


def rebalance(broker: Broker) -> None:
    """
    Let preferred replicas that are in sync lead again what others took over from them.

    Source: ``ReplicationControlManager.maybeBalancePartitionLeaders``.
    """
    for topic in broker.topics.values():
        for index in topic.partitions:
            if broker.placements.find(topic, index).leader != NOBODY:
                elect(broker, topic, index, is_unclean=False)


def _next_leader(placement: Placement) -> int:
    candidates = [one for one in placement.replicas if one in placement.in_sync]
    if placement.leader not in candidates:
        return placement.leader
    return candidates[(candidates.index(placement.leader) + 1) % len(candidates)]
