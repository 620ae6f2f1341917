"""
Damage in the source that a conversion passes over: where it is, and what is missing for it.

With the mode ``dropmalformed`` a damaged batch or message is left out; nothing stands for it in the
offset map, and ``logstore-damage-<task>.parquet`` in the target tells of it: `topic` and
`partition` as the source has them, `file`, `position`, `sizeBytes` (of all that was passed over),
`firstOffset` and `lastOffset` (what the damage may hold, both in; null where nobody knows),
`reason`.
"""

from __future__ import annotations

import importlib
import logging
import os
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import attrs

from logstore.errors import CorruptEntryError

DAMAGE_PATTERN = "logstore-damage-*.parquet"
FAILFAST, DROP = "failfast", "dropmalformed"
_log = logging.getLogger(__name__)


@attrs.frozen
class Damage:
    """Bytes of a file of the source that were passed over; offsets None: nobody knows."""

    topic: str
    partition: int
    error: CorruptEntryError
    size_bytes: int
    first_offset: int | None = None
    last_offset: int | None = None


class DamageWriter:
    """Writes what one task has passed over; without any there is no file."""

    def __init__(self, directory: Path, number: int) -> None:
        self._path = directory / DAMAGE_PATTERN.replace("*", f"{number:06d}")
        self._rows: list[dict[str, Any]] = []

    def __enter__(self) -> Self:
        return self

    def add(self, damage: Damage) -> None:
        """Take note of one, and say so."""
        error = damage.error
        _log.warning("%s; passed over %d bytes", error, damage.size_bytes)
        self._rows.append(
            {
                "topic": damage.topic,
                "partition": damage.partition,
                "file": error.path,
                "position": error.position,
                "sizeBytes": damage.size_bytes,
                "firstOffset": damage.first_offset,
                "lastOffset": damage.last_offset,
                "reason": error.reason,
            }
        )

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None or not self._rows:
            return
        pa: Any = importlib.import_module("pyarrow")
        parquet: Any = importlib.import_module("pyarrow.parquet")
        texts, numbers = ("topic", "file", "reason"), ("partition",)
        kinds = {
            name: pa.string() if name in texts else pa.int32() if name in numbers else pa.int64()
            for name in self._rows[0]
        }
        table = pa.Table.from_pylist(self._rows, schema=pa.schema(list(kinds.items())))
        parquet.write_table(table, str(self._path))
        with self._path.open("rb") as file:
            os.fsync(file.fileno())


def damage_count(directory: Path) -> int:
    """Return how many damages all tasks together have passed over."""
    parquet: Any = importlib.import_module("pyarrow.parquet")
    return sum(parquet.read_metadata(path).num_rows for path in directory.glob(DAMAGE_PATTERN))
