"""Messages that real brokers stored: read as clients saw them, and written again byte by byte."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from logstore.segments.rocketmq.messages.dispatch_request import (
    DispatchRequest,
    read_dispatch_request,
)
from logstore.segments.rocketmq.messages.java_strings import java_hash_map_order
from logstore.segments.rocketmq.messages.message import Message, decode_message, encode_message
from logstore.segments.rocketmq.messages.message_batch import decode_batch_body
from logstore.segments.rocketmq.messages.message_draft import draft_message
from logstore.segments.rocketmq.messages.properties import (
    CRC32_BYTES,
    HASH_MAP_CAPACITY_4,
    HASH_MAP_CAPACITY_5,
    parse_properties,
)
from logstore.segments.rocketmq.messages.system_flags import COMPRESSED, INNER_BATCH
from tests.segments.rocketmq.golden_case import GoldenCase, golden_cases, stored_cases
from tests.segments.rocketmq.golden_records import ids_of, stored_records, stores

STORES = stores()
CASES = [case for case in stored_cases() if case.name != "compaction"]


def decoded(store: Path) -> dict[int, Message]:
    """Return every message of a store by its physical offset."""
    return {record.physical_offset: decode_message(record.data) for record in stored_records(store)}


@pytest.mark.parametrize(("case", "store"), STORES, ids=ids_of(STORES))
def test_every_golden_record_is_written_again_byte_by_byte(case: GoldenCase, store: Path) -> None:
    """Decoded and encoded, decoded and drafted anew: both ways give the bytes that stood there."""
    count = 0
    for record in stored_records(store):
        message = decode_message(record.data)
        assert message.physical_offset == record.physical_offset
        assert message.size_bytes == len(record.data)
        assert encode_message(message) == record.data
        has_crc = "__CRC32#" in message.properties
        text = message.properties_text[:-CRC32_BYTES] if has_crc else message.properties_text
        draft = draft_message(
            topic=message.topic,
            body=message.body,
            queue_id=message.queue_id,
            properties_text=text,
            flag=message.flag,
            sys_flag=message.sys_flag,
            born_timestamp_ms=message.born_timestamp_ms,
            born_host=message.born_host,
            store_host=message.store_host,
            reconsume_times=message.reconsume_times,
            prepared_transaction_offset=message.prepared_transaction_offset,
            has_property_crc=has_crc,
        )
        assert draft.size_bytes == len(record.data)
        draft.stamp(message.queue_offset, message.store_timestamp_ms)
        entry = draft.stamped(record.physical_offset)
        assert entry.data == record.data
        assert entry.next_offset == record.physical_offset + len(record.data)
        count += 1
    assert count > 3


@pytest.mark.parametrize(("case", "store"), STORES, ids=ids_of(STORES))
def test_dispatch_requests_say_what_the_messages_say(case: GoldenCase, store: Path) -> None:
    """The short way to a request and the whole decoder agree on every field that both know."""
    for record in stored_records(store):
        message = decode_message(record.data)
        request = read_dispatch_request(record.data, verify_crc=True)
        assert isinstance(request, DispatchRequest)
        for name in (
            "topic",
            "queue_id",
            "physical_offset",
            "size_bytes",
            "store_timestamp_ms",
            "queue_offset",
            "sys_flag",
            "prepared_transaction_offset",
            "properties",
            "unique_key",
            "tags",
            "tags_code",
        ):
            assert getattr(request, name) == getattr(message, name), name
        assert request.keys == message.properties.get("KEYS", "")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_messages_are_read_as_the_java_client_read_them(case: GoldenCase) -> None:
    """Every field of every message in expected.jsonl stands in the record of its offset."""
    messages = decoded(case.store)
    checked = 0
    for expected in case.expected:
        message = messages[expected["commitLogOffset"]]
        if message.sys_flag & INNER_BATCH:
            check_item_of(message, expected)
        else:
            check(message, expected)
        checked += 1
    assert checked == len(case.expected) > 0


def check(message: Message, expected: dict[str, Any]) -> None:
    """Compare what the client returned with a record."""
    assert message.plain_body() == expected["body"]
    assert message.properties == expected["properties"]
    assert message.size_bytes == expected["storeSize"]
    assert message.body_crc == expected["bodyCRC"]
    assert message.flag == expected["flag"]
    # The client of 5.x says no more that a body was compressed, once it unpacked it.
    assert message.sys_flag & ~COMPRESSED == expected["sysFlag"] & ~COMPRESSED
    assert message.born_timestamp_ms == expected["bornTimestamp"]
    assert message.store_timestamp_ms == expected["storeTimestamp"]
    assert same_host(str(message.born_host), expected["bornHost"])
    assert same_host(str(message.store_host), expected["storeHost"])
    assert message.reconsume_times == expected["reconsumeTimes"]
    assert message.prepared_transaction_offset == expected["preparedTransactionOffset"]
    assert message.offset_message_id == expected["offsetMsgId"]
    if "INNER_MULTI_DISPATCH" not in expected["properties"]:  # a light queue counts its own way
        assert message.topic == expected["topic"]
        assert message.queue_id == expected["queueId"]
        assert message.queue_offset == expected["queueOffset"]


def same_host(ours: str, theirs: str) -> bool:
    """Tell whether two spellings are one address; Java writes all digits of IPv6."""
    host, _, port = theirs.rpartition("/")[2].rpartition(":")
    plain = ":".join(part.lstrip("0") or "0" for part in host.strip("[]").split(":"))
    other, _, other_port = ours.rpartition(":")
    return port == other_port and (host == other or plain == expanded(other.strip("[]")))


def expanded(host: str) -> str:
    """Return an IPv6 address with all of its eight groups."""
    head, _, tail = host.partition("::")
    first, last = head.split(":") if head else [], tail.split(":") if tail else []
    return ":".join([*first, *["0"] * (8 - len(first) - len(last)), *last])


def check_item_of(batch: Message, expected: dict[str, Any]) -> None:
    """Compare what the client unwrapped from an inner batch with an item of its body."""
    items = decode_batch_body(batch.body)
    index: int = expected["queueOffset"] - int(batch.properties["INNER_BASE"])
    item = items[index]
    assert int(batch.properties["INNER_NUM"]) == len(items)
    assert item.body == expected["body"]
    assert parse_properties(item.properties_text).items() <= expected["properties"].items()


SINGLE = golden_cases("plain", "groups", "delay", "filters", "flush-sync", "ipv6")


@pytest.mark.parametrize("case", SINGLE, ids=lambda case: case.id)
def test_stored_properties_have_the_order_of_a_java_hash_map(case: GoldenCase) -> None:
    """What a broker wrote is what its hash map yields: 16 buckets in 4.9.8, 128 in 5.5.0."""
    capacity = HASH_MAP_CAPACITY_4 if case.version == "4.9.8" else HASH_MAP_CAPACITY_5
    seen = [tuple(message.properties) for message in decoded(case.store).values()]
    assert [java_hash_map_order(names, capacity) for names in seen] == seen
    if case.name == "delay":  # enough names to tell the two capacities apart
        other = HASH_MAP_CAPACITY_4 + HASH_MAP_CAPACITY_5 - capacity
        assert [java_hash_map_order(names, other) for names in seen] != seen


@pytest.mark.parametrize("case", golden_cases("plain"), ids=lambda case: case.id)
def test_whether_properties_end_with_a_separator_is_the_versions_choice(case: GoldenCase) -> None:
    """4.9.8 leaves the last one out, 5.5.0 writes it."""
    ends = {message.properties_text[-1:] == b"\x02" for message in decoded(case.store).values()}
    assert ends == {case.version == "5.5.0"}
