"""
The assignor ``simple``: every partition is read by as many members as it takes to occupy them all.

Unlike in a consumer group two members may read one partition. Members get the same number of
partitions, give or take one, and keep what they had as far as that allows. If all members want the
same topics, partitions of all topics are dealt out together, otherwise topic by topic.

The walks are those of Java's hash maps: who is asked about the same group twice, here and by a
real broker, gets the same answer.

Source: ``SimpleHomogeneousAssignmentBuilder``, ``SimpleHeterogeneousAssignmentBuilder``.
"""

from __future__ import annotations

import math
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Generic, TypeVar

from logstore.compat.kafka.groups.modern.assignor_spec import Assignment, GroupSpec
from logstore.compat.kafka.groups.modern.group import Target, TopicIdPartition
from logstore.compat.kafka.groups.modern.hash_order import (
    HashTable,
    partition_hash,
    partitions_in_order,
    topics_in_order,
)

KeyT = TypeVar("KeyT")

#: the partitions that may be assigned, by topic: those whose state has begun
Assignable = Mapping[uuid.UUID, frozenset[int]]


def assign_simply(
    spec: GroupSpec, assignable: Assignable, topic_ids: Sequence[uuid.UUID]
) -> Assignment:
    """Return what each member shall have; `topic_ids` are the topics that somebody wants."""
    member_ids = spec.member_ids
    members = [spec.members[member_id] for member_id in member_ids]
    if not topic_ids:
        return {}
    targets = [_Draft(member.target) for member in members]
    if spec.is_homogeneous:
        _assign_together(targets, topic_ids, assignable)
    else:
        for topic_id in topic_ids:
            takers = [number for number, one in enumerate(members) if topic_id in one.topic_ids]
            _assign_topic(targets, topic_id, takers, assignable.get(topic_id, frozenset()))
    return {member_id: target.done() for member_id, target in zip(member_ids, targets, strict=True)}


class _Draft:
    """What a member was to have, being changed; a topic of which nothing is left stays."""

    def __init__(self, before: Target) -> None:
        self._partitions = {topic_id: set(before[topic_id]) for topic_id in before}

    def topic_ids(self) -> list[uuid.UUID]:
        return topics_in_order(self._partitions)

    def of_topic(self, topic_id: uuid.UUID) -> list[int]:
        return partitions_in_order(self._partitions.get(topic_id, ()))

    def drop(self, topic_id: uuid.UUID) -> None:
        del self._partitions[topic_id]

    def revoke(self, topic_id: uuid.UUID, partition: int) -> None:
        self._partitions[topic_id].discard(partition)

    def give(self, topic_id: uuid.UUID, partition: int) -> None:
        self._partitions.setdefault(topic_id, set()).add(partition)

    def done(self) -> Target:
        return {topic_id: frozenset(them) for topic_id, them in self._partitions.items()}


def _assign_together(
    targets: Sequence[_Draft], topic_ids: Sequence[uuid.UUID], assignable: Assignable
) -> None:
    wanted = [(one, index) for one in topic_ids for index in sorted(assignable.get(one, ()))]
    sharing = _Sharing[TopicIdPartition](partition_hash, wanted, range(len(targets)))
    for number, target in enumerate(targets):
        for topic_id in target.topic_ids():
            if topic_id not in topic_ids:
                target.drop(topic_id)
                continue
            for index in target.of_topic(topic_id):
                sharing.hold(number, (topic_id, index))
    sharing.balance()
    for number, (topic_id, index) in sharing.revoked:
        targets[number].revoke(topic_id, index)
    for number, (topic_id, index) in sharing.given:
        targets[number].give(topic_id, index)


def _assign_topic(
    targets: Sequence[_Draft], topic_id: uuid.UUID, takers: Sequence[int], wanted: frozenset[int]
) -> None:
    sharing = _Sharing[int](int, sorted(wanted), takers)
    for number, target in enumerate(targets):
        for index in target.of_topic(topic_id):
            sharing.hold(number, index)
    sharing.balance()
    for number, index in sharing.revoked:
        targets[number].revoke(topic_id, index)
    for number, index in sharing.given:
        targets[number].give(topic_id, index)


class _Sharing(Generic[KeyT]):
    """
    Deals partitions out to members, by number.

    With 5 members and 2 partitions each partition is for 3 of them. That makes 6 to be given, 6/5
    each; rounded up as they add up (2, 3, 4, 5, 6) the first member gets 2 and the others 1.
    """

    def __init__(
        self, hash_of: Callable[[KeyT], int], wanted: Sequence[KeyT], takers: Sequence[int]
    ) -> None:
        self.revoked: list[tuple[int, KeyT]] = []
        self.given: list[tuple[int, KeyT]] = []
        self._hash_of = hash_of
        self._wanted = wanted
        self._takers = takers
        self._degree = math.ceil(len(takers) / len(wanted)) if wanted else 0
        share = self._degree * len(wanted) / len(takers)
        self._due = {
            number: math.ceil(share * (position + 1)) - math.ceil(share * position)
            for position, number in enumerate(takers)
        }
        self._keys = HashTable(hash_of, len(wanted), adds_in_front=True)
        self._holders: dict[KeyT, HashTable[int]] = {}
        self._held: dict[int, HashTable[KeyT]] = {}

    def hold(self, number: int, key: KeyT) -> None:
        """Take note of what a member had until now."""
        self._holders_of(key).add(number)
        self._held_by(number).add(key)

    def balance(self) -> None:
        """Work out what is taken from whom, and what is given to whom; asked once."""
        for number in sorted(self._held):
            surplus = len(self._held[number]) - self._due.get(number, 0)
            for key in list(self._held[number])[: max(surplus, 0)]:
                self._revoke(number, key)
        for key in self._keys:
            holders = list(self._holders[key])
            for number in holders[: max(len(holders) - self._degree, 0)]:
                self._revoke(number, key)
        for key in self._wanted:
            self._holders_of(key)
        self._give_the_rest()

    def _give_the_rest(self) -> None:
        """
        Go round the members that have too little, with one partition after the other.

        Once a whole round finds no taker for a partition, the later ones find none either.
        """
        unfilled = [one for one in sorted(self._takers) if len(self._held_by(one)) < self._due[one]]
        at, has_given = 0, False
        for key in self._keys:
            missing = self._degree - len(self._holders[key])
            while missing > 0:
                if at == len(unfilled):
                    if not has_given or not unfilled:
                        break
                    at, has_given = 0, False
                number = unfilled[at]
                at += 1
                if number in self._holders[key]:
                    continue
                self.given.append((number, key))
                self._held[number].add(key)
                missing -= 1
                has_given = True
                if len(self._held[number]) >= self._due[number]:
                    at -= 1
                    del unfilled[at]
            if not unfilled:
                break

    def _revoke(self, number: int, key: KeyT) -> None:
        self.revoked.append((number, key))
        self._held[number].remove(key)
        self._holders[key].remove(number)

    def _holders_of(self, key: KeyT) -> HashTable[int]:
        if key not in self._holders:
            self._keys.add(key)
            self._holders[key] = HashTable(int)
        return self._holders[key]

    def _held_by(self, number: int) -> HashTable[KeyT]:
        if number not in self._held:
            self._held[number] = HashTable(self._hash_of)
        return self._held[number]
