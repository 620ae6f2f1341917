"""
Properties that a broker has made itself, in a map of Java's.

The order in which they stand in a message is that of the map: one that a client's text was read
into is made larger than one that was filled piece by piece.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from logstore.segments.rocketmq.messages.properties import encode_properties

#: of a map for which nobody has said how large it will be
DEFAULT_CAPACITY = 16


@attrs.frozen
class OwnProperties:
    """Names and values, in the order in which they were put; the map grows with them."""

    entries: Mapping[str, str]
    capacity: int = DEFAULT_CAPACITY

    def encoded(self) -> bytes:
        """Return their text."""
        return encode_properties(self.entries, capacity=self.capacity)


def capacity_for(count: int) -> int:
    """Return how large a map is made that takes `count` entries of another one (``putAll``)."""
    return int(count / 0.75 + 1.0)
