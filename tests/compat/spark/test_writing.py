"""Rows appended to stores: where they go, and that they go there once."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import attrs
import pytest

from logstore.compat.spark.option_values import OptionError
from logstore.compat.spark.partitioning import kafka_partition, murmur2, rocketmq_queue
from logstore.compat.spark.row_places import RowPlaces
from logstore.compat.spark.row_staging import Staging
from logstore.compat.spark.store_commit import StoreCommit
from logstore.compat.spark.write_journal import Job
from logstore.compat.spark.write_options import parse_write_options
from logstore.os_host import system_host
from logstore.partition import PartitionLog
from logstore.segments.kafka.store import KafkaStore
from logstore.segments.rocketmq.store import RocketMQStore
from logstore.segments.rocketmq.store import StoreOptions as RocketMQOptions

pytest.importorskip("pyarrow", reason="pyarrow is missing: extra `columns`")
pa: Any = importlib.import_module("pyarrow")

SMALL = {"set.mappedFileSizeCommitLog": "1048576", "set.maxHashSlotNum": "100"}


def commit_to(path: Path, layout: str = "kafka", **more: str) -> StoreCommit:
    """Return what appends to a store, new or not; topics get three partitions."""
    given = {"path": str(path), "layout": layout, "partitions": "3", **more}
    return StoreCommit(parse_write_options(given | (SMALL if layout == "rocketmq" else {})))


def staged_by(commit: StoreCommit, rows: list[dict[str, Any]], topic: str | None = "t") -> str:
    """Stage rows as one task does."""
    rules = commit.rules()
    places = RowPlaces(topic, commit.partition_counts(), commit.options.partition_count, rules)
    staging = Staging(f"{commit.folder}/job", commit.layout(), places, rules)
    return staging.stage([pa.RecordBatch.from_pylist(rows)])


def values(partitions: Iterable[PartitionLog]) -> list[list[bytes | None]]:
    """Return the values partition by partition."""
    return [[r.value for r in one.read_records(0, 10**6)] for one in partitions]


def stored(path: Path, layout: str) -> list[list[bytes | None]]:
    """Return the values of topic t."""
    store: KafkaStore | RocketMQStore
    if layout == "kafka":
        store = KafkaStore(system_host(), str(path))
    else:
        settings = {name.removeprefix("set."): value for name, value in SMALL.items()}
        options = RocketMQOptions(is_writable=False, settings=settings)
        store = RocketMQStore(system_host(), str(path), options)
    topics: Mapping[str, Mapping[int, PartitionLog]] = store.topics()
    found = values(partition for _, partition in sorted(topics["t"].items()))
    store.close()
    return found


def rows_of(numbers: Iterable[int]) -> list[dict[str, Any]]:
    """Return rows with a key each."""
    return [{"key": b"k%d" % number, "value": b"v%d" % number} for number in numbers]


@pytest.mark.parametrize(
    ("key", "hashed"),
    [(b"21", -973932308), (b"foobar", -790332482), (b"a-little-bit-long-string", -985981536),
     (b"a-little-bit-longer-string", -1486304829), (b"abc", 479470107)],
)  # fmt: skip
def test_kafkas_hash_of_keys(key: bytes, hashed: int) -> None:
    """The figures of Kafka's own test of Utils.murmur2."""
    assert murmur2(key) == hashed & 0xFFFF_FFFF


@pytest.mark.parametrize("layout", ["kafka", "rocketmq"])
def test_rows_go_where_the_clients_put_them(layout: str, tmp_path: Path) -> None:
    """By the hash of the key; in the order of the rows; the store is made if there is none."""
    commit = commit_to(tmp_path / "store", layout)
    commit.commit([staged_by(commit, rows_of(range(50)))])
    choose = kafka_partition if layout == "kafka" else rocketmq_queue
    expected: list[list[bytes | None]] = [[], [], []]
    for number in range(50):
        expected[choose(b"k%d" % number, 3)].append(b"v%d" % number)
    assert all(expected)
    assert stored(tmp_path / "store", layout) == expected


def test_a_row_may_name_its_partition_and_its_topic(tmp_path: Path) -> None:
    """A partition that there is not is refused before anything is written."""
    commit = commit_to(tmp_path / "store")
    commit.commit([staged_by(commit, [{"value": b"a", "topic": "t", "partition": 2}], None)])
    assert stored(tmp_path / "store", "kafka") == [[], [], [b"a"]]
    with pytest.raises(OptionError, match="t has 3 partitions"):
        staged_by(commit, [{"value": b"a", "partition": 3}])
    with pytest.raises(OptionError, match="topic"):
        staged_by(commit, [{"value": b"a"}], None)


def test_settings_are_known_in_any_case() -> None:
    """Spark hands the names of options over in small letters."""
    for name in ("set.mappedFileSizeCommitLog", "set.mappedfilesizecommitlog"):
        options = parse_write_options({"path": "p", name: "1048576", "set.segment.bytes": "9"})
        assert options.settings == {"mappedFileSizeCommitLog": "1048576", "segment.bytes": "9"}


def test_the_option_topic_goes_over_the_column(tmp_path: Path) -> None:
    """As in Spark's Kafka sink, which takes the rows of its source: offsets are made anew."""
    commit = commit_to(tmp_path / "store")
    row = {"value": b"a", "topic": "elsewhere", "partition": 1, "offset": 7, "timestampType": 1}
    commit.commit([staged_by(commit, [row])])
    assert stored(tmp_path / "store", "kafka") == [[], [b"a"], []]


@pytest.mark.parametrize("layout", ["kafka", "rocketmq"])
def test_tries_that_the_job_does_not_name_leave_nothing(layout: str, tmp_path: Path) -> None:
    """A task that ran twice is taken once."""
    commit = commit_to(tmp_path / "store", layout)
    first, second = staged_by(commit, rows_of(range(9))), staged_by(commit, rows_of(range(9)))
    assert first != second
    commit.commit([second])
    commit.remove(f"{commit.folder}/job")
    assert sum(map(len, stored(tmp_path / "store", layout))) == 9
    assert not commit.folder.exists()


@pytest.mark.parametrize("layout", ["kafka", "rocketmq"])
def test_a_driver_that_dies_while_appending_is_made_good(
    layout: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next writer appends what is missing, and no record twice."""
    commit = commit_to(tmp_path / "store", layout)
    files = [staged_by(commit, rows_of(range(start, start + 20))) for start in (0, 20, 40)]
    kind: Any = type(commit)
    append = kind._append

    def dying(self: StoreCommit, store: Any, job: Job) -> None:
        append(self, store, attrs.evolve(job, files=job.files[:2]))
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(StoreCommit, "_append", dying)
        with pytest.raises(KeyboardInterrupt):
            commit.commit(files, 0)
    commit_to(tmp_path / "store", layout).finish_last()
    found = stored(tmp_path / "store", layout)
    assert sorted(value or b"" for part in found for value in part) == sorted(
        b"v%d" % number for number in range(60)
    )


def test_a_batch_of_a_stream_is_taken_once(tmp_path: Path) -> None:
    """Spark commits the last one again after a restart; another stream has numbers of its own."""
    commit = commit_to(tmp_path / "store", writer="one")
    commit.commit([staged_by(commit, rows_of(range(5)))], 0)
    commit.commit([staged_by(commit, rows_of(range(5)))], 0)
    commit.commit([staged_by(commit, rows_of(range(5, 8)))], 1)
    other = commit_to(tmp_path / "store", writer="two")
    other.commit([staged_by(other, rows_of(range(8, 10)))], 0)
    assert sum(map(len, stored(tmp_path / "store", "kafka"))) == 10
