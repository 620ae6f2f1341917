"""One node of a cluster as clients see it."""

from __future__ import annotations

import attrs

from logstore.compat.kafka.security.listener import Listener


@attrs.define(eq=False)
class Node:
    """
    Its id, its rack, the listeners by which clients come in, and whether it is up.

    One that is registered and down is told as a fenced broker.
    """

    node_id: int
    rack: str = ""
    listeners: list[Listener] = attrs.field(factory=list[Listener])
    is_up: bool = True
    is_registered: bool = True

    def listener_like(self, listener: Listener) -> Listener:
        """Return the listener of this node that has the same name."""
        return next((one for one in self.listeners if one.name == listener.name), listener)
