"""Commit logs decoded to columns, and to Arrow."""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from pathlib import Path

import pytest

from logstore.errors import CorruptEntryError
from logstore.os_host import system_host
from logstore.segments.rocketmq.columns import (
    ARROW_FIELDS,
    MessageColumns,
    arrow_schema,
    decode_columns,
    iterate_columns,
    to_arrow,
)
from logstore.segments.rocketmq.messages.host_address import HostAddress
from logstore.segments.rocketmq.messages.message import Message, decode_message
from logstore.segments.rocketmq.messages.message_draft import blank_entry, draft_message
from tests.segments.rocketmq.golden_case import GoldenCase
from tests.segments.rocketmq.golden_records import ids_of, stored_records, stores

CASES = ("plain", "properties", "ipv6", "version-2", "transactions", "property-crc")
STORES = stores(*CASES)
HOST = HostAddress.of("10.0.0.5", 50000)


def record(body: bytes = b"hello", text: bytes = b"TAGS\x01TagA\x02") -> bytes:
    """Return a message's bytes."""
    one = draft_message(
        topic="t",
        body=body,
        queue_id=0,
        properties_text=text,
        born_timestamp_ms=1700000000000,
        born_host=HOST,
        store_host=HOST,
    )
    one.stamp(7, 1700000000123)
    return bytes(memoryview(one.stamped(4096).data))


def rows(columns: MessageColumns) -> list[tuple[object, ...]]:
    """Return what the columns say of each message."""
    arrays = (
        columns.physical_offset,
        columns.size_bytes,
        columns.queue_id,
        columns.queue_offset,
        columns.flag,
        columns.sys_flag,
        columns.born_timestamp_ms,
        columns.store_timestamp_ms,
        columns.reconsume_times,
        columns.prepared_transaction_offset,
        columns.body_crc,
        columns.tags_code,
    )
    lists: list[Iterable[object]] = [array.tolist() for array in arrays]
    lists += [columns.topic, columns.born_host, columns.store_host]
    lists += [columns.body, columns.properties_text]
    lists += [columns.tags, columns.keys, columns.unique_key]
    return list(zip(*lists, strict=True))


def row(message: Message) -> tuple[object, ...]:
    """Return the same of a decoded message."""
    texts = [message.properties.get(name) for name in ("TAGS", "KEYS", "UNIQ_KEY")]
    return (
        message.physical_offset,
        message.size_bytes,
        message.queue_id,
        message.queue_offset,
        message.flag,
        message.sys_flag,
        message.born_timestamp_ms,
        message.store_timestamp_ms,
        message.reconsume_times,
        message.prepared_transaction_offset,
        message.body_crc,
        message.tags_code,
        message.topic,
        str(message.born_host),
        str(message.store_host),
        message.body,
        message.properties_text,
        *(None if text is None else text.encode() for text in texts),
    )


@pytest.mark.parametrize(("case", "store"), STORES, ids=ids_of(STORES))
def test_columns_say_what_the_messages_say(case: GoldenCase, store: Path) -> None:
    """Every field of every golden message, read whole and in steps of odd sizes."""
    host = system_host()
    for path in sorted((store / "commitlog").iterdir()):
        expected = [
            row(decode_message(one.data)) for one in stored_records(store) if one.file == path
        ]
        whole = decode_columns(path.read_bytes(), str(path))
        assert rows(whole) == expected
        file = host.fs.open(str(path), writable=False)
        for step_bytes in (1, 1000, 30_000):
            found: list[tuple[object, ...]] = []
            for columns in iterate_columns(file, str(path), step_bytes=step_bytes):
                found += rows(columns)
            assert found == expected
        file.close()


def test_steps_go_on_where_the_last_one_ended(tmp_path: Path) -> None:
    """Positions count up to the end that was asked for; a step holds a message at least."""
    path = tmp_path / "00000000000000000000"
    path.write_bytes(
        record() * 5 + record(bytes(5000)) + bytes(memoryview(blank_entry(0, 64).data))
    )
    size_bytes = len(record())
    file = system_host().fs.open(str(path), writable=False)
    steps = list(iterate_columns(file, str(path), step_bytes=2 * size_bytes + 1))
    assert [len(step) for step in steps] == [2, 2, 1, 1]
    assert [step.next_position for step in steps[:3]] == [
        2 * size_bytes,
        4 * size_bytes,
        5 * size_bytes,
    ]
    some = list(iterate_columns(file, str(path), size_bytes, 3 * size_bytes))
    assert [(len(step), step.next_position) for step in some] == [(2, 3 * size_bytes)]
    file.close()


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (record().replace(b"hello", b"hellp"), "CRC"),
        (record()[:-3], "are there"),
        ((110).to_bytes(4) + record()[4:] + b"xyz", "parts end"),
        (record()[:4] + b"abcd" + record()[8:], "magic 61626364 is no message"),
    ],
)
def test_damage_is_told_with_file_and_position(tmp_path: Path, bad: bytes, reason: str) -> None:
    """Both ways refuse it; the messages in the steps before are there."""
    path = tmp_path / "00000000000000000000"
    path.write_bytes(record() + bad)
    at = len(record())
    with pytest.raises(CorruptEntryError, match=f"{path}: position {at}: .*{reason}"):
        decode_columns(path.read_bytes(), str(path))
    file = system_host().fs.open(str(path), writable=False)
    steps = iterate_columns(file, str(path), step_bytes=at)
    assert len(next(steps)) == 1
    with pytest.raises(CorruptEntryError, match=f"{path}: position {at}: .*{reason}"):
        next(steps)
    file.close()


def test_checksums_need_not_be_checked() -> None:
    """A body under a wrong CRC comes out if that was asked for."""
    columns = decode_columns(record().replace(b"hello", b"hellp"), verify_crc=False)
    assert list(columns.body) == [b"hellp"]


def test_what_was_never_written_ends_the_messages() -> None:
    """Zeros behind the last message are no damage, and neither is nothing at all."""
    assert len(decode_columns(record() + bytes(100))) == 1
    assert len(decode_columns(bytes(100))) == len(decode_columns(b"")) == 0


def test_arrow_gets_every_field() -> None:
    """Types are those of the schema, nulls are nulls, and the rows are the messages."""
    data = record() + record(b"", b"KEYS\x01a b\x02UNIQ_KEY\x01u") + record(b"x", b"TAGS\x01\xff")
    table = to_arrow(decode_columns(data))
    assert table.schema == arrow_schema()
    assert table.schema.names == list(ARROW_FIELDS)
    at = datetime.datetime(2023, 11, 14, 22, 13, 20, tzinfo=datetime.UTC)
    first = table.slice(0, 1).to_pylist()[0]
    assert first["store_timestamp"] - at == datetime.timedelta(milliseconds=123)
    assert first | {"store_timestamp": None} == {
        "topic": "t",
        "queue_id": 0,
        "queue_offset": 7,
        "physical_offset": 4096,
        "size_bytes": len(record()),
        "born_timestamp": at,
        "born_host": "10.0.0.5:50000",
        "store_timestamp": None,
        "store_host": "10.0.0.5:50000",
        "flag": 0,
        "sys_flag": 0,
        "reconsume_times": 0,
        "prepared_transaction_offset": 0,
        "body_crc": 907060870,
        "tags_code": 2598919,
        "tags": "TagA",
        "keys": None,
        "unique_key": None,
        "properties": b"TAGS\x01TagA\x02",
        "body": b"hello",
    }
    assert table["tags"].to_pylist() == ["TagA", None, "\ufffd"]
    assert table["keys"].to_pylist() == [None, "a b", None]
    assert table["unique_key"].to_pylist() == [None, "u", None]
    some = to_arrow(decode_columns(data), ("body", "topic"))
    assert some.to_pydict() == {"body": [b"hello", b"", b"x"], "topic": ["t"] * 3}
    with pytest.raises(KeyError, match="nothing"):
        to_arrow(decode_columns(data), ("nothing",))


@pytest.mark.parametrize("data", [b"", bytes(50)])
def test_no_messages_make_an_empty_table(data: bytes) -> None:
    """With all columns of their types."""
    table = to_arrow(decode_columns(data))
    assert (table.num_rows, table.schema) == (0, arrow_schema())
