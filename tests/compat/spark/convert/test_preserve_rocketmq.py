"""``--preserve``: RocketMQ's files come back byte for byte, and what changed comes back right."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from logstore.compat.spark.convert.convert import convert
from logstore.compat.spark.convert.job import HereRunner
from logstore.compat.spark.convert.options import ConvertOptions
from logstore.compat.spark.convert.preserve.keep_log import KeepLogTask
from logstore.compat.spark.convert.preserve.restore_log import RestoreLogTask
from logstore.compat.spark.convert.topic_names import kafka_name
from logstore.compat.spark.option_values import OptionError
from logstore.os_host import system_host
from logstore.partition import Record
from logstore.segments.kafka.store import KafkaStore
from logstore.segments.kafka.store import StoreOptions as KafkaOptions
from logstore.segments.rocketmq.messages.message import Message
from logstore.segments.rocketmq.store import RocketMQStore
from logstore.segments.rocketmq.store import StoreOptions as RocketMQOptions
from tests.segments.rocketmq.golden_case import GoldenCase, stored_cases

CASES = stored_cases()
#: what must be the same; of the rest the report tells
FOLDERS = ("commitlog", "consumequeue", "consumequeue_ext", "batchconsumequeue", "index")
FILES = ("checkpoint", "abort")


def made(source: Path, target: Path, layout: str, **wishes: Any) -> dict[str, Any]:
    """Convert with ``--preserve`` and return the report."""
    options = ConvertOptions(str(source), str(target), layout, preserve=True, **wishes)
    report: dict[str, Any] = convert(HereRunner(), options)
    return report


def topics_of(case: GoldenCase) -> tuple[str, ...]:
    """Return the topics of a case that have queues."""
    return topics_in(case.store)


def topics_in(store: Path) -> tuple[str, ...]:
    """
    Return the topics that have queues; a broker makes others with a thousand empty ones.

    Of a store that has lost its queues these are all but those others.
    """
    system = ("RMQ_SYS", "SCHEDULE", "rmq_sys", "%LMQ%")
    found = [path.name for path in store.glob("*consumequeue/*")]
    if not found:
        table = json.loads((store / "config" / "topics.json").read_text(encoding="utf-8"))
        found = [name for name in table["topicConfigTable"] if name != "BenchmarkTest"]
    return tuple(sorted(topic for topic in found if not topic.startswith(system)))


def files_of(directory: Path) -> dict[str, Path]:
    """Return the files of commit log, queues and index by their paths in the store."""
    return {
        str(path.relative_to(directory)): path
        for folder in FOLDERS
        for path in sorted((directory / folder).rglob("*"))
        if path.is_file()
    } | {name: directory / name for name in FILES if (directory / name).is_file()}


def differing(before: dict[str, Path], after: dict[str, Path]) -> list[str]:
    """Return which files are not there, or not the same."""
    return [
        name
        for name, path in before.items()
        if name not in after or path.read_bytes() != after[name].read_bytes()
    ]


@pytest.mark.parametrize("case", CASES, ids=[case.id for case in CASES])
def test_files_come_back_byte_for_byte(case: GoldenCase, tmp_path: Path) -> None:
    """Commit log, consume queues of all kinds and index are there again, whatever is in them."""
    there = made(case.store, tmp_path / "kafka", "kafka", topics=topics_of(case))
    back = made(tmp_path / "kafka", tmp_path / "rocketmq", "rocketmq", settings=case.settings)
    before, after = files_of(case.store), files_of(tmp_path / "rocketmq")
    assert any(name.startswith("commitlog/") for name in before)
    assert differing(before, after) == []
    assert after.keys() == before.keys()
    assert back["restored"]["unchanged"] >= len(before)
    assert back["restored"]["gone"] == []
    assert there["kept"]["files"] >= len(before)


def messages_of(directory: Path, settings: dict[str, str]) -> dict[tuple[str, int], list[Message]]:
    """Return the messages of every queue that clients see."""
    options = RocketMQOptions(is_writable=False, settings=settings)
    store = RocketMQStore(system_host(), str(directory), options)
    found = {
        (topic, queue_id): queue.messages(queue.start_offset, 10**6)
        for topic, queues in store.topics().items()
        for queue_id, queue in queues.items()
        if not topic.startswith(("RMQ_SYS", "SCHEDULE", "rmq_sys", "%LMQ%"))
    }
    store.close()
    return {place: messages for place, messages in found.items() if messages}


@pytest.fixture
def case() -> GoldenCase:
    """A store with several topics."""
    return GoldenCase("plain", "5.5.0")


def between(case: GoldenCase, tmp_path: Path) -> KafkaStore:
    """Convert a case to Kafka; return that store, open for a broker's work."""
    made(case.store, tmp_path / "kafka", "kafka", topics=topics_of(case))
    return KafkaStore(system_host(), str(tmp_path / "kafka"), KafkaOptions(node_id=1))


def fullest(messages: dict[tuple[str, int], list[Message]]) -> list[tuple[str, int]]:
    """Return the places of queues, those with the most messages first."""
    return sorted(messages, key=lambda place: (-len(messages[place]), place))


def test_what_was_appended_stands_behind_the_old_log(case: GoldenCase, tmp_path: Path) -> None:
    """New records become messages in files of their own; old ones stay where they were."""
    before = messages_of(case.store, case.settings)
    (topic, index), *_ = fullest(before)
    store = between(case, tmp_path)
    new = [Record(b"key", b"one", 7), Record(None, b"two", 8)]
    store.topics()[kafka_name(topic)][index].append_records(new)
    store.create_topic("new", 1).partitions[0].append_records(new)
    store.close()
    back = made(tmp_path / "kafka", tmp_path / "rocketmq", "rocketmq", settings=case.settings)
    after = messages_of(tmp_path / "rocketmq", case.settings)
    count = len(before[topic, index])
    for place, messages in before.items():
        assert after[place][: len(messages)] == messages
    for messages in (after[topic, index][count:], after["new", 0]):
        assert [(one.body, one.properties.get("KEYS")) for one in messages] == [
            (b"one", "key"),
            (b"two", None),
        ]
    assert [one.queue_offset for one in after[topic, index]] == list(range(count + 2))
    logs = sorted(path.name for path in (case.store / "commitlog").iterdir())
    commit_logs = [name for name in back["restored"]["changed"] if name.startswith("commitlog/")]
    assert commit_logs == [f"commitlog/{logs[-1]}"]
    assert back["restored"]["replacedMessages"] == 0
    for name in logs[:-1]:
        path = tmp_path / "rocketmq" / "commitlog" / name
        assert path.read_bytes() == (case.store / "commitlog" / name).read_bytes()


def test_what_is_gone_leaves_a_place_and_what_is_new_is_taken(
    case: GoldenCase, tmp_path: Path
) -> None:
    """Deleted, cut at its head, made anew: each queue has what Kafka has; others do not move."""
    before = messages_of(case.store, case.settings)
    cut, deleted, anew, *_ = [place for place in fullest(before) if place[1] == 0]
    store = between(case, tmp_path)
    store.topics()[kafka_name(cut[0])][0].delete_records(3)
    for topic in (deleted[0], anew[0]):
        store.delete_topic(store.topics_by_name[kafka_name(topic)])
    partition = store.create_topic(kafka_name(anew[0]), 1).partitions[0]
    partition.append_records([Record(b"key", b"other", 1000 + number) for number in range(5)])
    store.close()
    back = made(tmp_path / "kafka", tmp_path / "rocketmq", "rocketmq", settings=case.settings)
    after = messages_of(tmp_path / "rocketmq", case.settings)
    assert deleted not in after
    assert [one.tags for one in after[cut][:3]] == ["LOST"] * 3
    assert after[cut][3:] == before[cut][3:]
    assert [(one.body, one.properties) for one in after[anew]] == [(b"other", {"KEYS": "key"})] * 5
    for place, messages in before.items():
        if place[0] not in (cut[0], deleted[0], anew[0]):
            assert after[place] == messages
    assert back["restored"]["queuesMadeAnew"] == [f"{anew[0]}-0"]
    gone = sum(len(found) for place, found in before.items() if place[0] in (deleted[0], anew[0]))
    assert back["restored"]["replacedMessages"] == gone + 3


def derived_of(store: Path) -> tuple[dict[str, bytes], list[bytes]]:
    """Return the queues of both kinds, and the index files, whose names are times."""
    found = {name: path.read_bytes() for name, path in files_of(store).items()}
    queues = {name: data for name, data in found.items() if "consumequeue/" in name}
    return queues, [data for name, data in sorted(found.items()) if name.startswith("index/")]


@pytest.mark.parametrize("is_deleted", [False, True])
def test_what_is_derived_is_made_anew_where_the_log_is_another(
    is_deleted: bool, tmp_path: Path
) -> None:
    """Batch queues are derived as all others are; kept ones would hide that others are missing."""
    case = GoldenCase("batch-queue", "5.5.0")
    plain, in_batches = "shop_audit_59", "stock_audit_1"
    made(case.store, tmp_path / "kafka", "kafka", topics=(plain, in_batches))
    store = KafkaStore(system_host(), str(tmp_path / "kafka"), KafkaOptions(node_id=1))
    if is_deleted:
        store.delete_topic(store.topics_by_name[in_batches])
    else:
        store.topics()[plain][0].delete_records(3)
    store.close()
    target, alone = tmp_path / "rocketmq", tmp_path / "alone"
    made(tmp_path / "kafka", target, "rocketmq", settings=case.settings)
    (alone / "config").mkdir(parents=True)
    shutil.copytree(target / "commitlog", alone / "commitlog")
    shutil.copy(target / "config" / "topics.json", alone / "config")
    RocketMQStore(system_host(), str(alone), RocketMQOptions(settings=case.settings)).close()
    assert derived_of(target) == derived_of(alone)
    before, after = (messages_of(home, case.settings) for home in (case.store, target))
    assert {place: len(found) for place, found in after.items()} == {
        place: len(found)
        for place, found in before.items()
        if not (is_deleted and place[0] == in_batches)
    }


def test_a_way_back_that_fails_is_gone_on_with(
    case: GoldenCase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both ways: what was made is not made again, and in the end nothing differs."""
    run_log, run_keep, seen = RestoreLogTask.run, KeepLogTask.run, list[int]()

    def failing(task: Any, attempt: Any) -> Any:
        seen.append(task.number)
        if len(seen) == 2:
            raise OSError("the disk is full")
        return run_keep(task, attempt) if isinstance(task, KeepLogTask) else run_log(task, attempt)

    monkeypatch.setattr(KeepLogTask, "run", failing)
    monkeypatch.setattr(RestoreLogTask, "run", failing)
    ways = (
        (case.store, tmp_path / "kafka", "kafka", {"topics": topics_of(case)}),
        (tmp_path / "kafka", tmp_path / "rocketmq", "rocketmq", {"settings": case.settings}),
    )
    for source, target, layout, wishes in ways:
        seen.clear()
        with pytest.raises(OSError, match="full"):
            made(source, target, layout, **wishes)
        assert not target.exists()
        made(source, target, layout, **wishes)
        assert seen[0] not in seen[1:]
        assert seen[2] == seen[1]
    assert differing(files_of(case.store), files_of(tmp_path / "rocketmq")) == []


def test_what_cannot_be_preserved_is_refused(case: GoldenCase, tmp_path: Path) -> None:
    """Parts of batches, files of rows, and sizes of files that are not those of the old store."""
    for wishes in (
        {"starting_timestamp_ms": 5},
        {"ending_timestamp_ms": 5},
        {"mode": "dropmalformed"},
    ):
        with pytest.raises(OptionError, match="--preserve"):
            made(case.store, tmp_path / "kafka", "kafka", **wishes)
    with pytest.raises(OptionError, match="no way back"):
        made(case.store, tmp_path / "rows", "parquet")
    made(case.store, tmp_path / "kafka", "kafka", topics=topics_of(case)[:1])
    for settings in ({"mappedFileSizeCommitLog": "123456"}, {"maxIndexNum": "77"}):
        with pytest.raises(OptionError, match=next(iter(settings))):
            made(tmp_path / "kafka", tmp_path / "rocketmq", "rocketmq", settings=settings)
    assert not (tmp_path / "rocketmq").exists()
