"""What tasks write of a Kafka partition, against what its broker would make of it."""

from __future__ import annotations

import importlib
import shutil
from pathlib import Path
from typing import Any

import pytest

from logstore.compat.record_mapping import MappingError
from logstore.compat.spark.convert.convert import convert
from logstore.compat.spark.convert.job import HereRunner
from logstore.compat.spark.convert.options import ConvertOptions
from logstore.os_host import system_host
from logstore.partition import Record
from logstore.segments.kafka.clean_shutdown import FILE_NAME as CLEAN
from logstore.segments.kafka.store import KafkaStore
from tests.segments.rocketmq.golden_case import GoldenCase

SMALL = {"mappedFileSizeCommitLog": "1048576", "maxHashSlotNum": "100", "maxIndexNum": "400"}
#: they carry no types
pa: Any = importlib.import_module("pyarrow")
parquet: Any = importlib.import_module("pyarrow.parquet")
KINDS = (".log", ".index", ".timeindex", "leader-epoch-checkpoint")


def partition_files(directory: Path) -> dict[str, bytes]:
    """Return data, indexes and leader epochs of all partitions of users."""
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in directory.glob("*-*/*")
        if path.name.endswith(KINDS) and not path.parent.name.startswith("__")
    }


def recovered(directory: Path, copy: Path) -> dict[str, bytes]:
    """Return the same after a recovery that found neither indexes nor a clean stop."""
    shutil.copytree(directory, copy)
    for path in list(copy.glob("*-*/*index")) + list(copy.glob("*-*/leader-epoch-checkpoint")):
        path.unlink()
    (copy / CLEAN).unlink()
    (copy / "recovery-point-offset-checkpoint").unlink()
    KafkaStore(system_host(), str(copy)).close()
    return partition_files(copy)


@pytest.mark.parametrize(
    "settings", [{}, {"segment.index.bytes": "48", "index.interval.bytes": "64"}]
)
def test_segments_have_the_indexes_that_a_recovery_makes(
    settings: dict[str, str], tmp_path: Path
) -> None:
    """Byte for byte, so that nobody needs to read the data again; leader epochs too."""
    target = tmp_path / "kafka"
    case = GoldenCase("plain", "5.5.0")
    source = str(case.lean_store)
    convert(HereRunner(), ConvertOptions(source, str(target), "kafka", settings=settings))
    made = partition_files(target)
    assert (target / CLEAN).is_file()
    assert any(name.endswith(".timeindex") and data for name, data in made.items())
    assert recovered(target, tmp_path / "copy") == made


def test_a_damaged_rest_is_named(tmp_path: Path) -> None:
    """What was kept of a record is never guessed: the error says which one and what to do."""
    store = KafkaStore(system_host(), str(tmp_path / "source"))
    [partition] = store.create_topic("t", 1).partitions.values()
    partition.append_records([Record(b"", None, 1000)])
    store.close()
    middle, target = tmp_path / "rocketmq", tmp_path / "kafka"
    convert(
        HereRunner(),
        ConvertOptions(str(tmp_path / "source"), str(middle), "rocketmq", settings=SMALL),
    )
    [path] = middle.glob("logstore-rest-*.parquet")
    table = parquet.read_table(path)
    for damaged in (b"K", b"X1\0\0\0\0\0", table["rest"][0].as_py()[:-1]):
        rests = pa.array([damaged], pa.binary())
        parquet.write_table(table.set_column(3, table.schema.field("rest"), rests), path)
        with pytest.raises(MappingError, match=r"queue offset 0 is damaged.*logstore-rest"):
            convert(HereRunner(), ConvertOptions(str(middle), str(target), "kafka"))
        assert not target.exists()
