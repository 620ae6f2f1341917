"""``config/timermetrics``: how many timer messages of each topic wait (``TimerMetrics``)."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import attrs

from logstore.host import Host
from logstore.segments.rocketmq.settings.release import Release
from logstore.segments.rocketmq.tables.data_version import DataVersion
from logstore.segments.rocketmq.tables.json_fields import as_int, as_object
from logstore.segments.rocketmq.tables.json_table import JsonTable, TableWrite

__all__ = ["TimerMetric", "TimerMetrics"]


@attrs.frozen
class TimerMetric:
    """How many wait, and when that last changed."""

    count: int
    timestamp_ms: int


class TimerMetrics(JsonTable):
    """Waiting messages by their real topic; written on one line, unlike the other tables."""

    file_name = "timermetrics"

    def __init__(self, host: Host, directory: str, release: Release = Release.V5) -> None:
        super().__init__(host, directory, release)
        self.by_topic: dict[str, TimerMetric] = {}
        self.data_version = DataVersion(host.clock.wall_ms())

    def count(self, topic: str) -> int:
        """Return how many messages of a topic wait."""
        found = self.by_topic.get(topic)
        return 0 if found is None else found.count

    def add(self, topic: str, change: int, times: int = 1) -> None:
        """Count a message that came (1) or went (-1), or what so many `times` that sums to."""
        now_ms = self.host.clock.wall_ms()
        self.by_topic[topic] = TimerMetric(self.count(topic) + change, now_ms)
        self.data_version = self.data_version.next(now_ms, count=times)
        self.is_dirty = True

    def forget(self, topic: str) -> None:
        """Forget a topic that is deleted (``removeTimingCount``)."""
        if self.by_topic.pop(topic, None) is not None:
            self.is_dirty = True

    def keep_only(self, topics: Collection[str]) -> None:
        """Forget topics that are gone; system and light topics stay (``cleanMetrics``)."""
        gone = [
            topic
            for topic in self.by_topic
            if topic not in topics and not topic.startswith(("rmq_sys_", "%LMQ%"))
        ]
        for topic in gone:
            del self.by_topic[topic]
            self.is_dirty = True

    def to_json(self) -> dict[Any, Any]:
        """Return the content as the file has it."""
        counts = {
            topic: {"count": metric.count, "timeStamp": metric.timestamp_ms}
            for topic, metric in self.by_topic.items()
        }
        return {"dataVersion": self.data_version.to_json(self.release), "timingCount": counts}

    def take_json(self, content: Any) -> None:
        """Take over a file's content; raises JsonTypeError."""
        fields = as_object(content)
        by_topic: dict[str, TimerMetric] = {}
        for topic, value in as_object(fields.get("timingCount")).items():
            metric = as_object(value)
            count, timestamp_ms = metric.get("count"), metric.get("timeStamp")
            by_topic[str(topic)] = TimerMetric(
                0 if count is None else as_int(count),
                0 if timestamp_ms is None else as_int(timestamp_ms),
            )
        version = DataVersion.from_json(fields.get("dataVersion"))
        self.by_topic = by_topic
        if version is not None:
            self.data_version = version

    def begin_persist(self) -> TableWrite:
        """Return the write of the content as it is now, on one line."""
        self.is_dirty = False
        data = self.encoded(is_pretty=False)
        return TableWrite(self.host.fs, self.path, data, to_keep_aside=self._is_file_damaged)
