"""Which release of RocketMQ a store is written as: the two differ in what they write where."""

from __future__ import annotations

from enum import Enum


class Release(Enum):
    """
    A release that wrote or reads the store.

    5.x writes more than 4.x does: index entries of tags, counters of versions that 4.x does not
    know, other fields and another spelling of the tables under ``config/``. Either reads what the
    other wrote.
    """

    V4 = "4.9.8"
    V5 = "5.5.0"

    @property
    def has_tag_entries(self) -> bool:
        """Whether the index holds an entry ``topic#T#tags`` for a message with tags."""
        return self is Release.V5
