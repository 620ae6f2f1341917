"""Either protocol on either layout: what one side writes the other sees, and it comes back."""

from __future__ import annotations

import zlib
from pathlib import Path

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logstore.compat import record_mapping
from logstore.compat.bridge.bridge import Bridge
from logstore.compat.bridge.reserved_names import MESSAGE_REST_HEADER, RECORD_REST_PROPERTY
from logstore.errors import ForeignDirectoryError, OffsetOutOfRangeError
from logstore.segments.kafka.producer_state import InvalidTransactionStateError
from logstore.segments.kafka.record import Record, encode_batch
from logstore.segments.rocketmq.messages.message import Message
from logstore.segments.rocketmq.messages.message_batch import (
    BatchItem,
    draft_batch,
    encode_batch_body,
)
from logstore.segments.rocketmq.messages.properties import encode_properties
from logstore.segments.rocketmq.messages.system_flags import COMPRESSED
from logstore.segments.rocketmq.reading.get_message import GetMessageStatus
from logstore.testing.simulated_host import SimulatedHost
from tests.compat.bridge.bridges import (
    BORN,
    STORED,
    draft,
    fetched,
    open_bridge,
    partition_of,
    produce,
    pulled,
)

LAYOUTS = ("kafka", "rocketmq")
NOW_MS = 1_700_000_000_000
DATA = st.none() | st.binary(max_size=30) | st.text(max_size=8).map(str.encode)
NAMES = st.text(max_size=6) | st.sampled_from(("KEYS", "TAGS", "DELAY", "WAIT"))
HEADERS = st.lists(st.tuples(NAMES, DATA), max_size=4).map(tuple)
RECORDS = st.lists(st.tuples(DATA, DATA, HEADERS), min_size=1, max_size=8)
TEXTS = st.text(st.characters(exclude_characters="\x01\x02", codec="utf-8"), min_size=1, max_size=6)
MESSAGES = st.lists(
    st.tuples(
        st.binary(min_size=1, max_size=40),
        st.dictionaries(TEXTS.map("p{}".format) | st.sampled_from(("KEYS", "TAGS")), TEXTS),
        st.integers(0, 1 << 20),
        st.integers(0, 5),
    ),
    min_size=1,
    max_size=6,
)


def bridge_with_topic(layout: str, host: SimulatedHost | None = None) -> Bridge:
    """Return a bridge with a topic of one partition."""
    bridge = open_bridge(layout, host or SimulatedHost(seed=1))
    bridge.kafka.create_topic("orders", 1)
    return bridge


def told(records: list[Record]) -> list[tuple[object, ...]]:
    """Return what a record says, but for its sequence."""
    return [(r.offset, r.timestamp_ms, r.key, r.value, r.headers) for r in records]


@pytest.mark.parametrize("layout", LAYOUTS)
@settings(max_examples=25, deadline=None)
@given(rows=RECORDS)
def test_records_come_back(
    layout: str, rows: list[tuple[bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]]]
) -> None:
    """Key, value, headers and time of every record, whatever they are, are as they were."""
    bridge = bridge_with_topic(layout)
    records = [Record(at, NOW_MS + at, *row) for at, row in enumerate(rows)]
    produce(bridge, "orders", records)
    assert told(fetched(bridge, "orders")) == told(records)
    messages = pulled(bridge, "orders")
    assert [message.body for message in messages] == [record.value or b"" for record in records]
    assert not any(name.startswith("__KAFKA") for m in messages for name in m.properties)
    bridge.abandon()


@pytest.mark.parametrize("layout", LAYOUTS)
@settings(max_examples=25, deadline=None)
@given(rows=MESSAGES)
def test_messages_come_back(
    layout: str, rows: list[tuple[bytes, dict[str, str], int, int]]
) -> None:
    """Body, properties, flag, hosts and reconsume times of every message are as they were."""
    bridge = bridge_with_topic(layout)
    store = bridge.standalone.broker.store
    for body, properties, flag, times in rows:
        text = encode_properties(properties)
        made = draft("orders", body, text, flag=flag, reconsume_times=times)
        assert store.put_message(made).is_ok
    store.dispatch()
    found = pulled(bridge, "orders")
    assert [(m.body, m.properties, m.flag, m.reconsume_times) for m in found] == [
        (body, properties, flag, times) for body, properties, flag, times in rows
    ]
    assert {(str(m.born_host), str(m.store_host)) for m in found} == {
        ("10.1.2.3:4567", "10.0.0.1:10911")
    }
    records = fetched(bridge, "orders")
    assert [record.value for record in records] == [body for body, *_ in rows]
    assert [record.key for record in records] == [
        properties["KEYS"].encode() if "KEYS" in properties else None for _, properties, *_ in rows
    ]
    assert not any(name.startswith("__rocketmq") for r in records for name, _ in r.headers)
    bridge.abandon()


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("bodies", [(b"one", b"another"), (b"alike", b"equal")])
def test_a_sent_batch_is_whole(layout: str, bodies: tuple[bytes, ...]) -> None:
    """Every message of a client's batch is pulled and fetched with all of its body."""
    bridge = bridge_with_topic(layout)
    store = bridge.standalone.broker.store
    items = [BatchItem(body, b"KEYS\x01k\x02", flag) for flag, body in enumerate(bodies)]
    result = store.put_batch(
        draft_batch(
            topic="orders",
            body=encode_batch_body(items),
            queue_id=0,
            born_timestamp_ms=NOW_MS,
            born_host=BORN,
            store_host=STORED,
        )
    )
    assert result.is_ok
    store.dispatch()
    assert [(m.body, m.flag, m.keys) for m in pulled(bridge, "orders")] == [
        (body, flag, ("k",)) for flag, body in enumerate(bodies)
    ]
    assert [(r.key, r.value) for r in fetched(bridge, "orders")] == [(b"k", b) for b in bodies]
    bridge.abandon()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_message_is_found_by_its_place(layout: str) -> None:
    """The physical offset that a send is told finds the message, also after a restart."""
    host = SimulatedHost(seed=1)
    bridge = bridge_with_topic(layout, host)
    produce(bridge, "orders", [Record(0, NOW_MS, b"k", b"before")])
    store = bridge.standalone.broker.store
    place = store.put_message(draft("orders", b"the one", b"KEYS\x01a\x02")).physical_offset
    store.dispatch()
    bridge.close()
    bridge = open_bridge(layout, host)
    store = bridge.standalone.broker.store
    found = store.message_at(place)
    assert isinstance(found, Message)
    assert (found.body, found.queue_offset, found.physical_offset) == (b"the one", 1, place)
    assert [message.physical_offset for message in pulled(bridge, "orders")][1] == place
    bridge.abandon()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_topics_are_those_of_both(layout: str) -> None:
    """A topic that one side makes, grows or deletes is so on the other side, and stays so."""
    host = SimulatedHost(seed=1)
    bridge = bridge_with_topic(layout, host)
    broker = bridge.standalone.broker
    config = broker.topics.get("orders")
    assert config is not None
    assert config.read_queue_count == 1
    bridge.kafka.add_partitions(bridge.kafka.topics["orders"], 3)
    broker.topics.put(attrs.evolve(config, topic_name="other", write_queue_count=2))
    assert len(bridge.kafka.topics["other"].partitions) == 2
    bridge.kafka.delete_topic(bridge.kafka.topics["other"])
    assert broker.topics.get("other") is None
    bridge.close()
    bridge = open_bridge(layout, host)
    grown = bridge.standalone.broker.topics.get("orders")
    assert grown is not None
    assert grown.write_queue_count == len(bridge.kafka.topics["orders"].partitions) == 3
    assert bridge.standalone.broker.topics.get("other") is None
    bridge.abandon()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_name_server_lists_no_topic_that_kafka_deleted(layout: str) -> None:
    """Kafka's clients know of no second place where a topic is to be deleted."""
    bridge = bridge_with_topic(layout)
    name_server = bridge.standalone.name_server
    assert name_server is not None
    assert name_server.routes.route("orders") is not None
    bridge.kafka.delete_topic(bridge.kafka.topics["orders"])
    assert name_server.routes.route("orders") is None
    assert "orders" not in name_server.routes.topics
    bridge.abandon()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_delayed_message_is_nowhere_before_its_time(layout: str) -> None:
    """Kafka sees a message with a delay level when it is delivered, and not before."""
    bridge = bridge_with_topic(layout)
    store = bridge.standalone.broker.store
    assert store.put_message(draft("orders", b"later", b"DELAY\x013\x02")).is_ok
    store.dispatch()
    assert partition_of(bridge, "orders").end_offset == 0
    assert store.max_queue_offset("SCHEDULE_TOPIC_XXXX", 2) == 1
    bridge.abandon()


def test_an_open_transaction_of_kafkas_is_not_seen() -> None:
    """On Kafka's layout a pull ends at the last stable offset; what was aborted is left out."""
    bridge = bridge_with_topic("kafka")
    partition = partition_of(bridge, "orders")
    partition.verifies_transactions = False
    for producer_id, value in ((7, b"aborted"), (8, b"open")):
        data = encode_batch(
            [Record(0, NOW_MS, None, value)],
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=0,
            is_transactional=True,
        )
        partition.append_produced(memoryview(data), NOW_MS)
        produce(bridge, "orders", [Record(0, NOW_MS, None, b"plain")])
        if producer_id == 7:
            partition.append_marker(7, 0, is_commit=False, coordinator_epoch=0, now_ms=NOW_MS)
    assert [message.body for message in pulled(bridge, "orders")] == [b"plain"]
    bridge.abandon()


def test_a_transaction_that_nobody_began_is_refused_over_queues() -> None:
    """A batch that no coordinator was asked about is refused, and leaves nothing."""
    bridge = bridge_with_topic("rocketmq")
    data = encode_batch(
        [Record(0, NOW_MS, None, b"x")],
        producer_id=7,
        producer_epoch=0,
        base_sequence=0,
        is_transactional=True,
    )
    with pytest.raises(InvalidTransactionStateError, match="no transaction open"):
        partition_of(bridge, "orders").append_produced(memoryview(data), NOW_MS)
    assert partition_of(bridge, "orders").end_offset == 0
    bridge.abandon()


def test_a_repeated_batch_is_stored_once() -> None:
    """An idempotent producer that repeats a batch over a queue gets the first offsets."""
    bridge = bridge_with_topic("rocketmq")
    data = encode_batch(
        [Record(at, NOW_MS, None, b"x") for at in range(3)],
        producer_id=7,
        producer_epoch=0,
        base_sequence=0,
    )
    partition = partition_of(bridge, "orders")
    first = partition.append_produced(memoryview(bytearray(data)), NOW_MS)
    again = partition.append_produced(memoryview(bytearray(data)), NOW_MS)
    assert (
        (again.base_offset, again.last_offset) == (first.base_offset, first.last_offset) == (0, 2)
    )
    assert again.is_duplicate
    assert partition.end_offset == 3
    bridge.abandon()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_directory_of_something_else_is_not_taken(layout: str) -> None:
    """What stands beside the data and was not made for it is left alone."""
    host = SimulatedHost(seed=1)
    other = "kafka" if layout == "rocketmq" else "rocketmq"
    host.fs.make_directory(f"/store.{other}")
    host.fs.open(f"/store.{other}/mine", create=True).close()
    with pytest.raises(ForeignDirectoryError, match="something else"):
        open_bridge(layout, host)
    assert [entry.name for entry in host.fs.list_directory(f"/store.{other}")] == ["mine"]


def test_the_flag_of_a_compressed_body_is_kept() -> None:
    """A body that a client compressed is plain to Kafka, and as it was to RocketMQ."""
    bridge = bridge_with_topic("kafka")
    store = bridge.standalone.broker.store
    packed = zlib.compress(b"long " * 100)
    assert store.put_message(draft("orders", packed, sys_flag=COMPRESSED)).is_ok
    assert [record.value for record in fetched(bridge, "orders")] == [b"long " * 100]
    (message,) = pulled(bridge, "orders")
    assert (message.body, message.is_compressed) == (packed, True)
    bridge.abandon()


def test_the_page_names_what_is_reserved() -> None:
    """MAPPING.md names the property and the header that carry a rest."""
    page = Path(record_mapping.__file__).with_name("MAPPING.md").read_text()
    assert f"`{RECORD_REST_PROPERTY}`" in page
    assert f"`{MESSAGE_REST_HEADER}`" in page


def test_deleted_records_are_gone_on_both_sides() -> None:
    """DeleteRecords over a queue moves its start for fetches and pulls alike, for good."""
    host = SimulatedHost(seed=1)
    bridge = bridge_with_topic("rocketmq", host)
    records = [Record(at, NOW_MS + at, None, b"%d" % at, ()) for at in range(10)]
    produce(bridge, "orders", records)
    assert partition_of(bridge, "orders").delete_records(4) == 4
    bridge.close()
    bridge = open_bridge("rocketmq", host)
    partition = partition_of(bridge, "orders")
    assert (partition.start_offset, partition.end_offset) == (4, 10)
    with pytest.raises(OffsetOutOfRangeError):
        partition.read(3, 1000)
    with pytest.raises(OffsetOutOfRangeError):
        partition.delete_records(11)
    assert [one.value for one in fetched(bridge, "orders", 4)] == [
        b"%d" % at for at in range(4, 10)
    ]
    store = bridge.standalone.broker.store
    assert store.min_queue_offset("orders", 0) == 4
    told_start = store.get_message("g", "orders", 0, 0, 32)
    assert told_start is not None
    assert told_start.status is GetMessageStatus.OFFSET_TOO_SMALL
    assert told_start.next_begin_offset == 4
    assert [one.body for one in pulled(bridge, "orders", 4)] == [b"%d" % at for at in range(4, 10)]
    assert partition.delete_records(-1) == 10
    bridge.kafka.delete_topic(bridge.kafka.topics["orders"])
    bridge.kafka.create_topic("orders", 1)
    assert produce(bridge, "orders", records[:1]) == 0
    assert [one.value for one in fetched(bridge, "orders")] == [b"0"]


def test_what_a_power_loss_took_was_not_deleted() -> None:
    """A queue that ends before its start after a power loss begins at its end: all new is there."""
    host = SimulatedHost(seed=1)
    bridge = bridge_with_topic("rocketmq", host)
    records = [Record(at, NOW_MS + at, None, b"%d" % at, ()) for at in range(10)]
    produce(bridge, "orders", records)
    assert partition_of(bridge, "orders").delete_records(10) == 10
    host.power_loss()
    bridge = open_bridge("rocketmq", host)
    assert partition_of(bridge, "orders").end_offset < 10
    offset = produce(bridge, "orders", records[:1])
    assert [one.value for one in fetched(bridge, "orders", offset)] == [b"0"]
