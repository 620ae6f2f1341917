"""One task of a conversion to Parquet or JSON lines: units of either layout to one file."""

from __future__ import annotations

import gzip
import importlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import attrs

from logstore.compat.spark.columns import arrow_schema
from logstore.compat.spark.convert.damage import FAILFAST
from logstore.compat.spark.convert.json_lines import json_lines
from logstore.compat.spark.convert.work_folder import Attempt
from logstore.compat.spark.kafka_rows import RowReader
from logstore.compat.spark.predicates import Where
from logstore.compat.spark.rocketmq_rows import MessageReader
from logstore.compat.spark.stores import file_system_of
from logstore.compat.spark.work_unit import Unit, WorkUnit

#: codec -> what a file of lines is called
LINE_SUFFIXES = {"none": ".jsonl", "gzip": ".jsonl.gz", "zstd": ".jsonl.zst"}
#: codec -> pyarrow's name
PARQUET_CODECS = {"none": "NONE", "gzip": "GZIP", "snappy": "SNAPPY", "lz4": "LZ4", "zstd": "ZSTD"}
#: rows are gathered up to this, so that a column's pages are worth their headers
_ROW_GROUP_BYTES = 64 * 1024 * 1024


@attrs.frozen
class FileTask:
    """Writes the records of some units as one file."""

    number: int
    source: str
    units: tuple[Unit, ...]
    columns: tuple[str, ...]
    layout: str
    codec: str
    mode: str = FAILFAST

    @property
    def size_bytes(self) -> int:
        """How much of the source it reads."""
        return sum(unit.size_bytes for unit in self.units)

    def run(self, attempt: Attempt) -> int:
        """Write the file; return how many records it has. Without any there is none."""
        suffix = ".parquet" if self.layout == "parquet" else LINE_SUFFIXES[self.codec]
        path = attempt.data / f"part-{self.number:06d}{suffix}"
        write = self._write_parquet if self.layout == "parquet" else self._write_lines
        count = write(path)
        if count == 0:
            path.unlink()
            return 0
        with path.open("rb") as file:
            os.fsync(file.fileno())
        return count

    def _batches(self) -> Iterator[Any]:
        fs = file_system_of(self.source, is_read_once=True)
        schema = arrow_schema(self.columns)
        rows, messages = (
            RowReader(fs, schema, Where(), self.mode, -1),
            MessageReader(fs, schema, self.mode),
        )
        for unit in self.units:
            yield from rows.read(unit) if isinstance(unit, WorkUnit) else messages.read(unit)

    def _write_parquet(self, path: Path) -> int:
        pa: Any = importlib.import_module("pyarrow")
        parquet: Any = importlib.import_module("pyarrow.parquet")
        schema = arrow_schema(self.columns)
        count = filled_bytes = 0
        gathered: list[Any] = []
        with parquet.ParquetWriter(
            str(path), schema, compression=PARQUET_CODECS[self.codec], use_dictionary=["topic"]
        ) as writer:
            for batch in self._batches():
                gathered.append(batch)
                count += len(batch)
                filled_bytes += batch.nbytes
                if filled_bytes >= _ROW_GROUP_BYTES:
                    writer.write_table(pa.Table.from_batches(gathered))
                    gathered, filled_bytes = [], 0
            if gathered:
                writer.write_table(pa.Table.from_batches(gathered))
        return count

    def _write_lines(self, path: Path) -> int:
        count = 0
        with _opened(path, self.codec) as file:
            for batch in self._batches():
                file.write(b"".join(json_lines(batch)))
                count += len(batch)
        return count


def _opened(path: Path, codec: str) -> IO[bytes]:
    if codec == "zstd":
        zstandard: Any = importlib.import_module("zstandard")
        file: IO[bytes] = zstandard.open(str(path), "wb")
        return file
    if codec == "gzip":
        packed: Any = gzip.GzipFile(str(path), "wb", mtime=0)  # the same bytes at any time
        opened: IO[bytes] = packed
        return opened
    return path.open("wb")
