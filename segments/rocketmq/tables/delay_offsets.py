"""
How far each delay level is delivered: ``config/delayOffset.json``.

Source: ``ScheduleMessageService``, ``DelayOffsetSerializeWrapper``.
"""

from __future__ import annotations

from typing import Any

from logstore.host import Host
from logstore.segments.rocketmq.settings.release import Release
from logstore.segments.rocketmq.tables.data_version import DataVersion
from logstore.segments.rocketmq.tables.json_fields import as_int, as_int32, as_object
from logstore.segments.rocketmq.tables.json_table import JsonTable


class DelayOffsetTable(JsonTable):
    """
    The next queue offset of SCHEDULE_TOPIC_XXXX by delay level.

    Level n is queue n - 1. `data_version` (5.x) goes on every `version_step` puts
    (``delayOffsetUpdateVersionStep``).
    """

    file_name = "delayOffset.json"

    def __init__(
        self,
        host: Host,
        directory: str,
        release: Release = Release.V5,
        *,
        version_step: int = 200,
    ) -> None:
        super().__init__(host, directory, release)
        self.offsets: dict[int, int] = {}
        self.data_version = DataVersion(host.clock.wall_ms())
        self.version_step = version_step
        self._put_count = 0
        self._other_fields: dict[str, Any] = {}

    def get(self, level: int) -> int | None:
        """Return the next queue offset of a level, None if it never delivered."""
        return self.offsets.get(level)

    def put(self, level: int, queue_offset: int) -> None:
        """Say that all before is delivered."""
        self.offsets[level] = queue_offset
        self.is_dirty = True
        self._put_count += 1
        if self._put_count % self.version_step == 0:
            self.data_version = self.data_version.next(self.host.clock.wall_ms())

    def to_json(self) -> dict[Any, Any]:
        """Return the content as the file has it."""
        fields: dict[str, Any] = {
            **self._other_fields,
            "offsetTable": dict(sorted(self.offsets.items())),
        }
        if self.release is Release.V5:
            fields["dataVersion"] = self.data_version.to_json()
        return dict(sorted(fields.items()))

    def take_json(self, content: dict[Any, Any]) -> None:
        """Replace the content by that of a file, or leave it. Raises JsonTypeError."""
        others = dict(content)
        version = DataVersion.from_json(others.pop("dataVersion", None))
        table = as_object(others.pop("offsetTable", None))
        self.offsets = {as_int32(level): as_int(found) for level, found in table.items()}
        self.data_version = version or self.data_version
        self._other_fields = {str(name): value for name, value in others.items()}
