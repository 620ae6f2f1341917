"""How a table's version is told: a counter, the time of the last change, and a state number."""

from __future__ import annotations

from typing import Any

import attrs

from logstore.segments.rocketmq.settings.release import Release
from logstore.segments.rocketmq.tables.json_fields import as_int, as_object


@attrs.frozen
class DataVersion:
    """
    The version of a table; brokers, name servers and slaves compare them for equality.

    Source: ``DataVersion``. `state_version` is 5.x only and 0 outside of controller mode.
    """

    timestamp_ms: int
    counter: int = 0
    state_version: int = 0

    def next(self, now_ms: int, state_version: int = 0, *, count: int = 1) -> DataVersion:
        """Return the version after one more change, or so many."""
        return DataVersion(now_ms, self.counter + count, state_version)

    def to_json(self, release: Release = Release.V5) -> dict[str, Any]:
        """Return the fields by Java's names."""
        fields = {"counter": self.counter}
        if release is Release.V5 or self.state_version:
            fields["stateVersion"] = self.state_version
        return {**fields, "timestamp": self.timestamp_ms}

    @classmethod
    def from_json(cls, content: Any) -> DataVersion | None:
        """Return the version of these fields, None without any. Raises JsonTypeError."""
        fields = as_object(content)
        if not fields:
            return None
        values = (fields.get(name) for name in ("timestamp", "counter", "stateVersion"))
        return cls(*(0 if value is None else as_int(value) for value in values))
