"""Members and administrators of share groups, byte by byte, over a socket."""

from __future__ import annotations

from tests.compat.kafka.groups.share.share_questions import ShareQuestions
from tests.interop.group_wire import GroupWire


class ShareWire(GroupWire, ShareQuestions):
    """One connection to a broker that speaks of share groups."""
