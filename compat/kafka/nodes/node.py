"""One node of a cluster as clients see it, and where the replicas of a partition are."""

from __future__ import annotations

from typing import NamedTuple

import attrs

from logstore.compat.kafka.security.listener import Listener

#: in place of a leader: nobody that is up may lead
NOBODY = -1


@attrs.define(eq=False)
class Node:
    """Its id, its rack, the listeners by which clients come in, and whether it is up."""

    node_id: int
    rack: str = ""
    listeners: list[Listener] = attrs.field(factory=list[Listener])
    is_up: bool = True

    def listener_like(self, listener: Listener) -> Listener:
        """Return the listener of this node that has the same name."""
        return next((one for one in self.listeners if one.name == listener.name), listener)


class Placement(NamedTuple):
    """
    Where one partition is: node ids of its replicas, the preferred one first, and its leader.

    The leader is :data:`NOBODY` while none of the replicas that are in sync is up.
    """

    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]
    leader: int

    @classmethod
    def among(cls, replicas: tuple[int, ...], up: set[int]) -> Placement:
        """Return the placement of a new partition while only the nodes `up` are there."""
        in_sync = tuple(one for one in replicas if one in up)
        if not in_sync:
            return cls(replicas, replicas[:1], NOBODY)
        return cls(replicas, in_sync, in_sync[0])

    def without(self, node_id: int, up: set[int]) -> Placement:
        """Return the placement once a node is gone; the last replica in sync stays that."""
        in_sync = tuple(one for one in self.in_sync if one != node_id) or self.in_sync
        leader = self.leader
        if leader == node_id:
            leader = next((one for one in self.replicas if one in in_sync and one in up), NOBODY)
        return Placement(self.replicas, in_sync, leader)

    def with_(self, node_id: int) -> Placement:
        """Return the placement once a node is back: it leads what nobody could lead meanwhile."""
        if node_id not in self.replicas:
            return self
        if self.leader == NOBODY:
            if node_id not in self.in_sync:
                return self  # what was acknowledged may not be there
            return Placement(self.replicas, (node_id,), node_id)
        in_sync = {*self.in_sync, node_id}
        return Placement(
            self.replicas, tuple(one for one in self.replicas if one in in_sync), self.leader
        )
