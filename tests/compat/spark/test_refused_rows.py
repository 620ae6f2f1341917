"""Rows that a store does not take: told before anything is written, or undone."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from logstore.compat.spark.option_values import OptionError
from logstore.compat.spark.row_rules import check_columns
from logstore.compat.spark.store_commit import StoreCommit
from logstore.compat.spark.write_journal import WriteJournal
from logstore.errors import RejectedAppendError, StorageError, WriteFailedError
from logstore.segments.kafka.append_errors import MessageTooLargeError
from logstore.segments.kafka.partition import KafkaPartition
from logstore.segments.rocketmq.queue import RocketMQQueue
from tests.compat.spark.test_writing import commit_to, rows_of, staged_by, stored

types: Any = pytest.importorskip("pyspark.sql.types", reason="pyspark is missing: extra `spark`")

LARGE = 2_000_000


def found_in(path: Path, layout: str) -> list[bytes | None]:
    """Return the values of topic t in order."""
    return sorted((value for part in stored(path, layout) for value in part), key=str)


def refused_by(commit: StoreCommit, files: list[str], kind: type[Exception]) -> Exception:
    """Commit files that the store does not take, as Spark does; return the error."""
    with pytest.raises(kind) as caught:
        commit.commit(files)
    commit.remove(f"{commit.folder}/job")
    return caught.value


# what is told before anything is written


HEADER = types.StructType().add("key", "string").add("value", "binary")
HEADERS = types.ArrayType(HEADER)
HEADER_MAP = types.MapType(types.StringType(), types.StringType())


def schema_of(**columns: Any) -> Any:
    """Return columns of these names and types."""
    schema = types.StructType()
    for name, kind in columns.items():
        schema.add(name, kind)
    return schema


@pytest.mark.parametrize(
    "columns",
    [
        {"value": "binary"},
        {"key": "string", "value": "string", "partition": "integer", "timestamp": "timestamp"},
        {"value": "string", "headers": HEADERS, "timestampType": "integer", "offset": "long"},
    ],
)
def test_columns_that_the_reader_gives_are_taken(columns: dict[str, Any]) -> None:
    """And those of Spark's Kafka sink."""
    check_columns(schema_of(**columns), "t")
    check_columns(schema_of(**columns, topic="string"), None)


def test_the_type_of_a_topic_does_not_matter_where_the_option_goes_over_it() -> None:
    """The column is not looked at."""
    check_columns(schema_of(topic="integer", value="string"), "t")


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"value": "integer"}, "'value int' must be string or binary"),
        ({"key": "long", "value": "string"}, "'key bigint' must be string or binary"),
        ({"topic": "integer", "value": "string"}, "'topic int' must be string"),
        ({"value": "string", "partition": "string"}, "'partition string' must be int or"),
        ({"value": "string", "timestamp": "long"}, "'timestamp bigint' must be timestamp or"),
        ({"value": "string", "headers": HEADER_MAP}, "'headers map<string,string>' must be array"),
        ({"key": "string"}, "must be value and any of"),
        ({"value": "string", "more": "integer"}, "must be value and any of"),
        ({"value": "string"}, "option topic: None must be given"),
    ],
)
def test_columns_that_cannot_be_written_are_refused(columns: dict[str, Any], message: str) -> None:
    """By name and type, where the write begins: no task has run by then."""
    with pytest.raises(OptionError) as caught:
        check_columns(schema_of(**columns), None)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("layout", "topic"),
    [("kafka", "a b"), ("kafka", ".."), ("kafka", "x" * 250), ("rocketmq", "a.b"),
     ("rocketmq", " ")],
)  # fmt: skip
def test_a_topic_that_could_not_be_is_not_made(layout: str, topic: str, tmp_path: Path) -> None:
    """Its directory would keep the real broker from starting."""
    commit = commit_to(tmp_path / "store", layout)
    with pytest.raises(OptionError, match="can be no topic"):
        staged_by(commit, [{"value": b"a", "topic": topic}], None)


@pytest.mark.parametrize(
    "headers", [[None], [{"key": None, "value": b"x"}]], ids=["no header", "no key"]
)
@pytest.mark.parametrize("layout", ["kafka", "rocketmq"])
def test_headers_have_keys(layout: str, headers: list[Any], tmp_path: Path) -> None:
    """Neither layout could hold others."""
    with pytest.raises(RejectedAppendError, match="a header must have a key"):
        staged_by(commit_to(tmp_path / "store", layout), [{"value": b"a", "headers": headers}])


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"headers": [{"key": "a", "value": None}]}, "cannot be a property"),
        ({"headers": [{"key": "a", "value": b"\xff"}]}, "a property must be text"),
        ({"key": b"\xff"}, "a property must be text"),
        ({"value": b"x" * 2001}, "a value has 2001 bytes, 2000 are allowed"),
    ],
)
def test_what_can_be_no_message_fails_its_task(
    row: dict[str, Any], message: str, tmp_path: Path
) -> None:
    """A commit log could not take it back."""
    more = {"set.maxMessageSize": "2000"}
    commit = commit_to(tmp_path / "store", "rocketmq", **more)
    with pytest.raises(RejectedAppendError, match=message):
        staged_by(commit, [{"value": b"a", **row}])


# what the store refuses


def test_large_records_share_no_batch(tmp_path: Path) -> None:
    """As many go into one as the topic takes; the order stays."""
    commit = commit_to(tmp_path / "store", partitions="1")
    rows = [{"value": b"%d" % number * 600_000} for number in range(4)]
    commit.commit([staged_by(commit, rows)])
    assert stored(tmp_path / "store", "kafka") == [[row["value"] for row in rows]]


def test_a_record_that_is_too_large_undoes_the_job(tmp_path: Path) -> None:
    """Nothing of it is there, the store is as before, and the next job is taken."""
    commit = commit_to(tmp_path / "store")
    commit.commit([staged_by(commit, rows_of(range(5)))])
    files = [
        staged_by(commit, rows_of(range(5, 10))),
        staged_by(commit, [{"key": b"k", "value": bytes(LARGE)}]),
    ]
    refused_by(commit, files, MessageTooLargeError)
    assert not commit.folder.exists()
    assert found_in(tmp_path / "store", "kafka") == [b"v%d" % number for number in range(5)]
    commit.commit([staged_by(commit, rows_of(range(5, 7)))])
    assert found_in(tmp_path / "store", "kafka") == [b"v%d" % number for number in range(7)]


def test_what_cannot_be_undone_now_the_next_writer_undoes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that fails may fail at that, too."""
    commit = commit_to(tmp_path / "store")
    files = [
        staged_by(commit, rows_of(range(5))),
        staged_by(commit, [{"key": b"k", "value": bytes(LARGE)}]),
    ]

    def failing(self: KafkaPartition, offset: int) -> None:
        raise WriteFailedError(f"{self.topic}: cannot be cut at {offset}")

    with monkeypatch.context() as patch:
        patch.setattr(KafkaPartition, "truncate", failing)
        refused_by(commit, files, MessageTooLargeError)
    commit_to(tmp_path / "store").finish_last()
    assert found_in(tmp_path / "store", "kafka") == []
    assert WriteJournal(commit.folder).job() is None


def broken_after(calls: int, error: BaseException, patch: pytest.MonkeyPatch, kind: Any) -> None:
    """Let what appends to this kind of partition fail from some call on."""
    name = "append_produced" if kind is KafkaPartition else "append_records"
    append, made = getattr(kind, name), iter(range(1000))

    def failing(self: Any, *given: Any) -> Any:
        if next(made) >= calls:
            raise error
        return append(self, *given)

    patch.setattr(kind, name, failing)


def test_a_full_disk_undoes_a_job_on_a_kafka_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever writes the rows again has them once."""
    commit = commit_to(tmp_path / "store")
    files = [staged_by(commit, rows_of(range(start, start + 5))) for start in (0, 5)]
    with monkeypatch.context() as patch:
        broken_after(3, OSError(28, "No space left on device"), patch, KafkaPartition)
        refused_by(commit, files, OSError)
    commit.commit([staged_by(commit, rows_of(range(10)))])
    assert len(found_in(tmp_path / "store", "kafka")) == 10


def test_a_full_disk_leaves_a_job_on_a_commit_log_to_the_next_writer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The files stay though the job has failed, and the error says what becomes of them."""
    commit = commit_to(tmp_path / "store", "rocketmq")
    files = [staged_by(commit, rows_of(range(start, start + 5))) for start in (0, 5)]
    with monkeypatch.context() as patch:
        broken_after(3, WriteFailedError("full"), patch, RocketMQQueue)
        error = refused_by(commit, files, StorageError)
    assert "the next writer appends" in "".join(error.__notes__)
    next_one = commit_to(tmp_path / "store", "rocketmq")
    next_one.commit([staged_by(next_one, rows_of(range(10, 12)))])
    expected = sorted((b"v%d" % number for number in range(12)), key=str)
    assert found_in(tmp_path / "store", "rocketmq") == expected
    assert not any(Path(file).exists() for file in files)


def test_what_can_be_no_message_after_all_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would be refused for ever; the messages before it cannot be taken back."""
    commit = commit_to(tmp_path / "store", "rocketmq")
    files = [staged_by(commit, rows_of(range(start, start + 5))) for start in (0, 5)]
    with monkeypatch.context() as patch:
        broken_after(3, RejectedAppendError("no message"), patch, RocketMQQueue)
        error = refused_by(commit, files, RejectedAppendError)
    assert "the messages before it stand" in "".join(error.__notes__)
    assert not commit.folder.exists()
    assert 0 < len(found_in(tmp_path / "store", "rocketmq")) < 10


def test_a_job_whose_files_are_gone_is_undone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody tidied up behind a driver that died: the store is not lost for it."""
    commit = commit_to(tmp_path / "store")
    files = [staged_by(commit, rows_of(range(start, start + 5))) for start in (0, 5)]
    with monkeypatch.context() as patch:
        broken_after(3, KeyboardInterrupt(), patch, KafkaPartition)
        with pytest.raises(KeyboardInterrupt):
            commit.commit(files)
    shutil.rmtree(Path(files[0]).parent)
    next_one = commit_to(tmp_path / "store")
    next_one.commit([staged_by(next_one, rows_of(range(2)))])
    assert found_in(tmp_path / "store", "kafka") == [b"v0", b"v1"]
