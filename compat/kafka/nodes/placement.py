"""Where the replicas of a partition are, and which of them leads and is in sync."""

from __future__ import annotations

from collections.abc import Iterable, Set
from typing import NamedTuple

#: in place of a leader: nobody that is up may lead
NOBODY = -1


class Placement(NamedTuple):
    """
    Where one partition is: node ids of its replicas, the preferred one first, and its leader.

    The leader is :data:`NOBODY` while none of the replicas that may lead is up: those in sync, and
    those that are `eligible` because they fell out of sync when too few were left for anything to
    be acknowledged without them (KIP-966).

    Source: ``PartitionChangeBuilder``.
    """

    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]
    leader: int
    eligible: tuple[int, ...] = ()
    #: who led before nobody was in sync any more
    last_leader: int = NOBODY

    @classmethod
    def among(cls, replicas: tuple[int, ...], up: Set[int]) -> Placement:
        """Return the placement of a new partition while only the nodes `up` are there."""
        in_sync = tuple(one for one in replicas if one in up)
        if not in_sync:
            return cls(replicas, replicas[:1], NOBODY)
        return cls(replicas, in_sync, in_sync[0])

    def without(self, node_id: int, up: Set[int], in_sync_min: int) -> Placement:
        """
        Return the placement once a node is gone.

        Where fewer than `in_sync_min` are in sync then, who was stays eligible; with 0 nobody is
        counted so, and the last in sync stays in sync.
        """
        in_sync = tuple(one for one in self.in_sync if one != node_id)
        if not in_sync_min:
            return self._elected(in_sync or self.in_sync, (), up)
        eligible = {*self.eligible, *self.in_sync} if len(in_sync) < in_sync_min else ()
        return self._elected(in_sync, eligible, up)

    def with_(self, node_id: int, up: Set[int], in_sync_min: int) -> Placement:
        """Return the placement once a node is back: it leads what nobody could lead meanwhile."""
        if node_id not in self.replicas:
            return self
        if self.leader == NOBODY:
            return self._elected(self.in_sync, self.eligible, up)
        in_sync = tuple(one for one in self.replicas if one in {*self.in_sync, node_id})
        is_enough = len(in_sync) >= in_sync_min
        return self._elected(in_sync, () if is_enough else self.eligible, up)

    def uncleanly_led(self, up: Set[int]) -> Placement:
        """Return it with the first replica that is up for its leader, in sync or not."""
        leader = next((one for one in self.replicas if one in up), NOBODY)
        return self if leader == NOBODY else Placement(self.replicas, (leader,), leader)

    def _elected(
        self, in_sync: tuple[int, ...], eligible: Iterable[int], up: Set[int]
    ) -> Placement:
        """Return it with a leader among those, who is the one before if he can be."""
        candidates = up & {*in_sync, *eligible}
        leader = self.leader
        if leader not in candidates:
            leader = next((one for one in self.replicas if one in candidates), NOBODY)
        if leader != NOBODY and leader not in in_sync:
            in_sync = (leader,)
        rest = tuple(one for one in self.replicas if one in eligible and one not in in_sync)
        last_leader = NOBODY
        if not in_sync:
            last_leader = self.last_leader if self.leader == NOBODY else self.leader
        return Placement(self.replicas, in_sync, leader, rest, last_leader)
