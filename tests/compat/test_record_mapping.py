"""The mapping between records and messages: natural to read, and everything comes back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from logstore.compat import record_mapping
from logstore.compat.record_mapping import (
    STEERING,
    MappingError,
    message_parts,
    record_parts,
    restored_message,
    restored_record,
    stored_message,
)
from logstore.segments.kafka.record import Record
from logstore.segments.rocketmq.messages.message import Message, decode_message, encode_message
from tests.segments.rocketmq.golden_case import GoldenCase
from tests.segments.rocketmq.golden_records import stored_records

DATA = st.none() | st.binary(max_size=40) | st.text(max_size=10).map(str.encode)
NAMES = st.text(max_size=8) | st.sampled_from(("KEYS", "TAGS", "DELAY", "WAIT", "a"))
HEADERS = st.lists(st.tuples(NAMES, DATA), max_size=6).map(tuple)


def test_a_plain_record_is_a_plain_message() -> None:
    """Key, tags and headers stand under the names that RocketMQ's clients know; no rest."""
    record = Record(7, 1000, b"order-1", b"body", (("TAGS", b"vip"), ("trace", "\u00fc".encode())))
    parts, rest = message_parts(record)
    assert parts.body == b"body"
    assert dict(parts.properties) == {"KEYS": "order-1", "TAGS": "vip", "trace": "\u00fc"}
    assert rest is None


@pytest.mark.parametrize(
    "record",
    [
        Record(0, 0, None, None),
        Record(0, 0, b"", b""),
        Record(0, 0, b"\xff\x00", b"x"),
        Record(0, 0, b"a\x01b", b"x"),
        Record(0, 0, b"k", b"x", (("a", b"1"), ("a", b"2"))),
        Record(0, 0, b"k", b"x", (("a", None), ("b", b""), ("", b"z"))),
        Record(0, 0, b"k", b"x", (("KEYS", b"other"),)),
        Record(0, 0, b"k", b"x", (("a", b"\xfe"), ("b", b"2"))),
    ],
)
def test_what_a_message_cannot_hold_is_in_the_rest(record: Record) -> None:
    """Nulls, empty and binary keys, repeated, binary and nameless headers."""
    parts, rest = message_parts(record)
    assert rest is not None
    assert restored_record(parts, rest) == (record.key, record.value, record.headers)


@pytest.mark.parametrize("name", sorted(STEERING))
def test_no_header_steers_a_broker(name: str) -> None:
    """A header that is called like a property with a meaning does not become one."""
    record = Record(0, 0, b"k", b"x", ((name, b"5"), ("plain", b"1")))
    parts, rest = message_parts(record)
    assert dict(parts.properties) == {"KEYS": "k", "plain": "1"}
    assert restored_record(parts, rest)[2] == record.headers


@given(DATA, DATA, HEADERS)
def test_every_record_comes_back(
    key: bytes | None, value: bytes | None, headers: tuple[tuple[str, bytes | None], ...]
) -> None:
    """Key, value and headers in order, whatever they are."""
    parts, rest = message_parts(Record(3, 1000, key, value, headers))
    assert restored_record(parts, rest) == (key, value, headers)
    assert all(name and value for name, value in parts.properties.items())


def messages_of(name: str) -> Iterator[Message]:
    """Yield the messages of a golden commit log."""
    case, _, version = name.rpartition("-")
    return (decode_message(one.data) for one in stored_records(GoldenCase(case, version).store))


CASES = (
    "properties-4.9.8",
    "properties-5.5.0",
    "ipv6-5.5.0",
    "transactions-5.5.0",
    "delay-4.9.8",
    "batch-queue-5.5.0",
    "version-2-5.5.0",
)


@pytest.mark.parametrize("name", CASES)
def test_every_golden_message_comes_back_byte_by_byte(name: str) -> None:
    """Flags, hosts, times, the text of the properties, compressed bodies: the whole record."""
    count = 0
    for message in messages_of(name):
        record, rest = record_parts(message)
        again = restored_message(message.topic, message.queue_id, record, rest)
        again = attrs.evolve(again, physical_offset=message.physical_offset)
        assert encode_message(again) == encode_message(message)
        assert stored_message(
            message.topic, message.queue_id, record, rest, message.physical_offset
        ) == encode_message(message)
        assert (record.offset, record.timestamp_ms) == (
            message.queue_offset,
            message.born_timestamp_ms,
        )
        count += 1
    assert count > 5


def test_a_message_reads_naturally_in_kafka() -> None:
    """KEYS is the key, TAGS and the other properties are headers, the body is decompressed."""
    seen: list[Message] = []
    for message in messages_of("properties-5.5.0"):
        record, _ = record_parts(message)
        assert record.key == (message.properties.get("KEYS") or "").encode() or record.key is None
        assert record.value == message.plain_body()
        assert (dict(record.headers).get("TAGS") or b"").decode() == (message.tags or "")
        seen.append(message)
    assert any(message.is_compressed for message in seen)
    assert any(message.tags for message in seen)


@given(st.binary(max_size=60))
def test_a_damaged_rest_is_refused(damage: bytes) -> None:
    """By an error of ours, or it reads as some record: never by anything else."""
    parts, _ = message_parts(Record(0, 0, b"k", b"v"))
    message = decode_message(encode_message(next(iter(messages_of("plain-5.5.0")))))
    refused = 0
    for attempt in (b"K1" + damage, b"R1" + damage, damage):
        try:
            restored_record(parts, attempt)
        except MappingError:
            refused += 1
        try:
            restored_message("t", 0, record_parts(message)[0], attempt)
        except MappingError:
            refused += 1
        try:
            stored_message("t", 0, record_parts(message)[0], attempt, 0)
        except MappingError:
            refused += 1
    assert refused >= 5


def test_the_page_names_what_steers() -> None:
    """MAPPING.md lists the same names as the code."""
    page = Path(record_mapping.__file__).with_name("MAPPING.md").read_text()
    listed = page.split("Names that steer:\n")[1].split("\n\n")[0]
    assert {name.strip().strip("`") for name in listed.split(",")} == STEERING
