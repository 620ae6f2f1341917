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
import os
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

MAP_PATTERN = "logstore-offset-map-*.parquet"
REST_PATTERN = "logstore-rest-*.parquet"


class OffsetMapWriter:
    """Writes the map of one task; both files are durable when it is closed."""

    def __init__(self, directory: Path, number: int) -> None:
        self._pa: Any = importlib.import_module("pyarrow")
        self._parquet: Any = importlib.import_module("pyarrow.parquet")
        pa = self._pa
        place = [("topic", pa.dictionary(pa.int32(), pa.string())), ("partition", pa.int32())]
        names = ("sourceOffset", "sourcePosition", "targetOffset", "targetPosition")
        self._map_schema = pa.schema([*place, *((name, pa.int64()) for name in names)])
        self._rest_schema = pa.schema([*place, ("targetOffset", pa.int64()), ("rest", pa.binary())])
        self._map_path = directory / MAP_PATTERN.replace("*", f"{number:06d}")
        self._rest_path = directory / REST_PATTERN.replace("*", f"{number:06d}")
        self._map: Any = None
        self._rests: Any = None

    def __enter__(self) -> Self:
        self._map = self._parquet.ParquetWriter(str(self._map_path), self._map_schema)
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
        place = self._place(topic, partition, len(source_offsets))
        self._map.write_batch(self._batch(self._map_schema, [*place, *numbers]))
        if rests:
            if self._rests is None:
                path = str(self._rest_path)
                self._rests = self._parquet.ParquetWriter(path, self._rest_schema)
            rows = np.array(sorted(rests), dtype=np.int64)
            found = self._pa.array([rests[row] for row in rows.tolist()], self._pa.binary())
            columns = [*self._place(topic, partition, len(rows)), target_offsets[rows], found]
            self._rests.write_batch(self._batch(self._rest_schema, columns))

    def _place(self, topic: str, partition: int, count: int) -> list[Any]:
        pa = self._pa
        zeros = pa.array(np.zeros(count, dtype=np.int32))
        texts = pa.DictionaryArray.from_arrays(zeros, pa.array([topic], pa.string()))
        return [texts, np.full(count, partition, dtype=np.int32)]

    def _batch(self, schema: Any, columns: list[Any]) -> Any:
        arrays = [self._pa.array(column) for column in columns]
        return self._pa.RecordBatch.from_arrays(arrays, schema=schema)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for writer, path in ((self._map, self._map_path), (self._rests, self._rest_path)):
            if writer is not None:
                writer.close()
                with path.open("rb") as file:
                    os.fsync(file.fileno())
