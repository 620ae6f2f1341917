"""One queue of one topic on one broker, as requests and answers name it."""

from __future__ import annotations

import attrs


@attrs.frozen(order=True)
class MessageQueue:
    """One queue of one topic on one broker, as clients name it."""

    topic: str
    broker_name: str
    queue_id: int

    def to_json(self) -> dict[str, object]:
        """Return it as clients write it."""
        return {"brokerName": self.broker_name, "queueId": self.queue_id, "topic": self.topic}
