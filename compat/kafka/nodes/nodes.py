"""The nodes of a cluster: which there are, which are up, and by whose port a client came in."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol

from logstore.compat.kafka.nodes.node import Node
from logstore.compat.kafka.nodes.placement import NOBODY
from logstore.compat.kafka.nodes.racks import racks_of
from logstore.compat.kafka.security.listener import Listener

if TYPE_CHECKING:
    from logstore.compat.kafka.broker import Broker


class Doors(Protocol):
    """Where clients come in: what a server can do with its ports."""

    def shut(self, port: int) -> None:
        """Let nobody in by a port any more, and hang up on those who came in by it."""
        ...

    def reopen(self, port: int) -> None:
        """Let clients in by it again."""
        ...


class Nodes:
    """
    All nodes of a broker's cluster: itself, and `count` - 1 more with the ids behind its own.

    With one node everything is at home, and nothing of this is looked at.
    """

    def __init__(self, broker: Broker, count: int = 1) -> None:
        self._broker = broker
        racks = racks_of(broker.config.broker_rack or "", count)
        home = Node(broker.node_id, racks[0], broker.listeners)
        more = [
            Node(broker.node_id + number, racks[number], [Listener()]) for number in range(1, count)
        ]
        self.by_id = {node.node_id: node for node in (home, *more)}
        #: there is one node, which everything is at
        self.is_alone = count == 1
        #: of the server, once there is one
        self.doors: Doors | None = None

    @property
    def up(self) -> list[Node]:
        """The nodes that are up."""
        return [node for node in self.by_id.values() if node.is_up]

    @property
    def ids_up(self) -> set[int]:
        """The ids of those that are up."""
        return {node.node_id for node in self.up}

    @property
    def controller_id(self) -> int:
        """The node that is told to be the controller."""
        return min(self.ids_up, default=NOBODY)

    def node_of(self, listener: Listener) -> Node:
        """Return the node by whose listener a client came in."""
        for node in self.by_id.values():
            if listener in node.listeners:
                return node
        return self.by_id[self._broker.node_id]

    def states(self) -> dict[int, bool]:
        """Return whether each node is up."""
        return {node.node_id: node.is_up for node in self.by_id.values()}

    def down_among(self, node_ids: Iterable[int]) -> tuple[int, ...]:
        """Return which of the nodes are down."""
        up = self.ids_up
        return tuple(one for one in node_ids if one not in up)

    def stop(self, node_id: int) -> None:
        """
        Take a node out: others in sync lead what it led. Fine if it is down.

        Raises:
            ValueError: there is no such node, or no other.

        """
        node = self._known(node_id)
        if self.is_alone:
            raise ValueError(f"node {node_id} is the only one; a broker alone stops or crashes")
        if not node.is_up:
            return
        node.is_up = False
        if self.doors is not None:
            for listener in node.listeners:
                self.doors.shut(listener.port)
        self._broker.placements.node_went(node_id)

    def start(self, node_id: int) -> None:
        """
        Let a node in again: it is in sync at once, and leads what nobody could lead.

        Raises:
            ValueError: there is no such node.
            OSError: its port has been taken by somebody else.

        """
        node = self._known(node_id)
        if node.is_up:
            return
        if self.doors is not None:
            for listener in node.listeners:
                self.doors.reopen(listener.port)
        node.is_up = node.is_registered = True
        self._broker.placements.node_came(node_id)

    def unregister(self, node_id: int) -> None:
        """
        Take a node out, and tell nobody that there was one until it starts.

        Raises:
            ValueError: there is no such node.

        """
        self.stop(node_id)
        self._known(node_id).is_registered = False

    def _known(self, node_id: int) -> Node:
        node = self.by_id.get(node_id)
        if node is None:
            known = ", ".join(map(str, self.by_id))
            raise ValueError(f"there is no node {node_id}; there are {known}")
        return node
