"""``--preserve``: Kafka's segments come back byte for byte, and what changed comes back right."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from logstore.compat.spark.convert.committed_offsets import read_committed_offsets
from logstore.compat.spark.convert.convert import convert
from logstore.compat.spark.convert.job import HereRunner
from logstore.compat.spark.convert.options import ConvertOptions
from logstore.os_host import system_host
from logstore.segments.kafka.store import KafkaStore
from logstore.segments.kafka.store import StoreOptions as KafkaOptions
from logstore.segments.rocketmq.store import RocketMQStore
from logstore.segments.rocketmq.store import StoreOptions as RocketMQOptions
from logstore.segments.rocketmq.tables.topics import TopicConfig
from tests.segments.kafka.golden_case import GOLDEN
from tests.segments.rocketmq.drafts import BORN_MS, draft

SMALL = {
    "mappedFileSizeCommitLog": "1048576",
    "maxHashSlotNum": "1000",
    "maxIndexNum": "4000",
    "mappedFileSizeConsumeQueue": "6000",
}
SETS = (
    "kafka-4.3",
    "kafka-3.9",
    "transactions-4.3",
    "legacy-3.9",
    "epochs-4.3",
    "tiered-4.3",
)


def made(source: Path, target: Path, layout: str, **wishes: Any) -> dict[str, Any]:
    """Convert with ``--preserve`` and return the report."""
    options = ConvertOptions(str(source), str(target), layout, preserve=True, **wishes)
    report: dict[str, Any] = convert(HereRunner(), options)
    return report


def logs_of(directory: Path) -> dict[str, bytes]:
    """Return every segment's data by partition and name, without those of internal topics."""
    return {
        f"{path.parent.name}/{path.name}": path.read_bytes()
        for path in sorted(directory.glob("*/*.log"))
        if not path.parent.name.startswith("__")
    }


@pytest.mark.parametrize("name", SETS)
def test_segments_come_back_byte_for_byte(
    name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Every ``.log`` of every converted topic is there again, whatever stands in it."""
    source = GOLDEN / name / "data"
    there = made(source, tmp_path / "rocketmq", "rocketmq", settings=SMALL)
    back = made(tmp_path / "rocketmq", tmp_path / "kafka", "kafka")
    before, after = logs_of(source), logs_of(tmp_path / "kafka")
    assert before
    assert after.keys() == before.keys()
    assert [path for path, data in before.items() if after[path] != data] == []
    assert back["restored"] == {"unchanged": len(before), "changed": [], "gone": []}
    assert there["kept"]["files"] == len(before)
    assert "rebuilt up to" not in caplog.text


def test_a_damaged_partition_does_not_keep_the_others(tmp_path: Path) -> None:
    """Whatever a crash and Kafka's recovery leave in a log comes back, open transactions too."""
    source = tmp_path / "source"
    # Damage that Kafka does not see, conversion refuses: offsets and records of sealed segments.
    damaged = ("crash-6", "crash-8")
    shutil.copytree(GOLDEN / "crash-4.3" / "data", source, ignore=shutil.ignore_patterns(*damaged))
    made(source, tmp_path / "rocketmq", "rocketmq", settings=SMALL)
    made(tmp_path / "rocketmq", tmp_path / "kafka", "kafka")
    before, after = logs_of(source), logs_of(tmp_path / "kafka")
    after = {path: data for path, data in after.items() if not path.startswith(damaged)}
    assert after == before
    assert len(before) > 100


def kafka(directory: Path) -> KafkaStore:
    """Open a store to look at it."""
    return KafkaStore(system_host(), str(directory), KafkaOptions(is_writable=False))


@pytest.mark.parametrize("name", ["kafka-4.3", "kafka-3.9"])
def test_what_no_segment_tells_comes_back_too(name: str, tmp_path: Path) -> None:
    """Topic ids and settings, leader epochs, log starts, transactions, what groups committed."""
    source = GOLDEN / name / "data"
    made(source, tmp_path / "rocketmq", "rocketmq", settings=SMALL)
    made(tmp_path / "rocketmq", tmp_path / "kafka", "kafka")
    before, after = kafka(source), kafka(tmp_path / "kafka")
    topics = [topic for topic in before.topics_by_name if not topic.startswith("__")]
    assert len(topics) > 5
    for topic in topics:
        old, new = before.topics_by_name[topic], after.topics_by_name[topic]
        assert new.topic_id == old.topic_id
        assert new.settings == {"retention.ms": "-1", **old.settings}
        for index, partition in old.partitions.items():
            again = new.partitions[index]
            assert again.start_offset == partition.start_offset, topic
            assert again.end_offset == partition.end_offset, topic
            end = partition.end_offset
            assert again.aborted_transactions(0, end) == partition.aborted_transactions(0, end)
            epochs = partition.files.directory + "/leader-epoch-checkpoint"
            assert Path(again.files.directory, "leader-epoch-checkpoint").read_bytes() == (
                Path(epochs).read_bytes()
            )
    committed = [
        {k: v for k, v in read_committed_offsets(store).items() if k[1] in topics}
        for store in (before, after)
    ]
    assert committed[0] == committed[1] != {}
    before.close()
    after.close()


def rocketmq(directory: Path) -> RocketMQStore:
    """Open the store between the two ways, as a broker does."""
    return RocketMQStore(system_host(), str(directory), RocketMQOptions(settings=SMALL))


def put(store: RocketMQStore, topic: str, queue_id: int, *bodies: bytes) -> None:
    """Append messages to a queue."""
    for body in bodies:
        store.put_message(draft(topic=topic, queue_id=queue_id, body=body))
    store.dispatch()


def test_what_was_appended_follows_the_old_log(tmp_path: Path) -> None:
    """New messages get offsets behind the old end, in segments of their own; the old ones stay."""
    source = GOLDEN / "kafka-4.3" / "data"
    made(source, tmp_path / "rocketmq", "rocketmq", settings=SMALL)
    store = rocketmq(tmp_path / "rocketmq")
    for topic in ("transactions", "compacted", "retention-bytes"):
        put(store, topic, 0, b"one", b"two")
    store.topic_table.put(TopicConfig("new", 1, 1))
    put(store, "new", 0, b"three")
    queue_end = store.topics()["transactions"][0].end_offset
    store.consumer_offsets.commit("g", "transactions", 0, queue_end - 1)
    store.close()
    report = made(tmp_path / "rocketmq", tmp_path / "kafka", "kafka")
    before, after = logs_of(source), logs_of(tmp_path / "kafka")
    assert {path: after.get(path) for path in before} == before
    old, new = kafka(source), kafka(tmp_path / "kafka")
    for topic in ("transactions", "compacted", "retention-bytes"):
        end = old.topics()[topic][0].end_offset
        partition = new.topics()[topic][0]
        records = partition.read_records(end, 1000)
        assert [(one.offset, one.value, one.timestamp_ms) for one in records] == [
            (end, b"one", BORN_MS),
            (end + 1, b"two", BORN_MS),
        ]
        assert partition.end_offset == end + 2
        assert partition.leader_epochs.latest_epoch == max(
            0, old.topics()[topic][0].leader_epochs.latest_epoch
        )
    assert [one.value for one in new.topics()["new"][0].read_records(0, 10)] == [b"three"]
    committed = read_committed_offsets(new)["g", "transactions", 0]
    assert committed == old.topics()["transactions"][0].end_offset + 1
    old.close()
    new.close()
    assert report["restored"] == {"unchanged": len(before), "changed": [], "gone": []}


def test_what_was_deleted_or_made_anew_is_not_taken_from_what_was_kept(tmp_path: Path) -> None:
    """A deleted topic stays away; of one that was made anew its own messages come."""
    source = GOLDEN / "kafka-3.9" / "data"
    made(source, tmp_path / "rocketmq", "rocketmq", settings=SMALL)
    store = rocketmq(tmp_path / "rocketmq")
    store.delete_topics({"plain", "transactions"})
    for topic in ("plain", "transactions"):
        store.topic_table.remove(topic)
    store.topic_table.put(TopicConfig("transactions", 1, 1))
    put(store, "transactions", 0, b"one", b"two", b"three")
    store.close()
    report = made(tmp_path / "rocketmq", tmp_path / "kafka", "kafka")
    before, after = logs_of(source), logs_of(tmp_path / "kafka")
    for path, data in before.items():
        if not path.startswith(("plain-0", "transactions")):
            assert after[path] == data
    new = kafka(tmp_path / "kafka")
    assert "plain" not in new.topics()
    records = new.topics()["transactions"][0].read_records(0, 1000, is_committed_only=True)
    assert [one.value for one in records] == [b"one", b"two", b"three"]
    new.close()
    assert report["restored"]["changed"] == ["transactions-0/00000000000000000000.log"]
    gone = {path for path in before if path.startswith(("plain-0", "transactions"))}
    assert set(report["restored"]["gone"]) == gone - {"transactions-0/00000000000000000000.log"}


def test_what_retention_removed_stays_removed(tmp_path: Path) -> None:
    """Batches whose messages are gone are left out; what is left keeps its offsets."""
    source, small = GOLDEN / "kafka-3.9" / "data", {**SMALL, "mappedFileSizeCommitLog": "8192"}
    made(source, tmp_path / "rocketmq", "rocketmq", settings=small, topics=("plain",))
    files = sorted((tmp_path / "rocketmq" / "commitlog").iterdir())
    assert len(files) > 2
    files[0].unlink()
    report = made(tmp_path / "rocketmq", tmp_path / "kafka", "kafka")
    old, new = kafka(source), kafka(tmp_path / "kafka")
    before = old.topics()["plain"][0].read_records(0, 10**6)
    partition = new.topics()["plain"][0]
    after = partition.read_records(partition.start_offset, 10**6)
    assert 0 < len(after) < len(before)
    assert after == before[-len(after) :]
    assert partition.start_offset == after[0].offset
    old.close()
    new.close()
    logs = [logs_of(source), logs_of(tmp_path / "kafka")]
    whole = [path for path, data in logs[1].items() if logs[0].get(path) == data]
    assert report["restored"]["unchanged"] == len(whole) > 0
