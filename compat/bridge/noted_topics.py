"""Topics whose stored data may carry rests of the other protocol: all others need no look."""

from __future__ import annotations

from typing import Any, ClassVar

from logstore.host import Host
from logstore.segments.rocketmq.tables.json_table import JsonTable


class NotedTopics(JsonTable):
    """A set of topics in a file beside the data. A name that a new topic takes up stays noted."""

    file_name: ClassVar[str] = "topicsWithRests.json"

    def __init__(self, host: Host, directory: str) -> None:
        super().__init__(host, directory)
        self._topics: set[str] = set()

    def __contains__(self, topic: str) -> bool:
        """Tell whether a topic is noted."""
        return topic in self._topics

    def note(self, topic: str) -> None:
        """Note a topic, durably. Raises OSError."""
        if topic not in self._topics:
            self._topics.add(topic)
            self.persist()

    def to_json(self) -> dict[Any, Any]:
        """Return the content as the file has it."""
        return {"topics": sorted(self._topics)}

    def take_json(self, content: dict[Any, Any]) -> None:
        """Replace the content by that of a file."""
        self._topics = {str(name) for name in content.get("topics") or ()}
