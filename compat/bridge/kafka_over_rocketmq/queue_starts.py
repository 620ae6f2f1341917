"""
Where queues begin whose first records a Kafka client has deleted (DeleteRecords).

The messages stand in the commit log for as long as their file does; no client of either side is
shown them any more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from logstore.host import Host
from logstore.segments.rocketmq.tables.json_table import JsonTable


class QueueStarts(JsonTable):
    """First queue offsets by topic and queue id, in a file beside the data."""

    file_name: ClassVar[str] = "queueStarts.json"

    def __init__(self, host: Host, directory: str) -> None:
        super().__init__(host, directory)
        self._starts: dict[str, dict[int, int]] = {}

    def start_of(self, topic: str, queue_id: int) -> int:
        """Return the first queue offset that was not deleted; 0 if none was."""
        starts = self._starts.get(topic)
        return 0 if starts is None else starts.get(queue_id, 0)

    def move(self, topic: str, queue_id: int, queue_offset: int) -> None:
        """Let a queue begin at `queue_offset`, durably, if it does not begin later. May raise."""
        if queue_offset > self.start_of(topic, queue_id):
            self._starts.setdefault(topic, {})[queue_id] = queue_offset
            self.persist()

    def lower(self, end_of: Callable[[str, int], int]) -> None:
        """
        Let no queue begin behind its end, where the power took what was deleted; may raise OSError.

        What comes there next is new, and nobody has deleted it.
        """
        for topic, starts in self._starts.items():
            for queue_id, start in list(starts.items()):
                end = end_of(topic, queue_id)
                if end < start:
                    starts[queue_id] = end
                    self.is_dirty = True
        if self.is_dirty:
            self.persist()

    def forget(self, topic: str) -> None:
        """Forget a topic: another one of that name begins at 0. Raises OSError."""
        if self._starts.pop(topic, None) is not None:
            self.persist()

    def to_json(self) -> dict[Any, Any]:
        """Return the content as the file has it."""
        return {"starts": self._starts}

    def take_json(self, content: dict[Any, Any]) -> None:
        """Replace the content by that of a file."""
        found: dict[str, dict[str, int]] = content.get("starts") or {}
        self._starts = {
            str(topic): {int(queue_id): int(start) for queue_id, start in starts.items()}
            for topic, starts in found.items()
        }
