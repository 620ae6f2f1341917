"""
``uniform`` for members who want different things: topic by topic, from the full to the empty.

Topics with the most partitions a subscriber come first. What nobody had goes to the least loaded
subscribers; then partitions move from the most to the least loaded, until one more or less would
not help, or sixteen rounds have passed.

Source: ``UniformHeterogeneousAssignmentBuilder``.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable

from logstore.compat.kafka.groups.consumer.assignors.member_levels import MemberLevels
from logstore.compat.kafka.groups.modern.assignor_spec import Assignment, GroupSpec

_ROUNDS_MAX = 16
_NOBODY = -1
_SIGN = 1 << 63


def assign_unlike_members(group: GroupSpec) -> Assignment:
    """Return a nearly even assignment of members of whom each may want something else."""
    if not any(member.topic_ids for member in group.members.values()):
        return {}
    return _Balance(group).result()


class _Balance:
    """An assignment in the making; members are numbers here."""

    def __init__(self, group: GroupSpec) -> None:
        self._group = group
        self._ids = group.member_ids
        self.sizes = [0] * len(self._ids)
        self._subscribers: dict[uuid.UUID, list[int]] = {}
        for number, member_id in enumerate(self._ids):
            for topic_id in group.members[member_id].topic_ids:
                self._subscribers.setdefault(topic_id, []).append(number)
        self._owners = {
            topic_id: [_NOBODY] * group.partition_counts[topic_id] for topic_id in self._subscribers
        }

    def result(self) -> Assignment:
        """Return who shall have what."""
        self._keep()
        missing = {
            topic_id: [index for index, owner in enumerate(owners) if owner == _NOBODY]
            for topic_id, owners in self._owners.items()
        }
        for topic_id in self._sorted(topic_id for topic_id in missing if missing[topic_id]):
            levels = MemberLevels(self.sizes, self._subscribers[topic_id])
            for index in missing[topic_id]:
                self._assign(topic_id, index, levels.next_least())
        self._balance()
        targets: list[dict[uuid.UUID, set[int]]] = [{} for _ in self._ids]
        for topic_id, owners in self._owners.items():
            for index, owner in enumerate(owners):
                targets[owner].setdefault(topic_id, set()).add(index)
        return {
            member_id: {topic_id: frozenset(indexes) for topic_id, indexes in target.items()}
            for member_id, target in zip(self._ids, targets, strict=True)
        }

    def _keep(self) -> None:
        for number, member_id in enumerate(self._ids):
            member = self._group.members[member_id]
            for topic_id, indexes in member.target.items():
                if topic_id in member.topic_ids:
                    self.sizes[number] += len(indexes)
                    for index in indexes:
                        self._owners[topic_id][index] = number

    def _sorted(self, topic_ids: Iterable[uuid.UUID]) -> list[uuid.UUID]:
        def key(topic_id: uuid.UUID) -> tuple[float, int, int, int]:
            count = len(self._subscribers[topic_id])
            high, low = topic_id.int >> 64, topic_id.int & (2 * _SIGN - 1)
            # Java compares the halves of an id as signed numbers.
            return -len(self._owners[topic_id]) / count, count, high ^ _SIGN, low ^ _SIGN

        return sorted(topic_ids, key=key)

    def _assign(self, topic_id: uuid.UUID, index: int, number: int) -> None:
        owners = self._owners[topic_id]
        if owners[index] != _NOBODY:
            self.sizes[owners[index]] -= 1
        owners[index] = number
        self.sizes[number] += 1

    def _balance(self) -> None:
        shared = (one for one, numbers in self._subscribers.items() if len(numbers) > 1)
        in_order = self._sorted(shared)
        last_changed = -1
        for _ in range(_ROUNDS_MAX):
            for position, topic_id in enumerate(in_order):
                if position == last_changed:
                    return  # once around, and nothing has moved
                if self._balance_topic(topic_id) or last_changed == -1:
                    last_changed = position

    def _balance_topic(self, topic_id: uuid.UUID) -> bool:
        """Move partitions of a topic among its subscribers; return whether one has moved."""
        levels = MemberLevels(self.sizes, self._subscribers[topic_id])
        if levels.difference <= 1:
            return False
        owned: dict[int, list[int]] = {}
        for index, owner in enumerate(self._owners[topic_id]):
            owned.setdefault(owner, []).append(index)
        has_moved = False
        while not levels.is_balanced:
            most = levels.next_most(owned)
            if most is None:
                break
            index = owned[most].pop()
            least = levels.next_least()
            if levels.is_balanced:
                break
            self._assign(topic_id, index, least)
            has_moved = True
        return has_moved
