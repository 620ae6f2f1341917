"""Rows that are packed into batches by loops: the same as one by one."""

from __future__ import annotations

import importlib
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logstore.compat.spark import row_staging, store_commit
from logstore.compat.spark.option_values import OptionError
from logstore.compat.spark.partitioning import murmur2
from logstore.compat.spark.row_batches import StagedBatch, packed_rows
from logstore.compat.spark.row_columns import RowColumns, is_packable
from logstore.compat.spark.row_kernel import hash_keys
from logstore.compat.spark.row_places import RowPlaces
from logstore.compat.spark.row_rules import RowRules
from logstore.compat.spark.row_staging import Staging
from logstore.compat.spark.staged_file import StagedFile
from logstore.errors import RejectedAppendError
from logstore.os_host import system_host
from logstore.partition import Record
from logstore.segments.compiled.reused_memory import ReusedMemory
from logstore.segments.kafka.store import KafkaStore
from tests.compat.spark.test_writing import commit_to, staged_by

pytest.importorskip("pyarrow", reason="pyarrow is missing: extra `columns`")
pa: Any = importlib.import_module("pyarrow")
np: Any = importlib.import_module("numpy")

RULES = RowRules("kafka", 0)
T = datetime(2024, 5, 1, tzinfo=UTC)
NOW_MS = 1_714_521_600_123
ROW = st.fixed_dictionaries(
    {
        "key": st.none() | st.binary(max_size=70),
        "value": st.none() | st.binary(max_size=200),
        "topic": st.sampled_from(["t", "u", "v"]),
        "partition": st.none() | st.integers(0, 2),
        "headers": st.none()
        | st.lists(
            st.fixed_dictionaries({"key": st.text(max_size=5), "value": st.none() | st.binary()}),
            max_size=3,
        ),
        "timestamp": st.none()
        | st.integers(0, 10**12).map(lambda us: T + timedelta(microseconds=us)),
    }
)
HEADERS: Any = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
KINDS: dict[str, Any] = {
    "key": pa.binary(),
    "value": pa.binary(),
    "topic": pa.string(),
    "partition": pa.int32(),
    "headers": HEADERS,
    "timestamp": pa.timestamp("us", tz="UTC"),
}


def batch_of(rows: list[dict[str, Any]], **kinds: Any) -> Any:
    """Return rows as Spark hands them over, with columns of these types."""
    schema = pa.schema(list(kinds.items()))
    return pa.RecordBatch.from_pylist(rows, schema=schema)


def places_of(topic: str | None = None) -> RowPlaces:
    """Return topics of which one has two partitions, and others three."""
    return RowPlaces(topic, {"u": 2}, 3, RULES)


def packed(batch: Any, places: RowPlaces) -> dict[tuple[str, int], list[Record]]:
    """Return where the rows go, packed by loops."""
    found: dict[tuple[str, int], list[Record]] = {}
    for place, one in packed_rows(RowColumns.of(batch, NOW_MS), places, ReusedMemory()):
        records = one.records()
        assert len(records) == len(one)
        found.setdefault(place, []).extend(record._replace(offset=-1) for record in records)
    return found


def one_by_one(batch: Any, places: RowPlaces) -> dict[tuple[str, int], list[Record]]:
    """Return where the rows go, one after the other."""
    staging: Any = Staging("unused", "kafka", places, RULES)
    found: dict[tuple[str, int], list[Record]] = {}
    for place, record in staging._records(batch, NOW_MS):
        found.setdefault(place, []).append(record)
    return found


@given(keys=st.lists(st.binary(max_size=40), max_size=20))
def test_the_loop_hashes_as_kafka_does(keys: list[bytes]) -> None:
    """Whatever is left over after words of four bytes."""
    sizes = np.array([len(key) for key in keys], np.int64)
    starts = np.cumsum(sizes) - sizes
    hashes = np.empty(len(keys), np.int64)
    hash_keys(np.frombuffer(b"".join(keys), np.uint8), starts, sizes, hashes)
    assert hashes.tolist() == [murmur2(key) & 0x7FFF_FFFF for key in keys]


@given(rows=st.lists(ROW, min_size=1, max_size=60), start=st.integers(0, 5))
def test_rows_are_the_same_as_one_by_one(rows: list[dict[str, Any]], start: int) -> None:
    """Nulls, partitions named or not, times with microseconds; also of a part of a batch."""
    for row in rows:
        if row["topic"] == "u" and row["partition"] == 2:
            row["partition"] = 1
    batch = batch_of(rows, **KINDS).slice(min(start, len(rows) - 1))
    assert is_packable(batch)
    assert packed(batch, places_of()) == one_by_one(batch, places_of())


@given(rows=st.lists(ROW, min_size=1, max_size=40))
def test_columns_may_be_missing(rows: list[dict[str, Any]]) -> None:
    """All but the value; the option says the topic."""
    batch = batch_of(rows, value=pa.large_binary())
    assert packed(batch, places_of("t")) == one_by_one(batch, places_of("t"))


def test_texts_are_their_bytes() -> None:
    """Keys and values of Spark's type string, of either width."""
    rows = [{"key": f"k{number}", "value": "\u00e4" * number} for number in range(20)]
    for kind in (pa.string(), pa.large_string()):
        batch = batch_of(rows, key=kind, value=kind)
        assert packed(batch, places_of("t")) == one_by_one(batch, places_of("t"))


def test_sizes_of_every_length_of_a_varint() -> None:
    """Records whose lengths take one byte, two, three and four."""
    rows = [{"key": bytes(size), "value": bytes(size)} for size in (0, 63, 64, 8191, 8192, 1 << 20)]
    batch = batch_of(rows, key=pa.binary(), value=pa.binary())
    assert packed(batch, places_of("t")) == one_by_one(batch, places_of("t"))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"value": b"a", "topic": None}], "must be given where rows have no topic"),
        ([{"value": b"a", "topic": "a b"}], "can be no topic"),
        ([{"value": b"a", "topic": "u", "partition": 2}], "u has 2 partitions"),
        ([{"value": b"a", "topic": "t", "partition": -1}], "t has 3 partitions"),
    ],
)
def test_what_goes_nowhere_is_refused(rows: list[dict[str, Any]], message: str) -> None:
    """In the words of rows one by one."""
    batch = batch_of(rows, value=pa.binary(), topic=pa.string(), partition=pa.int32())
    for way in (packed, one_by_one):
        with pytest.raises(OptionError, match=message):
            way(batch, places_of())


def test_headers_may_be_in_any_part_of_their_arrays() -> None:
    """Of a slice; a row without any whose place in the arrays is not empty; wide lists."""
    rows: list[dict[str, Any]] = [
        {"value": b"a", "headers": [{"key": "h", "value": b"x"}] * number} for number in range(5)
    ]
    batch = batch_of(rows, value=pa.binary(), headers=HEADERS).slice(1)
    found = one_by_one(batch, places_of("t"))
    assert packed(batch, places_of("t")) == found
    assert {len(record.headers) for part in found.values() for record in part} == {1, 2, 3, 4}

    column = batch_of(rows[1:], value=pa.binary(), headers=HEADERS).column("headers")
    mask = pa.array([False, True, False, False])
    holed = pa.ListArray.from_arrays(column.offsets, column.values, mask=mask)
    batch = pa.RecordBatch.from_arrays([batch.column("value"), holed], ["value", "headers"])
    assert packed(batch, places_of("t")) == one_by_one(batch, places_of("t"))

    wide = holed.cast(pa.large_list(HEADERS.value_type))
    batch = pa.RecordBatch.from_arrays([batch.column("value"), wide], ["value", "headers"])
    assert packed(batch, places_of("t")) == one_by_one(batch, places_of("t"))


@pytest.mark.parametrize("headers", [[None], [{"key": None, "value": b"x"}]])
def test_a_header_without_a_key_is_refused(headers: list[Any]) -> None:
    """Among others that have one; but none of a row whose headers are null."""
    rows: list[dict[str, Any]] = [{"value": b"a", "headers": [{"key": "h", "value": b"x"}]}]
    rows += [{"value": b"b", "headers": headers}]
    batch = batch_of(rows, value=pa.binary(), headers=HEADERS)
    for way in (packed, one_by_one):
        with pytest.raises(RejectedAppendError, match="a header must have a key"):
            way(batch, places_of("t"))


def test_times_of_no_zone_are_looked_at_one_by_one() -> None:
    """Python knows which zone this machine is in."""
    rows = [{"value": b"a", "timestamp": datetime(2024, 1, 1)}]
    assert not is_packable(batch_of(rows, value=pa.binary(), timestamp=pa.timestamp("us")))


def test_many_rows_are_stored_as_few_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same records in the same partitions, whichever way they were staged."""
    rows = [{"key": b"k%d" % (number % 91), "value": b"v%d" % number} for number in range(5000)]
    commit_one, commit_many = commit_to(tmp_path / "one"), commit_to(tmp_path / "many")
    file = staged_by(commit_many, rows)
    assert all(isinstance(portion, StagedBatch) for _, portion in StagedFile(file).portions())
    commit_many.commit([file])
    monkeypatch.setattr(row_staging, "_PACKED_ROWS_MIN", 1 << 30)
    commit_one.commit([staged_by(commit_one, rows)])
    found = [records_of(tmp_path / name) for name in ("one", "many")]
    assert found[0] == found[1]
    assert sum(map(len, found[1])) == 5000


def records_of(path: Path) -> list[list[tuple[Any, ...]]]:
    """Return offset, key and value of all records of topic t."""
    store = KafkaStore(system_host(), str(path))
    found = [
        [(one.offset, one.key, one.value) for one in partition.read_records(0, 10**6)]
        for partition in store.topics()["t"].values()
    ]
    store.close()
    return found


def test_a_topic_of_small_batches_gets_small_ones(tmp_path: Path) -> None:
    """What was packed is more than its messages may have: it is taken apart."""
    commit = commit_to(tmp_path / "store", **{"set.max.message.bytes": "2000"})
    rows = [{"key": b"k", "value": b"%05d" % number * 20} for number in range(5000)]
    commit.commit([staged_by(commit, rows)])
    values = [value for part in records_of(tmp_path / "store") for _, _, value in part]
    assert values == [row["value"] for row in rows]


def test_a_job_of_batches_is_finished_where_it_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No record twice, and none lost."""
    commit = commit_to(tmp_path / "store")
    rows = [{"key": b"k%d" % number, "value": b"v%d" % number * 30} for number in range(6000)]
    file = staged_by(commit, rows)
    module: Any = store_commit
    append, made = module._append_portion, iter(range(1000))

    def dying(*given: Any, **more: Any) -> None:
        if next(made) == 2:
            raise KeyboardInterrupt
        append(*given, **more)

    with monkeypatch.context() as patch:
        patch.setattr(module, "_append_portion", dying)
        with pytest.raises(KeyboardInterrupt):
            commit.commit([file])
    commit_to(tmp_path / "store").finish_last()
    values = [value for part in records_of(tmp_path / "store") for _, _, value in part]
    assert sorted(map(str, values)) == sorted(str(row["value"]) for row in rows)
