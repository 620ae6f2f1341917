"""Batches of messages: a client's body, and the records that it becomes."""

from __future__ import annotations

from itertools import groupby

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logstore.errors import RejectedAppendError
from logstore.segments.rocketmq.messages.batch_columns import MalformedBatchError
from logstore.segments.rocketmq.messages.dispatch_request import (
    DispatchRequest,
    read_dispatch_request,
)
from logstore.segments.rocketmq.messages.host_address import HostAddress
from logstore.segments.rocketmq.messages.message import Message, decode_message, encode_message
from logstore.segments.rocketmq.messages.message_batch import (
    BatchItem,
    MessageBatchDraft,
    count_batch_items,
    decode_batch_body,
    draft_batch,
    encode_batch_body,
)
from logstore.segments.rocketmq.messages.message_draft import draft_message
from tests.segments.rocketmq.golden_case import GoldenCase, golden_cases
from tests.segments.rocketmq.golden_records import stored_records

BORN = HostAddress.of("10.0.0.5", 50000)
STORE = HostAddress.of("fd00::1", 10911)
_ANY_FLAG = st.integers(-(2**31), 2**31 - 1)
items_of_any_sizes = st.lists(
    st.builds(
        BatchItem,
        st.binary(max_size=60),
        st.one_of(st.binary(max_size=40), st.just(b"TAGS\x01TagA\x02UNIQ_KEY\x01u1")),
        _ANY_FLAG,
    ),
    min_size=1,
    max_size=5,
)


@st.composite
def items_alike(draw: st.DrawFn) -> list[BatchItem]:
    """Draw items of the same lengths, as most clients send them; flags may differ."""
    body_bytes, text_bytes = draw(st.integers(0, 20)), draw(st.integers(0, 20))
    flag = draw(st.one_of(st.just(_ANY_FLAG), _ANY_FLAG.map(st.just)))
    one = st.builds(
        BatchItem,
        st.binary(min_size=body_bytes, max_size=body_bytes),
        st.binary(min_size=text_bytes, max_size=text_bytes),
        flag,
    )
    return draw(st.lists(one, min_size=2, max_size=6))


items_of_batches = st.one_of(items_of_any_sizes, items_alike())


def drafted(items: list[BatchItem], **changes: object) -> MessageBatchDraft:
    """Return the draft of a batch."""
    fields: dict[str, object] = {
        "topic": "TopicTest",
        "queue_id": 3,
        "born_timestamp_ms": 1700000000000,
        "born_host": BORN,
        "store_host": STORE,
    }
    return draft_batch(body=encode_batch_body(items), **(fields | changes))  # type: ignore[arg-type]


@given(items_of_batches)
def test_a_batch_body_is_read_as_it_was_written(items: list[BatchItem]) -> None:
    """Bodies, properties and flags come back in order, and are counted."""
    body = encode_batch_body(items)
    assert decode_batch_body(body) == items
    assert count_batch_items(body) == len(items)


@given(items_of_batches, st.booleans(), st.sampled_from([b"", b"CLUSTER\x01c"]))
def test_a_batch_is_stored_as_its_messages_alone_would_be(
    items: list[BatchItem], has_property_crc: bool, shared: bytes
) -> None:
    """The records are those of single messages with consecutive queue and physical offsets."""
    batch = drafted(items, has_property_crc=has_property_crc, shared_properties=shared)
    batch.stamp(40, 1700000000123)
    entry = batch.stamped(5000)
    data = bytes(memoryview(entry.data))
    position = 0
    for index, item in enumerate(items):
        text = item.properties_text
        if text and shared and not text.endswith(b"\x02"):
            text += b"\x02"
        text += shared
        if has_property_crc and text and not text.endswith(b"\x02"):
            break  # in a batch Java puts no separator between them
        one = draft_message(
            topic="TopicTest",
            body=item.body,
            queue_id=3,
            properties_text=text,
            flag=item.flag,
            born_timestamp_ms=1700000000000,
            born_host=BORN,
            store_host=STORE,
            has_property_crc=has_property_crc,
        )
        one.stamp(40 + index, 1700000000123)
        expected = bytes(memoryview(one.stamped(5000 + position).data))
        assert data[position : position + len(expected)] == expected
        assert batch.physical_offsets[index] == 5000 + position
        position += len(expected)
    else:
        assert position == len(data)
    assert (batch.size_bytes, entry.next_offset) == (len(data), 5000 + len(data))
    assert batch.message_count == len(items)


@given(items_of_batches)
def test_requests_of_a_batch_are_those_of_its_records(items: list[BatchItem]) -> None:
    """Dispatched without being read again, a batch gives what reading it would give."""
    batch = drafted(items, sys_flag=2)
    batch.stamp(40, 1700000000123)
    data = batch.stamped(5000).data
    units = b""
    requests = batch.dispatch_requests()
    for request, physical_offset in zip(requests, batch.physical_offsets, strict=True):
        read = read_dispatch_request(data, physical_offset - 5000, verify_crc=True)
        assert isinstance(read, DispatchRequest)
        for name in DispatchRequest.__slots__:
            assert getattr(request, name) == getattr(read, name), name
        units += read.physical_offset.to_bytes(8) + read.size_bytes.to_bytes(4)
        units += read.tags_code.to_bytes(8, signed=True)
    assert batch.units() == units


@pytest.mark.parametrize(
    "body",
    [
        b"\0",
        bytes(19),
        encode_batch_body([BatchItem(b"a", b"b")])[:-1],
        encode_batch_body([BatchItem(b"a", b"b")]) + b"\0\0",
        (21).to_bytes(4) + bytes(12) + b"\xff\xff\xff\xff" + b"\0\0",
        (22).to_bytes(4) + bytes(12) + bytes(4) + b"\xff\xff",
        (9).to_bytes(4) + bytes(12) + b"\x7f\xff\xff\xff" + b"\0\0",
    ],
)
def test_a_malformed_body_is_refused(body: bytes) -> None:
    """Nothing is read over the end, and the item is named."""
    with pytest.raises(MalformedBatchError, match="the item at"):
        decode_batch_body(body)


@pytest.mark.parametrize("body", [b"\0\0\0\0", b"\xff\xff\xff\xff", b"\0\0\0\x05", b"\0"])
def test_sizes_that_lead_nowhere_are_refused(body: bytes) -> None:
    """Counting never loops and never leaves the body."""
    with pytest.raises(MalformedBatchError, match="the item at 0"):
        count_batch_items(body)


def test_too_long_properties_are_refused_when_they_are_stamped() -> None:
    """The store can see the size before it stamps, and gets an error if it did not look."""
    batch = drafted([BatchItem(b"", b"x" * 32766)], shared_properties=b"yy")
    assert batch.properties_size_bytes == 32769
    batch.stamp(0, 0)
    with pytest.raises(RejectedAppendError, match="32769 bytes"):
        batch.stamped(0)


#: the properties of the outer message of a batch in 4.9.8
SHARED = b"CLUSTER\x01DefaultCluster\x02WAIT\x01true"


def is_item(case: GoldenCase, message: Message) -> bool:
    """Tell whether a client's batch brought the message."""
    if case.version == "5.5.0":
        return "TRACE_ON" not in message.properties
    return message.properties_text.count(b"WAIT\x01") == 2


@pytest.mark.parametrize("case", golden_cases("properties"), ids=lambda case: case.id)
def test_golden_batches_are_written_again_byte_by_byte(case: GoldenCase) -> None:
    """What a client sent as a batch, drafted anew, gives the records that the broker wrote."""
    shared = SHARED if case.version == "4.9.8" else b""
    messages = [decode_message(record.data) for record in stored_records(case.store)]
    batches = groupby(
        (one for one in messages if is_item(case, one)),
        key=lambda one: (one.topic, one.queue_id, one.born_timestamp_ms, one.store_timestamp_ms),
    )
    sizes: list[int] = []
    for _, group in batches:
        batch = list(group)
        records = b"".join(encode_message(one) for one in batch)
        assert batch_written_again(batch, shared) == records
        sizes.append(len(batch))
    assert sum(size > 1 for size in sizes) >= 3


def batch_written_again(messages: list[Message], shared: bytes) -> bytes:
    """Return what the messages of a batch become when a client sends them again."""
    first = messages[0]
    cut = -len(shared) - 1 if shared else None
    batch = draft_batch(
        topic=first.topic,
        body=encode_batch_body(
            BatchItem(one.body, one.properties_text[:cut], one.flag) for one in messages
        ),
        queue_id=first.queue_id,
        born_timestamp_ms=first.born_timestamp_ms,
        born_host=first.born_host,
        store_host=first.store_host,
        sys_flag=first.sys_flag,
        shared_properties=shared,
    )
    batch.stamp(first.queue_offset, first.store_timestamp_ms)
    return bytes(memoryview(batch.stamped(first.physical_offset).data))


@pytest.mark.parametrize("case", golden_cases("batch-queue"), ids=lambda case: case.id)
def test_golden_inner_batches_are_taken_apart(case: GoldenCase) -> None:
    """The body of an inner batch is a run of whole items, as many as its property says."""
    seen = 0
    for record in stored_records(case.store):
        message = decode_message(record.data)
        request = read_dispatch_request(record.data)
        assert isinstance(request, DispatchRequest)
        if not message.sys_flag & 0x80:
            assert (request.message_base_offset, request.batch_size) == (-1, -1)
            continue
        items = decode_batch_body(message.body)
        assert encode_batch_body(items) == message.body
        assert count_batch_items(message.body) == len(items) == request.batch_size
        assert request.message_base_offset == int(message.properties["INNER_BASE"])
        seen += 1
    assert seen > 0
