"""Damage in a source: told with file and position, or passed over and written down."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import pytest

from logstore.compat.spark.convert.convert import convert
from logstore.compat.spark.convert.job import HereRunner
from logstore.compat.spark.convert.options import ConvertOptions
from logstore.compat.spark.option_values import OptionError
from logstore.errors import CorruptEntryError
from logstore.os_host import system_host
from logstore.partition import Record
from logstore.segments.kafka.store import KafkaStore
from logstore.segments.kafka.store import StoreOptions as KafkaOptions
from logstore.segments.rocketmq.store import RocketMQStore, StoreOptions

#: it carries no types
parquet: Any = importlib.import_module("pyarrow.parquet")
SETTINGS = {
    "mappedFileSizeCommitLog": "65536",
    "maxHashSlotNum": "100",
    "maxIndexNum": "4000",
    "mappedFileSizeConsumeQueue": "20000",
}
COUNT = 3000
BATCH = 10


def make_kafka(directory: Path) -> Path:
    """Make a store of one partition, in batches of ten records that can be told apart."""
    store = KafkaStore(system_host(), str(directory))
    [partition] = store.create_topic("t", 1).partitions.values()
    for first in range(0, COUNT, BATCH):
        numbers = range(first, first + BATCH)
        partition.append_records([Record(b"k", b"value %06d" % n, 1000 + n) for n in numbers])
    store.close()
    return directory


def flip(path: Path, needle: bytes) -> None:
    """Change one bit of the only place where these bytes stand."""
    data = bytearray(path.read_bytes())
    assert data.count(needle) == 1
    data[data.index(needle) + len(needle) - 1] ^= 1
    path.write_bytes(data)


@pytest.fixture
def damaged_kafka(tmp_path: Path) -> Path:
    """A Kafka store of which the batch from offset 1,230 on is damaged."""
    source = make_kafka(tmp_path / "source")
    flip(source / "t-0" / f"{0:020d}.log", b"value 001234")
    return source


@pytest.fixture
def damaged_rocketmq(tmp_path: Path) -> Path:
    """A RocketMQ store of which message 1,234 is damaged."""
    store = tmp_path / "rocketmq"
    convert(
        HereRunner(),
        ConvertOptions(
            str(make_kafka(tmp_path / "source")), str(store), "rocketmq", settings=SETTINGS
        ),
    )
    [path] = [p for p in (store / "commitlog").iterdir() if b"value 001234" in p.read_bytes()]
    assert path != max((store / "commitlog").iterdir())
    flip(path, b"value 001234")
    return store


def run(source: Path, target: Path, layout: str, **wishes: Any) -> dict[str, Any]:
    """Convert and return the report."""
    settings = SETTINGS if layout == "rocketmq" else {}
    options = ConvertOptions(str(source), str(target), layout, settings=settings, **wishes)
    report: dict[str, Any] = convert(HereRunner(), options)
    return report


def damages(target: Path) -> list[dict[str, Any]]:
    """Return what the target says of damage."""
    paths = sorted(target.glob("logstore-damage-*.parquet"))
    return [row for path in paths for row in parquet.read_table(path).to_pylist()]


def test_a_damaged_batch_is_told_with_file_and_position(
    damaged_kafka: Path, tmp_path: Path
) -> None:
    """Nothing is left out unless that is wished; there is no target."""
    for layout in ("rocketmq", "parquet"):
        target = tmp_path / layout
        with pytest.raises(CorruptEntryError, match="CRC is") as caught:
            run(damaged_kafka, target, layout)
        assert caught.value.path == str(damaged_kafka / "t-0" / f"{0:020d}.log")
        size_bytes = Path(caught.value.path).stat().st_size
        assert caught.value.position == size_bytes * 1230 // COUNT
        assert not target.exists()


def test_a_damaged_batch_is_passed_over_and_written_down(
    damaged_kafka: Path, tmp_path: Path
) -> None:
    """Every other record is there; the map has a hole, and a file says where and why."""
    target = tmp_path / "target"
    report = run(damaged_kafka, target, "rocketmq", mode="dropmalformed")
    assert (report["messages"], report["damaged"]) == (COUNT - BATCH, 1)
    options = StoreOptions(is_writable=False, settings=SETTINGS)
    store = RocketMQStore(system_host(), str(target), options)
    bodies = [message.body for message in store.topics()["t"][0].messages(0, 10**6)]
    store.close()
    kept = [n for n in range(COUNT) if not 1230 <= n < 1240]
    assert bodies == [b"value %06d" % n for n in kept]
    [damage] = damages(target)
    assert (damage["topic"], damage["partition"]) == ("t", 0)
    assert (damage["firstOffset"], damage["lastOffset"]) == (1230, 1239)
    assert damage["file"].endswith("t-0/00000000000000000000.log")
    assert "CRC is" in damage["reason"]
    paths = sorted(target.glob("logstore-offset-map-*.parquet"))
    rows = [row for path in paths for row in parquet.read_table(path).to_pylist()]
    assert [row["sourceOffset"] for row in rows] == kept
    assert run(damaged_kafka, target, "rocketmq", mode="dropmalformed")["damaged"] == 1


def test_a_damaged_message_is_told_with_file_and_position(
    damaged_rocketmq: Path, tmp_path: Path
) -> None:
    """The file of the commit log, and where in it the record starts."""
    with pytest.raises(CorruptEntryError, match="CRC") as caught:
        run(damaged_rocketmq, tmp_path / "target", "kafka")
    path = Path(caught.value.path)
    assert path.parent == damaged_rocketmq / "commitlog"
    record = path.read_bytes()[caught.value.position :]
    assert record[:200].count(b"value 001235") == 1
    assert not (tmp_path / "target").exists()


def test_a_damaged_message_is_passed_over_and_its_offset_stays_free(
    damaged_rocketmq: Path, tmp_path: Path
) -> None:
    """So is one of which the commit log has nothing but zeros; no other offset moves."""
    target = tmp_path / "target"
    [path] = [
        p for p in (damaged_rocketmq / "commitlog").iterdir() if b"value 000777" in p.read_bytes()
    ]
    data = bytearray(path.read_bytes())
    start = data.index(b"value 000777") - 88
    size_bytes = int.from_bytes(data[start : start + 4], "big")
    data[start : start + size_bytes] = bytes(size_bytes)
    path.write_bytes(data)
    report = run(damaged_rocketmq, target, "kafka", mode="dropmalformed")
    assert (report["messages"], report["damaged"]) == (COUNT - 2, 2)
    store = KafkaStore(system_host(), str(target), KafkaOptions(is_writable=False))
    records = store.topics()["t"][0].read_records(0, 10**6)
    store.close()
    kept = [n for n in range(COUNT) if n not in (777, 1234)]
    assert [(r.offset, r.value) for r in records] == [(n, b"value %06d" % n) for n in kept]
    assert [(d["firstOffset"], d["lastOffset"]) for d in damages(target)] == [
        (777, 777),
        (1234, 1234),
    ]


def test_damage_that_ends_the_log_loses_nothing_silently(
    damaged_rocketmq: Path, tmp_path: Path
) -> None:
    """In the last file a broker would end its log there; whoever converts is told before."""
    last = max((damaged_rocketmq / "commitlog").iterdir())
    whole = last.read_bytes()
    flip(last, b"value 002975")
    for layout, mode in (("kafka", "failfast"), ("kafka", "dropmalformed"), ("jsonl", "failfast")):
        with pytest.raises(CorruptEntryError, match=r"CRC .* 'logstore salvage'") as caught:
            run(damaged_rocketmq, tmp_path / "target", layout, mode=mode)
        assert caught.value.path == str(last)
        assert last.read_bytes()[caught.value.position :][:200].count(b"value 002974") == 1
    (damaged_rocketmq / "abort").write_bytes(b"")
    last.write_bytes(whole)
    flip(last, b"value 002999")
    report = run(damaged_rocketmq, tmp_path / "target", "kafka", mode="dropmalformed")
    assert report["messages"] == COUNT - 2, "what a crash left half written was never there"


def test_a_row_tells_of_damage_in_files_of_rows(damaged_kafka: Path, tmp_path: Path) -> None:
    """With `permissive`; stores have no place for such a row, and say so."""
    target = tmp_path / "target"
    run(damaged_kafka, target, "jsonl", mode="permissive")
    lines = [json.loads(line) for path in target.glob("*.jsonl") for line in path.open()]
    assert len([line for line in lines if line["offset"] is not None]) == COUNT - BATCH
    [told] = [line for line in lines if line["offset"] is None]
    assert "00000000000000000000.log: position" in told["_corrupt"]
    with pytest.raises(OptionError, match="must be one of: failfast, dropmalformed"):
        run(damaged_kafka, tmp_path / "other", "rocketmq", mode="permissive")
    with pytest.raises(OptionError, match="loses records"):
        run(damaged_kafka, tmp_path / "other", "rocketmq", mode="dropmalformed", preserve=True)
