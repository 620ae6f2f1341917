"""Rows that are packed into messages by loops: the same as one by one."""

from __future__ import annotations

import importlib
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logstore.compat.spark import row_staging, store_commit
from logstore.compat.spark.partitioning import rocketmq_queue
from logstore.compat.spark.row_columns import RowColumns
from logstore.compat.spark.row_messages import StagedDraft, StagedMessages, packed_messages
from logstore.compat.spark.row_places import RowPlaces
from logstore.compat.spark.row_rules import RowRules
from logstore.compat.spark.row_staging import Staging
from logstore.compat.spark.staged_file import StagedFile
from logstore.compat.spark.store_commit import StoreCommit
from logstore.compat.spark.write_options import parse_write_options
from logstore.errors import LogStoreError, RejectedAppendError
from logstore.os_host import system_host
from logstore.partition import Record
from logstore.segments.compiled.reused_memory import ReusedMemory
from logstore.segments.rocketmq.store import RocketMQStore, StoreOptions
from tests.compat.spark.test_row_batches import HEADERS, KINDS, NOW_MS, batch_of
from tests.compat.spark.test_writing import SMALL, commit_to, staged_by, stored

pytest.importorskip("pyarrow", reason="pyarrow is missing: extra `columns`")
pa: Any = importlib.import_module("pyarrow")

RULES = RowRules("rocketmq", 4 * 1024 * 1024)
T = datetime(2024, 5, 1, tzinfo=UTC)
TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\x01\x02"), min_size=1, max_size=9)
NAME = st.sampled_from(["TAGS", "KEYS", "UNIQ_KEY", "a", "DELAY"]) | TEXT
ROW = st.fixed_dictionaries(
    {
        "key": st.none() | TEXT.map(str.encode),
        "value": st.none() | st.binary(max_size=200),
        "topic": st.sampled_from(["t", "u", "v" * 127]),
        "partition": st.none() | st.integers(0, 1),
        "timestamp": st.none()
        | st.integers(-(10**12), 10**12).map(lambda us: T + timedelta(microseconds=us)),
        "headers": st.none()
        | st.lists(st.fixed_dictionaries({"key": NAME, "value": TEXT.map(str.encode)}), max_size=4),
    }
)
SETTINGS = {name.removeprefix("set."): value for name, value in SMALL.items()}


def places_of(topic: str | None = None) -> RowPlaces:
    """Return topics of which one has two queues, and others three."""
    return RowPlaces(topic, {"u": 2}, 3, RULES)


def packed(batch: Any, places: RowPlaces) -> dict[tuple[str, int], list[Record]]:
    """Return where the rows go, packed by loops."""
    found: dict[tuple[str, int], list[Record]] = {}
    portions = packed_messages(RowColumns.of(batch, NOW_MS), places, RULES, ReusedMemory())
    assert portions is not None
    for place, one in portions:
        records = one.records()
        assert len(records) == len(one)
        found.setdefault(place, []).extend(record._replace(offset=-1) for record in records)
    return found


def one_by_one(batch: Any, places: RowPlaces) -> dict[tuple[str, int], list[Record]]:
    """Return where the rows go, one after the other, as they are once they are stored."""
    staging: Any = Staging("unused", "rocketmq", places, RULES)
    found: dict[tuple[str, int], list[Record]] = {}
    for place, record in staging._records(batch, NOW_MS):
        properties = {header.name: header for header in record.headers}
        key = record.key
        if "KEYS" in properties:
            key = properties.pop("KEYS").value
        kept = tuple(properties.values())
        whole = record._replace(key=key, value=record.value or b"", headers=kept)
        found.setdefault(place, []).append(whole)
    return found


@given(rows=st.lists(ROW, min_size=1, max_size=40), start=st.integers(0, 5))
def test_rows_are_the_same_as_one_by_one(rows: list[dict[str, Any]], start: int) -> None:
    """Texts in any alphabet, names that come twice, queues named or not; also of a part."""
    batch = batch_of(rows, **KINDS).slice(min(start, len(rows) - 1))
    assert packed(batch, places_of()) == one_by_one(batch, places_of())


def test_keys_lead_where_javas_hash_does() -> None:
    """The smallest of all hashes, too, whose amount is no int of Java."""
    keys = ["polygenelubricants", "k", "\u00e4\u20ac", "\U0001f600" * 3]
    batch = batch_of([{"key": key, "value": b"v"} for key in keys], key=pa.string(),
                     value=pa.binary())  # fmt: skip
    found = packed(batch, places_of("t"))
    assert {
        (record.key or b"").decode(): queue for (_, queue), part in found.items() for record in part
    } == {key: rocketmq_queue(key.encode(), 3) for key in keys}


@pytest.mark.parametrize(
    "row",
    [
        {"key": b"\xff"},
        {"key": b""},
        {"key": b"a\x01"},
        {"key": b"a\x02b"},
        {"key": b"k" * 32_762},
        {"headers": [{"key": "a", "value": None}]},
        {"headers": [{"key": "a", "value": b""}]},
        {"headers": [{"key": "", "value": b"x"}]},
        {"headers": [{"key": "a\x01", "value": b"x"}]},
        {"headers": [{"key": "a", "value": b"\xff"}]},
        {"headers": [{"key": f"a{number}", "value": b"x" * 1000} for number in range(33)]},
        {"value": b"x" * (4 * 1024 * 1024 + 1)},
    ],
)
def test_what_can_be_no_message_is_refused(row: dict[str, Any]) -> None:
    """In the words of rows one by one, and before anything is put."""
    kinds = {"key": pa.binary(), "value": pa.binary(), "headers": HEADERS}
    batch = batch_of([{"value": b"a"}, {"value": b"a", **row}], **kinds)
    told: set[str] = set()
    for way in (packed, one_by_one):
        with pytest.raises(RejectedAppendError) as caught:
            way(batch, places_of("t"))
        told.add(str(caught.value))
    assert len(told) == 1


def test_properties_may_take_all_there_is() -> None:
    """As many bytes as the length in front of them can say."""
    batch = batch_of([{"key": b"k" * 32_761, "value": b"a"}], key=pa.binary(), value=pa.binary())
    assert packed(batch, places_of("t")) == one_by_one(batch, places_of("t"))


def test_what_may_be_more_than_a_message_goes_one_by_one() -> None:
    """A property by which a message would be several, or go to several queues."""
    rows = [{"value": b"a", "headers": [{"key": "INNER_NUM", "value": b"2"}]}]
    rows_of = RowColumns.of(batch_of(rows, value=pa.binary(), headers=HEADERS), NOW_MS)
    assert packed_messages(rows_of, places_of("t"), RULES, ReusedMemory()) is None


def test_a_body_that_is_damaged_is_no_batch() -> None:
    """What was staged is looked at before it goes into the log."""
    rows = [{"value": b"a%d" % number} for number in range(4)]
    portions = packed_messages(
        RowColumns.of(batch_of(rows, value=pa.binary()), NOW_MS), places_of("u"), RULES,
        ReusedMemory(),
    )  # fmt: skip
    assert portions is not None
    (place, messages), *_ = portions
    messages.data[3] += 1  # it is longer than it was
    draft = StagedDraft(place, messages, has_tag_keys=True)
    draft.stamp(0, NOW_MS)
    with pytest.raises(RejectedAppendError, match="staged messages are damaged"):
        draft.stamped(0)


# stores


def many_rows(count: int) -> list[dict[str, Any]]:
    """Return rows of all kinds; some with keys in two, tags, and in other letters."""
    return [
        {
            "key": (b"k%d other" if number % 7 else "\u00e4%d".encode()) % (number % 91),
            "value": b"v%d" % number * (number % 5),
            "headers": [{"key": "TAGS", "value": b"tag%d" % (number % 3)}] * (number % 2),
        }
        for number in range(count)
    ]


def in_bulk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have jobs of every size put as large ones are."""
    monkeypatch.setattr(store_commit, "bulk_bytes_min", lambda: 0)


def seen(path: Path) -> dict[str, list[Any]]:
    """Return what a store has: units, messages without their places, and who has a key."""
    store = RocketMQStore(system_host(), str(path), StoreOptions(False, settings=SETTINGS))
    found: dict[str, list[Any]] = {"codes": [], "messages": [], "keys": []}
    for index, queue in sorted(store.topics()["t"].items()):
        units = store.consume_queues.get("t", index)
        assert units is not None
        data = units.units(0, 100_000)
        found["codes"] += [data[at + 12 : at + 20] for at in range(0, len(data), 20)]
        assert hasattr(queue, "messages")
        found["messages"] += [
            (one.queue_id, one.queue_offset, one.body, one.body_crc, list(one.properties.items()),
             one.store_host, one.born_host, one.flag, one.sys_flag)
            for one in queue.messages(0, 100_000)
        ]  # fmt: skip
    for key in ("k3", "other", "\u00e414", "T#tag1"):
        result = store.query_message("t", key, 64, 0, 1 << 60)
        assert len(result.pieces) > 0
        found["keys"].append(len(result.pieces))
    store.close()
    return found


def test_many_rows_are_stored_as_few_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Queues, tags, keys of the index: whichever way they were staged, and put."""
    rows = many_rows(5000)
    commits = {name: commit_to(tmp_path / name, "rocketmq") for name in ("bulk", "taken", "one")}
    for name in ("taken", "bulk"):
        if name == "bulk":
            in_bulk(monkeypatch)
        file = staged_by(commits[name], rows)
        assert all(
            isinstance(portion, StagedMessages) for _, portion in StagedFile(file).portions()
        )
        commits[name].commit([file])
    monkeypatch.setattr(row_staging, "_PACKED_ROWS_MIN", 1 << 30)
    commits["one"].commit([staged_by(commits["one"], rows)])
    found = {name: seen(tmp_path / name) for name in commits}
    assert len(found["one"]["messages"]) == 5000
    assert found["one"] == found["taken"] == found["bulk"]


@pytest.mark.parametrize(
    "more",
    [
        {"set.maxMessageSize": "2000"},
        {"set.mappedFileSizeCommitLog": "65536"},
        {"set.enabledAppendPropCRC": "true"},
        {"set.enableLmq": "true", "set.enableMultiDispatch": "true"},
    ],
    ids=["small messages", "small files", "crc", "light queues"],
)
def test_a_store_that_wants_more_gets_them_one_by_one(
    more: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where what was packed is too much at once, or something is to be added to each."""
    in_bulk(monkeypatch)
    store = tmp_path / "store"
    given = {"path": str(store), "layout": "rocketmq"} | SMALL | more
    commit = StoreCommit(parse_write_options(given))
    rows = [{"key": b"k%d" % number, "value": b"v%d" % number * 20} for number in range(5000)]
    commit.commit([staged_by(commit, rows)])
    settings = dict(commit.options.settings)
    opened = RocketMQStore(system_host(), str(store), StoreOptions(False, settings=settings))
    queue = opened.topics()["t"][0]
    assert [one.value for one in queue.read_records(0, 10**6)] == [row["value"] for row in rows]
    opened.close()


def test_a_value_may_be_as_long_as_a_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its record is longer then: it is put by itself, and nothing of it is refused."""
    in_bulk(monkeypatch)
    commit = commit_to(tmp_path / "store", "rocketmq", **{"set.maxMessageSize": "300000"})
    rows = [{"value": b"x" * (300_000 if number == 7 else 3)} for number in range(5000)]
    commit.commit([staged_by(commit, rows)])
    found = [len(value or b"") for part in stored(tmp_path / "store", "rocketmq") for value in part]
    assert sorted(found) == [3] * 4999 + [300_000]


def test_a_job_of_messages_is_finished_where_it_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No message twice, and none lost, though it stopped inside of what was staged together."""
    in_bulk(monkeypatch)
    commit = commit_to(tmp_path / "store", "rocketmq")
    rows = [{"key": b"k%d" % number, "value": b"v%d" % number * 30} for number in range(6000)]
    file = staged_by(commit, rows)
    module: Any = store_commit
    append, made = module._append_portion, iter(range(1000))

    def dying(log: Any, portion: Any, passed: int, **more: Any) -> None:
        if next(made) == 2:
            log.append_records(portion.records()[:7])
            raise KeyboardInterrupt
        append(log, portion, passed, **more)

    with monkeypatch.context() as patch:
        patch.setattr(module, "_append_portion", dying)
        with pytest.raises(KeyboardInterrupt):
            commit.commit([file])
    commit_to(tmp_path / "store", "rocketmq").finish_last()
    found = [value for part in stored(tmp_path / "store", "rocketmq") for value in part]
    assert sorted(map(str, found)) == sorted(str(row["value"]) for row in rows)


def test_a_full_disk_is_no_word_of_the_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next writer puts what the store lacks."""
    in_bulk(monkeypatch)
    commit = commit_to(tmp_path / "store", "rocketmq")
    file = staged_by(commit, many_rows(6000))
    module: Any = store_commit
    with monkeypatch.context() as patch:
        queue: Any = module.RocketMQQueue
        append, made = queue.append_batch, iter(range(1000))

        def filled(log: Any, batch: Any) -> Any:
            if next(made) == 1:
                raise module.StorageError("the disk is full")
            return append(log, batch)

        patch.setattr(queue, "append_batch", filled)
        with pytest.raises(LogStoreError) as caught:
            commit.commit([file])
    assert "what the store lacks of the job the next writer appends" in caught.value.__notes__[0]
    commit.finish_last()
    assert sum(map(len, stored(tmp_path / "store", "rocketmq"))) == 6000
