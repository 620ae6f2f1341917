"""Stores behind URLs that fsspec knows: planned and read as those in directories."""

from __future__ import annotations

import importlib
import uuid
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fsspec", reason="fsspec is missing: extra `remote`")
pytest.importorskip("pyspark", reason="pyspark is missing: extra `spark`")

from pyspark.sql.types import BinaryType, IntegerType, LongType, StringType, StructField, StructType

from logstore.compat.spark.options import parse_options
from logstore.compat.spark.reader import LogStoreReader
from tests.segments.kafka.golden_case import GOLDEN
from tests.segments.rocketmq.golden_case import GoldenCase

SCHEMA = StructType(
    [
        StructField("topic", StringType()),
        StructField("partition", IntegerType()),
        StructField("offset", LongType()),
        StructField("value", BinaryType()),
    ]
)


def store_of(layout: str) -> Path:
    """Return a store that a real broker has left."""
    if layout == "kafka":
        return GOLDEN / "kafka-4.3" / "data"
    return GoldenCase("plain", "5.5.0").store


def rows_of(location: str) -> list[dict[str, Any]]:
    """Return what the data source's tasks read, one after the other."""
    options = parse_options({"path": location, "columns": ",".join(SCHEMA.names)})
    reader = LogStoreReader(options, SCHEMA)
    return [
        row
        for partition in reader.partitions()
        for batch in reader.read(partition)
        for row in batch.to_pylist()
    ]


@pytest.mark.parametrize("layout", ["kafka", "rocketmq"])
@pytest.mark.parametrize("kind", ["file", "memory"])
def test_a_url_reads_as_the_directory_does(kind: str, layout: str) -> None:
    """``load("file://...")`` and ``load("memory://...")``: the same rows in the same order."""
    directory = store_of(layout)
    location = f"file://{directory}"
    if kind == "memory":
        location = f"memory://{uuid.uuid4().hex}"
        fsspec: Any = importlib.import_module("fsspec")
        fsspec.filesystem("memory").put(f"{directory}/", location, recursive=True)

    found = rows_of(location)

    assert found == rows_of(str(directory))
    assert len(found) > 100
