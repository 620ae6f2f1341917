"""
The offset map: for every record where it stood and where it stands now, as Parquet.

One file a task, ``logstore-offset-map-<task>.parquet`` in the target: `topic`, `partition`,
`sourceOffset`, `sourcePosition`, `targetOffset`, `targetPosition`. A position is a physical offset
in RocketMQ, in Kafka the place of the batch in its segment; topics are the target's. What a target
cannot hold of a record stands in ``logstore-rest-<task>.parquet``: `topic`, `partition`,
`targetOffset`, `rest`, as ``MAPPING.md`` describes it.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from logstore.compat.spark.convert.row_groups import RowGroupWriter

MAP_PATTERN = "logstore-offset-map-*.parquet"
REST_PATTERN = "logstore-rest-*.parquet"
_NUMBERS = ("sourceOffset", "sourcePosition", "targetOffset", "targetPosition")


class OffsetMapWriter:
    """Writes the map of one task; both files are durable when it is closed."""

    def __init__(self, directory: Path, number: int) -> None:
        self._pa: Any = importlib.import_module("pyarrow")
        self._map = RowGroupWriter(
            directory / MAP_PATTERN.replace("*", f"{number:06d}"), _NUMBERS, rising=_NUMBERS
        )
        self._rests = RowGroupWriter(
            directory / REST_PATTERN.replace("*", f"{number:06d}"),
            ("targetOffset", "rest"),
            rising=("targetOffset",),
            odd=("rest",),
        )

    def __enter__(self) -> Self:
        return self

    def add(
        self,
        topic: str,
        partition: int,
        source_offsets: NDArray[np.int64],
        source_positions: NDArray[np.int64],
        target_offsets: NDArray[np.int64],
        target_positions: NDArray[np.int64],
        rests: Mapping[int, bytes],
    ) -> None:
        """Add records of one partition, a row each; `rests` by row."""
        numbers = (source_offsets, source_positions, target_offsets, target_positions)
        self._map.add(topic, partition, numbers)
        if rests:
            rows = np.array(sorted(rests), dtype=np.int64)
            found = self._pa.array([rests[row] for row in rows.tolist()], self._pa.binary())
            self._rests.add(topic, partition, (target_offsets[rows], found))

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for writer in (self._map, self._rests):
            writer.__exit__(kind, error, trace)
