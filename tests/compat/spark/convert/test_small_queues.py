"""Queues that are small share a task, and what belongs to each of them stays its own."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest

from logstore.compat.spark.convert import to_kafka
from logstore.compat.spark.convert.convert import convert
from logstore.compat.spark.convert.job import HereRunner
from logstore.compat.spark.convert.options import ConvertOptions
from logstore.compat.spark.stores import open_for_reading
from logstore.os_host import system_host
from logstore.segments.kafka.record import decode_records
from logstore.segments.kafka.store import KafkaStore
from logstore.segments.rocketmq.store import RocketMQStore, StoreOptions
from logstore.segments.rocketmq.tables.topics import TopicConfig
from tests.segments.rocketmq.test_message import draft

#: it carries no types
parquet: Any = importlib.import_module("pyarrow.parquet")
SETTINGS = {
    "mappedFileSizeCommitLog": "1048576",
    "mappedFileSizeConsumeQueue": "2000",
    "maxHashSlotNum": "100",
    "maxIndexNum": "400",
}
TOPICS = [f"topic{number}" for number in range(20)]


def source_in(folder: Path) -> Path:
    """Return a store with twenty queues of one to three messages, and a group that read one."""
    source = folder / "rocketmq"
    store = RocketMQStore(system_host(), str(source), StoreOptions(settings=SETTINGS))
    for topic in TOPICS:
        store.tables.topics.put(TopicConfig(topic, 1, 1))
    for turn in range(3):
        for number, topic in enumerate(TOPICS):
            if number % 3 >= turn:
                store.put_message(draft(topic, f"{topic} {turn}".encode(), queue_id=0))
    store.tables.consumer_offsets.commit("group", TOPICS[2], 0, 2)
    store.close()
    return source


def values_in(target: Path) -> dict[tuple[str, int], list[Any]]:
    """Return the values of each topic of users by partition."""
    found: dict[tuple[str, int], list[Any]] = {}
    with open_for_reading(str(target)) as store:
        assert isinstance(store, KafkaStore)
        for topic, partitions in store.topics().items():
            if not topic.startswith("__"):
                for index, partition in partitions.items():
                    batches = list(partition.batches())
                    records = [one for batch in batches for one in decode_records(batch.data)]
                    assert [record.offset for record in records] == list(range(len(records)))
                    found[topic, index] = [record.value for record in records]
    return found


EXPECTED = {
    (topic, 0): [f"{topic} {turn}".encode() for turn in range(3) if number % 3 >= turn]
    for number, topic in enumerate(TOPICS)
}


@pytest.mark.parametrize(("task_bytes", "task_count"), [(64 << 20, 1), (5 << 20, 5), (4096, 20)])
def test_small_queues_share_tasks(task_bytes: int, task_count: int, tmp_path: Path) -> None:
    """A queue costs as much as a megabyte; the offset map is a file a task, with all of them."""
    target = tmp_path / "kafka"
    options = ConvertOptions(str(source_in(tmp_path)), str(target), "kafka", task_bytes=task_bytes)
    convert(HereRunner(), options)
    assert values_in(target) == EXPECTED
    maps = sorted(target.glob("logstore-offset-map-*.parquet"))
    assert len(maps) == task_count
    rows = [row for path in maps for row in parquet.read_table(path).to_pylist()]
    assert [(row["topic"], row["sourceOffset"], row["targetOffset"]) for row in rows] == [
        (topic, offset, offset)
        for topic in sorted(TOPICS)
        for offset in range(len(EXPECTED[topic, 0]))
    ]


def test_what_a_power_loss_tears_while_it_completes_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing that the new store writes is synced before all of it is; a second run goes on."""
    source, target = source_in(tmp_path), tmp_path / "kafka"
    options = ConvertOptions(str(source), str(target), "kafka")

    class PowerLossError(Exception):
        """The run ends here."""

    def lose_power(*_: object) -> None:
        raise PowerLossError

    with monkeypatch.context() as patched:
        patched.setattr(to_kafka, "_commit_offsets", lose_power)
        with pytest.raises(PowerLossError):
            convert(HereRunner(), options)
    data = target.with_name(target.name + ".converting") / "data"
    torn = [path for path in data.rglob("*") if path.is_file() and path.suffix != ".log"]
    assert {"meta.properties", "partition.metadata", "leader-epoch-checkpoint"} <= {
        path.name for path in torn
    }
    for path in torn:
        path.write_bytes(b"")

    convert(HereRunner(), options)
    assert values_in(target) == EXPECTED
    with open_for_reading(str(target)) as store:
        assert isinstance(store, KafkaStore)
        epochs = store.topics_by_name[TOPICS[0]].partitions[0].leader_epochs.entries
        assert list(epochs) == [(0, 0)]
        assert "__consumer_offsets" in store.topics()
