"""What Spark before 4.2 needs: it names no limits for streams, before 4.1 it gives single rows."""

from __future__ import annotations

import importlib.util
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is missing: extra `spark`")

from pyspark.sql import Row, datasource
from pyspark.sql.types import BinaryType, StructType, TimestampType

from logstore.compat.spark.arrow_schema import arrow_schema
from logstore.compat.spark.data_source import LogStoreDataSource
from logstore.compat.spark.option_values import OptionError
from logstore.compat.spark.options import parse_options
from logstore.compat.spark.row_stream_writer import RowStreamWriter
from logstore.compat.spark.unlimited_stream_reader import UnlimitedStreamReader
from logstore.os_host import system_host
from logstore.partition import Record
from logstore.segments.kafka.store import KafkaStore
from tests.compat.spark.test_writing import stored

ROWS_SCHEMA = (
    StructType()
    .add("key", BinaryType())
    .add("value", BinaryType())
    .add("timestamp", TimestampType())
)


def reader_of(path: Path, **options: str) -> UnlimitedStreamReader:
    """Return a stream over a store."""
    return UnlimitedStreamReader(
        parse_options({"path": str(path), **options}, is_stream=True), StructType()
    )


def test_a_micro_batch_goes_to_the_end(tmp_path: Path) -> None:
    """And never back, also where a topic is gone or was made anew."""
    store = KafkaStore(system_host(), str(tmp_path))
    partition = store.create_topic("t", 1).partitions[0]
    partition.append_records([Record(None, b"1", 1000), Record(None, b"2", 1000)])
    stream = reader_of(tmp_path, startingOffsets="earliest")
    assert stream.initialOffset() == {"t": {"0": 0}}
    assert stream.latestOffset() == {"t": {"0": 2}}
    partition.append_records([Record(None, b"3", 1000)])
    assert stream.latestOffset() == {"t": {"0": 3}}
    store.delete_topic(store.topics_by_name["t"])
    assert stream.latestOffset() == {"t": {"0": 3}}
    store.close()


@pytest.mark.parametrize("name", ["maxOffsetsPerTrigger", "minOffsetsPerTrigger"])
def test_limits_are_refused(name: str, tmp_path: Path) -> None:
    """These releases do not say from where a limit counts."""
    with pytest.raises(OptionError, match=rf"{name}.*Spark 4\.2"):
        reader_of(tmp_path, **{name: "5"})


def test_rows_are_written_as_batches_are(tmp_path: Path) -> None:
    """A stream's rows, null fields and times too."""
    source = LogStoreDataSource({"path": str(tmp_path), "topic": "t", "writer": "w"})
    time = datetime(2024, 5, 1, 12, 3, tzinfo=UTC)
    rows = [Row(key=None, value=b"%d" % number, timestamp=time) for number in range(3)]
    rows.append(Row(key=b"k", value=None, timestamp=None))
    older = RowStreamWriter(parsed(source), ROWS_SCHEMA)
    for batch in (7, 7):
        older.commit([older.write(iter(rows))], batch)
    assert stored(tmp_path, "kafka") == [[b"0", b"1", b"2", None]]


def parsed(source: LogStoreDataSource) -> Any:
    """Return a writer's options."""
    from logstore.compat.spark.write_options import parse_write_options

    return parse_write_options(source.options)


def _absent(name: str) -> None:
    """Stand in for a Spark that has no such module."""
    assert name == "pyspark.sql.streaming.datasource"


def test_the_release_decides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it has, not what it is called."""
    KafkaStore(system_host(), str(tmp_path)).close()
    options = {"path": str(tmp_path), "topic": "t", "writer": "w"}
    source = LogStoreDataSource(options)
    monkeypatch.setattr(importlib.util, "find_spec", _absent)
    monkeypatch.delattr(datasource, "DataSourceStreamArrowWriter", raising=False)
    assert isinstance(source.streamReader(StructType()), UnlimitedStreamReader)
    assert isinstance(source.streamWriter(ROWS_SCHEMA, overwrite=False), RowStreamWriter)


def test_times_are_those_of_utc() -> None:
    """Whatever the release says by default."""
    field = arrow_schema(ROWS_SCHEMA).field("timestamp")
    assert str(field.type) == "timestamp[us, tz=UTC]"
