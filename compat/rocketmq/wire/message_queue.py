"""One queue of one topic on one broker, as requests and answers name it."""

from __future__ import annotations

import attrs

from logstore.java_hash import java_hash


@attrs.frozen(order=True)
class MessageQueue:
    """One queue of one topic on one broker, as clients name it."""

    topic: str
    broker_name: str
    queue_id: int

    def to_json(self) -> dict[str, object]:
        """Return it as clients write it."""
        return {"brokerName": self.broker_name, "queueId": self.queue_id, "topic": self.topic}

    @property
    def spread_hash(self) -> int:
        """What Java's maps choose a bucket by: its hash code, high bits mixed into the low ones."""
        value = (31 + java_hash(self.broker_name)) * 31 + self.queue_id
        value = (value * 31 + java_hash(self.topic)) & 0xFFFF_FFFF
        return value ^ value >> 16
