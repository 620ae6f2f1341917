"""What the compiled loops make is what is made record by record, or they leave it alone."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from logstore.compat.bridge.bridge import Bridge
from logstore.compat.bridge.compiled import loops
from logstore.compat.bridge.kafka_over_rocketmq.message_rows import encode_messages
from logstore.compat.bridge.kafka_over_rocketmq.queue_broker import QueueBroker
from logstore.compat.bridge.kafka_over_rocketmq.record_drafts import draft_records
from logstore.compat.bridge.late_loops import LateLoops, Loops
from logstore.compat.bridge.rocketmq_over_kafka.message_records import record_batch_of
from logstore.compat.bridge.rocketmq_over_kafka.record_messages import message_of
from logstore.segments.kafka.compression import Codec
from logstore.segments.kafka.record import Record, decode_records, encode_batch
from logstore.segments.kafka.record_batch import HEADER_BYTES, RecordBatch
from logstore.segments.kafka.record_run import decode_run
from logstore.segments.rocketmq.messages.host_address import HostAddress
from logstore.segments.rocketmq.messages.message_draft import MessageDraft, draft_message
from logstore.segments.rocketmq.messages.properties import encode_properties
from logstore.testing.simulated_host import SimulatedHost
from tests.compat.bridge.bridges import BORN, STORED, fetched, open_bridge, produce, pulled

HERE = HostAddress.of("10.0.0.1", 10911)
FAR = HostAddress.of("fd00::1", 10911)
NOW_MS = 1_700_000_000_000
TIMES = st.integers(NOW_MS - 10_000, NOW_MS + 10_000)
PLAIN_TEXT = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=8)
PLAIN_RECORDS = st.lists(
    st.tuples(TIMES, st.none() | PLAIN_TEXT.map(str.encode), st.binary(min_size=1, max_size=300)),
    min_size=1,
    max_size=20,
)
DATA = st.none() | st.binary(max_size=12) | PLAIN_TEXT.map(str.encode)
NAMES = PLAIN_TEXT | st.sampled_from(("KEYS", "TAGS", "DELAY", "")) | st.text(max_size=3)
ANY_RECORDS = st.lists(
    st.tuples(TIMES, DATA, DATA, st.lists(st.tuples(NAMES, DATA), max_size=4).map(tuple)),
    min_size=1,
    max_size=6,
)
PROPERTIES = st.dictionaries(PLAIN_TEXT | st.sampled_from(("KEYS", "TAGS")), PLAIN_TEXT, max_size=5)
ANY_TEXTS = st.binary(max_size=30) | PROPERTIES.map(encode_properties)


def batch_of(rows: list[tuple[int, bytes | None, bytes]], codec: Codec) -> RecordBatch:
    """Return the batch of records without headers."""
    records = [Record(at, time, key, value, ()) for at, (time, key, value) in enumerate(rows)]
    data = encode_batch(records, codec=codec)
    return RecordBatch(data, len(data))


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD])
@settings(max_examples=60, deadline=None)
@given(rows=PLAIN_RECORDS)
def test_plain_records_become_the_same_messages(
    codec: Codec, rows: list[tuple[int, bytes | None, bytes]]
) -> None:
    """Messages, units, sizes and dispatch requests are those of the way record by record."""
    batch = batch_of(rows, codec)
    expected = draft_records("orders", 3, decode_run(batch), HERE)
    found = loops.draft_batch("orders", 3, batch, HERE)
    assert found is not None
    for draft in (expected, found):
        draft.stamp(7, NOW_MS)
    assert bytes(found.stamped(1000).data) == bytes(expected.stamped(1000).data)
    assert found.units() == expected.units()
    assert found.size_bytes == expected.size_bytes
    assert found.body_size_bytes == expected.body_size_bytes
    assert found.properties_size_bytes >= expected.properties_size_bytes
    assert found.physical_offsets == expected.physical_offsets
    assert [
        (one.physical_offset, one.size_bytes, one.queue_offset, one.properties_text)
        for one in found.dispatch_requests()
    ] == [
        (one.physical_offset, one.size_bytes, one.queue_offset, one.properties_text)
        for one in expected.dispatch_requests()
    ]


@pytest.mark.parametrize(
    "record",
    [
        Record(0, NOW_MS, None, None, ()),
        Record(0, NOW_MS, None, b"", ()),
        Record(0, NOW_MS, b"", b"value", ()),
        Record(0, NOW_MS, b"two keys", b"value", ()),
        Record(0, NOW_MS, "größe".encode(), b"value", ()),
        Record(0, NOW_MS, b"a\x01b", b"value", ()),
        Record(0, NOW_MS, b"a\x02b", b"value", ()),
        Record(0, NOW_MS, b"k" * 2000, b"value", ()),
        Record(0, NOW_MS, None, b"value", (("color", b"blue"),)),
    ],
)
def test_other_records_are_left_alone(record: Record) -> None:
    """A batch with a record that is more than a value and a plain key is not taken."""
    data = encode_batch([record])
    assert loops.draft_batch("orders", 0, RecordBatch(data, len(data)), HERE) is None


@settings(max_examples=300, deadline=None)
@given(body=st.binary(max_size=80), count=st.integers(1, 5))
@example(body=b"\xff" * 30, count=1)
def test_bytes_that_are_no_records_are_left_alone(body: bytes, count: int) -> None:
    """Whatever stands where records should, nothing is read outside of it or made of it."""
    data = encode_batch([Record(at, NOW_MS, None, b"v", ()) for at in range(count)])
    made = bytes(data[:HEADER_BYTES]) + body
    batch = RecordBatch(made, len(made))
    draft = loops.draft_batch("orders", 0, batch, HERE)
    if draft is not None:
        assert draft.message_count == len(decode_run(batch))
    loops.stored_messages([batch], 0, ("orders", 0, 0), HERE)


def message(text: bytes, body: bytes, born_ms: int, hosts: HostAddress) -> MessageDraft:
    """Return a message with these properties."""
    return draft_message(
        topic="orders",
        body=body,
        queue_id=2,
        properties_text=text,
        born_timestamp_ms=born_ms,
        born_host=hosts,
        store_host=hosts,
    )


@settings(max_examples=150, deadline=None)
@given(rows=st.lists(st.tuples(ANY_TEXTS, st.binary(max_size=200), TIMES), min_size=1, max_size=8))
@example(rows=[(b"a\x01b\x02a\x01c\x02", b"x", NOW_MS)])
@example(rows=[(b"a\x01\x02", b"x", NOW_MS), (b"\x01b\x02", b"", NOW_MS - 1)])
def test_messages_become_the_same_batch(rows: list[tuple[bytes, bytes, int]]) -> None:
    """The batch of messages is that of the way message by message, whatever their properties."""
    pieces: list[bytes] = []
    for at, (text, body, born_ms) in enumerate(rows):
        draft = message(text, body, born_ms, HERE)
        draft.stamp(40 + at, NOW_MS)
        pieces.append(bytes(draft.stamped(sum(map(len, pieces))).data))
    data = b"".join(pieces)
    places = np.cumsum([0, *map(len, pieces[:-1])], dtype=np.int64)
    found = loops.encode_messages(data, places, len(data), 40)
    assert found is None or found == encode_messages(data, 40)


@settings(max_examples=60, deadline=None)
@given(
    rows=st.lists(
        st.tuples(PROPERTIES, st.binary(min_size=1, max_size=200), TIMES), min_size=1, max_size=8
    )
)
def test_plain_messages_are_taken(rows: list[tuple[dict[str, str], bytes, int]]) -> None:
    """ASCII properties of different names are no reason to go the long way, on either side."""
    stored: list[bytes] = []
    batches: list[RecordBatch] = []
    for at, (properties, body, born_ms) in enumerate(rows):
        draft = message(encode_properties(properties), body, born_ms, BORN)
        draft.stamp(at, NOW_MS)
        stored.append(bytes(draft.stamped(at).data))
        batch = record_batch_of(draft, NOW_MS)
        batches.append(RecordBatch(batch, len(batch)).stamped(at, 0))
    data = b"".join(stored)
    places = np.cumsum([0, *map(len, stored[:-1])], dtype=np.int64)
    assert loops.encode_messages(data, places, len(data), 0) is not None
    found = loops.stored_messages(batches, 0, ("orders", 2, 0), HERE)
    assert found is not None
    assert found[0] == data
    assert found[1] == list(range(len(rows)))


def told_one_by_one(data: bytes, host: HostAddress, first: int) -> list[tuple[int, bytes, int]]:
    """Return offset, stored form and tags code of each record, made one by one."""
    return [
        (record.offset, *message_of(record, "orders", 2, 5000 + record.offset, host))
        for record in decode_records(data)
        if record.offset >= first
    ]


@pytest.mark.parametrize("host", [HERE, FAR], ids=["IPv4", "IPv6"])
@settings(max_examples=200, deadline=None)
@given(rows=ANY_RECORDS, first=st.integers(0, 3))
def test_records_become_the_same_stored_messages(
    host: HostAddress,
    rows: list[tuple[int, bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]]],
    first: int,
) -> None:
    """What a pull gets of records is what it gets of each, whatever their keys and headers."""
    data = encode_batch([Record(at, *row) for at, row in enumerate(rows)])
    found = loops.stored_messages([RecordBatch(data, len(data))], first, ("orders", 2, 5000), host)
    if found is not None:
        joined, offsets, ends, tags_codes = found
        starts = [0, *ends]
        pieces = [joined[start:end] for start, end in zip(starts, ends, strict=False)]
        assert list(zip(offsets, pieces, tags_codes, strict=True)) == told_one_by_one(
            bytes(data), host, first
        )
    if all(
        (key is None or (key.isascii() and key.isalnum())) and not headers
        for _, key, _, headers in rows
    ):
        assert found is not None


def test_loops_are_loaded_once_there_is_enough_to_do() -> None:
    """Small batches never ask for them; after twenty thousand records in larger ones they come."""
    asked: list[Callable[[], None]] = []
    late = LateLoops(asked.append)
    for _ in range(10_000):
        assert late.want(7) is None
    for _ in range(300):
        assert late.want(100) is None
    assert len(asked) == 1
    asked[0]()
    assert isinstance(late.want(100), Loops) == loops.is_available()
    assert late.want(7) is None


def with_loops(layout: str) -> Bridge:
    """Return a bridge with a topic, its loops loaded."""
    bridge = open_bridge(layout, SimulatedHost(seed=1))
    bridge.kafka.create_topic("orders", 1)
    if isinstance(bridge.kafka, QueueBroker):
        bridge.kafka.queues.loops.load()
    return bridge


def test_what_loops_put_is_found_by_all_roads() -> None:
    """Fetches, pulls and queries by key find the records of batches that loops put."""
    bridge = with_loops("rocketmq")
    records = [Record(at, NOW_MS + at, b"key-%d" % at, b"v" * (at + 1), ()) for at in range(40)]
    produce(bridge, "orders", records)
    assert produce(bridge, "orders", records) == 40
    found = fetched(bridge, "orders")
    assert [one.value for one in found] == [one.value for one in records] * 2
    assert [one.offset for one in found] == list(range(80))
    messages = pulled(bridge, "orders")
    assert [one.keys for one in messages] == [(f"key-{at}",) for at in range(40)] * 2
    store = bridge.standalone.broker.store
    now_ms = bridge.kafka.host.clock.wall_ms()
    for key in ("key-0", "key-39"):
        result = store.query_message("orders", key, 9, 0, now_ms + 1000)
        assert len(result.pieces) == 2, key


def test_reading_goes_on_behind_what_is_not_plain() -> None:
    """A null value among the messages costs the short way, and nothing else."""
    bridge = with_loops("rocketmq")
    records = [Record(at, NOW_MS, None, b"v" if at % 10 else None, ()) for at in range(30)]
    produce(bridge, "orders", records)
    plain = [Record(at, NOW_MS, None, b"w", ()) for at in range(9)]
    produce(bridge, "orders", plain)
    values = [one.value for one in fetched(bridge, "orders")]
    assert values == [one.value for one in (*records, *plain)]


def test_hosts_are_kept() -> None:
    """Born and store host of a message come back from its record, of either family."""
    for born, stored in ((BORN, STORED), (FAR, HERE), (HERE, FAR)):
        draft = draft_message(
            topic="orders", body=b"x", queue_id=2, properties_text=b"", born_timestamp_ms=NOW_MS,
            born_host=born, store_host=stored,
        )  # fmt: skip
        data = record_batch_of(draft, NOW_MS + 5)
        draft.stamp(0, NOW_MS + 5)
        found = loops.stored_messages([RecordBatch(data, len(data))], 0, ("orders", 2, 0), HERE)
        assert found is not None
        assert found[0] == bytes(draft.stamped(0).data)
