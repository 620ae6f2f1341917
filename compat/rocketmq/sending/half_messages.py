"""Half of a transaction: where it stands until its end, and what says which message it will be."""

from __future__ import annotations

from logstore.compat.rocketmq.sending.sent_properties import with_properties
from logstore.segments.rocketmq.messages.properties import (
    REAL_QUEUE_ID,
    REAL_TOPIC,
    TRANSACTION_ID,
)

#: every half message stands there
HALF_QUEUE_ID = 0


def half_text(text: str, unique_key: str, topic: str, queue_id: int) -> str:
    """Return the properties of the half message that stands for one to a queue."""
    added = {TRANSACTION_ID: unique_key, REAL_TOPIC: topic, REAL_QUEUE_ID: str(queue_id)}
    return with_properties(text, added)
