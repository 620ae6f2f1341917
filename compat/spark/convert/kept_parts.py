"""
What an earlier conversion kept beside a store, looked up for the way back.

A store that was never converted has none of these files, and nothing is looked for.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

from logstore.compat.spark.convert.offset_map import REST_PATTERN


class KeptParts:
    """The rows of one kind of file, by topic, partition and offset."""

    def __init__(self, directory: str, pattern: str, offset_name: str) -> None:
        self._files = sorted(str(path) for path in Path(directory).glob(pattern))
        self._offset_name = offset_name
        self._place: tuple[str, int] | None = None
        self._rows: dict[int, dict[str, Any]] = {}

    def of_partition(self, topic: str, partition: int) -> dict[int, dict[str, Any]]:
        """Return the rows of one partition by offset."""
        if not self._files:
            return {}
        if self._place != (topic, partition):
            self._rows = self._read(topic, partition)
            self._place = (topic, partition)
        return self._rows

    def _read(self, topic: str, partition: int) -> dict[int, dict[str, Any]]:
        parquet: Any = importlib.import_module("pyarrow.parquet")
        filters = [("topic", "=", topic), ("partition", "=", partition)]
        rows: dict[int, dict[str, Any]] = {}
        for file in self._files:
            for row in parquet.read_table(file, filters=filters).to_pylist():
                rows[row[self._offset_name]] = row
        return rows


def kept_rests(directory: str) -> KeptParts:
    """Return what a RocketMQ store could not hold of Kafka's records."""
    return KeptParts(directory, REST_PATTERN, "targetOffset")
