"""Produce: what is appended, and what the producer is told."""

from __future__ import annotations

import errno
import importlib
import uuid
from typing import Any

import pytest

from logstore.compat.kafka.broker import Broker
from logstore.segments.kafka.compression import Codec
from logstore.segments.kafka.partition import KafkaPartition
from logstore.segments.kafka.record import decode_records
from logstore.testing.simulated_host import SimulatedHost
from tests.compat.kafka.batches import NOW_MS, batch, stamped
from tests.compat.kafka.peer import Peer, a_broker, produce_fields

VERSIONS = range(3, 14)
NOTHING_WRONG: dict[str, Any] = {"record_errors": [], "error_message": None}


def named(broker: Broker, topic: str, version: int) -> Any:
    """Return what a request of this version calls the topic."""
    return uuid.UUID(bytes=broker.topics[topic].topic_id) if version >= 13 else topic


def log_of(broker: Broker, topic: str = "t", index: int = 0) -> KafkaPartition:
    """Return a partition."""
    return broker.topics[topic].partitions[index]


def stored(partition: KafkaPartition) -> list[bytes]:
    """Return every batch of the partition as it stands in the log."""
    return [bytes(entry.data) for entry in partition.batches()]


@pytest.mark.parametrize("version", VERSIONS)
def test_every_version_answers_where_the_batch_went(version: int) -> None:
    """Base offset, no append time, log start from v5, empty record errors from v8, in order."""
    broker = a_broker()
    broker.create_topic("t", 1)
    peer = Peer(broker)
    topic = named(broker, "t", version)
    first = peer.produce([(topic, [(0, batch(b"a", b"b", b"c"))])], version=version)
    log_of(broker).delete_records(2)
    second = peer.produce([(topic, [(0, batch(b"d"))])], version=version)

    for answer, base_offset, log_start in ((first, 0, 0), (second, 3, 2)):
        assert answer.message["throttle_time_ms"] == 0
        (found,) = answer.message["responses"]
        assert found["topic_id" if version >= 13 else "name"] == topic
        assert answer.partition == {
            "index": 0,
            "error_code": 0,
            "base_offset": base_offset,
            "log_append_time_ms": -1,
            **({"log_start_offset": log_start} if version >= 5 else {}),
            **(NOTHING_WRONG if version >= 8 else {}),
        }
    values = [r.value for b in stored(log_of(broker))[-1:] for r in decode_records(b)]
    assert values == [b"d"]


@pytest.mark.parametrize("version", VERSIONS)
def test_the_broker_gives_the_time_where_the_topic_says_so(version: int) -> None:
    """On a LogAppendTime topic the answer has the broker's clock, and so has every record."""
    host = SimulatedHost()
    broker = a_broker(host)
    broker.create_topic("t", 1, {"message.timestamp.type": "LogAppendTime"})
    peer = Peer(broker)
    host.clock.advance(5)
    topic = named(broker, "t", version)
    data = batch(b"a", b"b", timestamp_ms=NOW_MS - 70_000)
    answers = [peer.produce([(topic, [(0, data)])], version=version) for _ in range(2)]

    assert [answer.partition["error_code"] for answer in answers] == [0, 0]
    assert {answer.partition["log_append_time_ms"] for answer in answers} == {NOW_MS + 5}
    times = [r.timestamp_ms for b in stored(log_of(broker)) for r in decode_records(b)]
    assert times == [NOW_MS + 5] * 4


@pytest.mark.parametrize("codec", list(Codec))
def test_a_batch_is_stored_as_it_came(codec: Codec) -> None:
    """Only base offset and leader epoch are stamped; compressed records are not touched."""
    broker = a_broker()
    broker.create_topic("t", 1)
    data = batch(*[b"value %d" % i for i in range(50)], codec=codec)
    peer = Peer(broker)
    for _ in range(2):
        assert peer.produce([("t", [(0, data)])]).partition["error_code"] == 0

    assert stored(log_of(broker)) == [stamped(data, 0), stamped(data, 50)]
    assert len({len(b) for b in stored(log_of(broker))}) == 1


def test_a_batch_of_another_implementation_is_taken() -> None:
    """What kafka-python's own batch builder writes is stored and read back as it was."""
    records: Any = importlib.import_module("kafka.record.default_records")
    builder = records.DefaultRecordBatchBuilder(
        magic=2, compression_type=0, is_transactional=0, producer_id=-1, producer_epoch=-1,
        base_sequence=-1, batch_size=1 << 20,
    )  # fmt: skip
    builder.append(0, NOW_MS, b"k", b"v", [("h", b"x"), ("n", None)])
    builder.append(1, NOW_MS + 1, None, None, [])
    broker = a_broker()
    broker.create_topic("t", 1)
    answer = Peer(broker).produce([("t", [(0, bytes(builder.build()))])])

    assert answer.partition["error_code"] == 0
    first, second = decode_records(stored(log_of(broker))[0])
    assert (first.key, first.value, first.headers) == (b"k", b"v", (("h", b"x"), ("n", None)))
    assert (second.key, second.value, second.timestamp_ms) == (None, None, NOW_MS + 1)


@pytest.mark.parametrize("version", VERSIONS)
def test_results_stand_where_the_batches_stood(version: int) -> None:
    """Every partition gets its own result, in the order of the request, good or bad."""
    broker = a_broker()
    broker.create_topic("a", 3)
    broker.create_topic("b", 1)
    good = batch()
    unknown: Any = uuid.UUID(int=7) if version >= 13 else "unknown"
    answer = Peer(broker).produce(
        [
            (named(broker, "b", version), [(0, good), (9, good)]),
            (unknown, [(0, good), (1, good)]),
            (named(broker, "a", version), [(2, good), (0, good[:-1] + b"!"), (1, good)]),
        ],
        version=version,
    )

    assert [[p["index"] for p in topic] for topic in answer.by_topic] == [[0, 9], [0, 1], [2, 0, 1]]
    nobody = 100 if version >= 13 else 3
    codes = [[p["error_code"] for p in topic] for topic in answer.by_topic]
    assert codes == [[0, 3], [nobody, nobody], [0, 2, 0]]
    for topic in answer.by_topic:
        for result in topic:
            is_good = result["error_code"] == 0
            assert result["base_offset"] == (0 if is_good else -1)
            assert result.get("log_start_offset", -1) == (0 if is_good and version >= 5 else -1)
    assert [log_of(broker, "a", index).end_offset for index in range(3)] == [0, 1, 1]


@pytest.mark.parametrize("version", [3, 8, 9, 13])
def test_a_request_that_is_cut_short_leaves_nothing_behind(version: int) -> None:
    """Wherever it ends: the connection is closed, and what came whole is not appended either."""
    broker = a_broker()
    broker.create_topic("t", 2)
    topic = named(broker, "t", version)
    whole = Peer(broker).encoded(
        "Produce", version, produce_fields([(topic, [(0, batch()), (1, batch())])], version, 1)
    )
    for size_bytes in range(40, len(whole) - 4):
        peer = Peer(broker)
        peer.connection.feed(size_bytes.to_bytes(4, "big") + whole[4 : 4 + size_bytes])
        assert peer.connection.is_closing, size_bytes
    assert [log_of(broker, index=index).end_offset for index in (0, 1)] == [0, 0]


@pytest.mark.parametrize("version", range(3, 13))
def test_a_topic_without_a_name_is_no_topic(version: int) -> None:
    """Who sends null in a name's place loses the connection."""
    peer = Peer(a_broker())
    null = b"\xff\xff" if version < 9 else b"\0"
    named = peer.encoded("Produce", version, produce_fields([("tt", [(0, batch())])], version, 1))
    written = b"\0\2tt" if version < 9 else b"\3tt"
    frame = named[4:].replace(written, null, 1)
    peer.connection.feed(len(frame).to_bytes(4, "big") + frame)
    assert peer.connection.is_closing


def test_of_a_partition_named_twice_the_last_batch_is_meant() -> None:
    """It is appended and answered, the others are not."""
    broker = a_broker()
    broker.create_topic("t", 1)
    answer = Peer(broker).produce([("t", [(0, batch(b"a", b"b"))]), ("t", [(0, batch(b"c"))])])

    assert [[one["base_offset"] for one in topic] for topic in answer.by_topic] == [[0]]
    assert broker.topics["t"].partitions[0].end_offset == 1


def test_a_topic_of_which_nothing_is_sent_is_not_answered() -> None:
    """Only partitions are answered, so a topic without any is not there."""
    broker = a_broker()
    broker.create_topic("t", 1)
    assert Peer(broker).produce([("t", [])]).message["responses"] == []


@pytest.mark.parametrize("version", [3, 9, 13])
def test_a_request_of_no_topics_has_an_answer_of_none(version: int) -> None:
    """Nothing to append is no error."""
    assert Peer(a_broker()).produce([], version=version).message["responses"] == []


@pytest.mark.parametrize("version", VERSIONS)
def test_acks_0_is_never_answered(version: int) -> None:
    """The batch is appended; the next answer on the connection is that of the next request."""
    broker = a_broker()
    broker.create_topic("t", 1)
    peer = Peer(broker)
    topic = named(broker, "t", version)
    frame = peer.encoded("Produce", version, produce_fields([(topic, [(0, batch())])], version, 0))
    assert peer.connection.feed(frame) == []
    assert log_of(broker).end_offset == 1

    answer = peer.produce([(topic, [(0, batch())])], version=version)
    assert (answer.partition["error_code"], answer.partition["base_offset"]) == (0, 1)


@pytest.mark.parametrize(
    ("topic", "data"),
    [("unknown", batch()), ("t", batch()[:-1]), ("t", None), ("__consumer_offsets", batch())],
)
def test_acks_0_and_an_error_hang_up(topic: str, data: bytes | None) -> None:
    """Who does not wait for answers learns of an error from the connection that closes."""
    broker = a_broker()
    for name in ("t", "__consumer_offsets"):
        broker.create_topic(name, 1)
    peer = Peer(broker)
    frame = peer.encoded("Produce", 9, produce_fields([(topic, [(0, data)])], 9, 0))

    assert peer.connection.feed(frame) == []
    assert peer.connection.is_closing
    assert {p.end_offset for p in broker.store.partitions()} == {0}


@pytest.mark.parametrize("acks", [1, -1])
def test_one_replica_is_all_replicas(acks: int) -> None:
    """With a lone broker acks 1 and acks all are answered alike."""
    broker = a_broker()
    broker.create_topic("t", 1)
    answer = Peer(broker).produce([("t", [(0, batch())])], acks=acks)
    assert (answer.partition["error_code"], answer.partition["base_offset"]) == (0, 0)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    "name", ["__consumer_offsets", "__transaction_state", "__share_group_state"]
)
def test_internal_topics_are_for_the_admin_client_only(name: str, version: int) -> None:
    """A producer gets 17 there, the client that calls itself __admin_client may write."""
    broker = a_broker()
    broker.create_topic(name, 1)
    topic = named(broker, name, version)

    refused = Peer(broker).produce([(topic, [(0, batch())])], version=version)
    assert refused.partition["error_code"] == 17
    assert log_of(broker, name).end_offset == 0
    for _ in range(2):  # once in full, once by the short way
        taken = Peer(broker, "__admin_client").produce([(topic, [(0, batch())])], version=version)
        assert taken.partition["error_code"] == 0
    assert log_of(broker, name).end_offset == 2


@pytest.mark.parametrize("acks", [2, -2, 127])
@pytest.mark.parametrize("version", VERSIONS)
def test_other_acks_are_refused(acks: int, version: int) -> None:
    """Acks can be 0, 1 or -1; everything else is 21, and nothing is appended."""
    broker = a_broker()
    broker.create_topic("t", 1)
    peer = Peer(broker)
    answer = peer.produce(
        [(named(broker, "t", version), [(0, batch())])], version=version, acks=acks
    )

    assert (answer.partition["error_code"], answer.partition["base_offset"]) == (21, -1)
    assert log_of(broker).end_offset == 0


def test_a_topic_that_is_not_there_is_told_before_wrong_acks() -> None:
    """As in Kafka, which looks topics up before it looks at the acks."""
    broker = a_broker()
    broker.create_topic("t", 1)
    answer = Peer(broker).produce(
        [("unknown", [(0, batch())]), ("t", [(0, batch()), (1, batch())])], acks=5
    )
    assert [[p["error_code"] for p in topic] for topic in answer.by_topic] == [[3], [21, 3]]


@pytest.mark.parametrize("came_as", list(Codec))
@pytest.mark.parametrize("kept_as", ["uncompressed", "gzip", "snappy", "lz4", "zstd"])
def test_a_topic_with_a_codec_keeps_every_batch_in_it(kept_as: str, came_as: Codec) -> None:
    """Records are compressed anew if the codec is not the topic's; nothing else changes."""
    broker = a_broker()
    broker.create_topic("t", 1, {"compression.type": kept_as})
    codec = Codec.NONE if kept_as == "uncompressed" else Codec[kept_as.upper()]
    values = [b"value %d" % index for index in range(40)]
    data = batch(*values, codec=came_as, producer=(7, 1, 2**31 - 2))
    answer = Peer(broker).produce([("t", [(0, data)])])

    assert (answer.partition["error_code"], answer.partition["base_offset"]) == (0, 0)
    (entry,) = log_of(broker).batches()
    assert (entry.codec, entry.record_count, entry.crc) == (codec, 40, entry.computed_crc())
    assert (entry.producer_id, entry.producer_epoch, entry.base_sequence) == (7, 1, 2**31 - 2)
    assert [record.value for record in decode_records(entry.data)] == values


def test_a_full_disk_refuses_and_keeps_what_it_has() -> None:
    """What does not fit is answered with 56; all else is there, also after a restart."""
    host = SimulatedHost()
    broker = a_broker(host)
    broker.create_topic("t", 1)
    peer = Peer(broker)
    data = batch(bytes(1000))
    codes = [peer.produce([("t", [(0, data)])]).partition["error_code"] for _ in range(3)]
    host.fs.fill_up(len(data) + 100)
    codes += [peer.produce([("t", [(0, data)])]).partition["error_code"] for _ in range(3)]
    assert codes == [0, 0, 0, 0, 56, 56]
    assert stored(log_of(broker)) == [stamped(data, offset) for offset in range(4)]

    host.fs.faults.clear()
    answer = peer.produce([("t", [(0, data)])])
    assert (answer.partition["error_code"], answer.partition["base_offset"]) == (0, 4)
    host.fs.process_death()
    again = a_broker(host)
    assert stored(log_of(again)) == [stamped(data, offset) for offset in range(5)]
    recovery = log_of(again).recovery
    assert recovery is not None
    assert recovery.is_clean


def test_a_full_disk_that_cannot_roll_is_told_and_forgotten() -> None:
    """Where the next segment cannot be made the answer is 56; with room again all goes on."""
    host = SimulatedHost()
    broker = a_broker(host)
    broker.create_topic("t", 1, {"internal.segment.bytes": "3000"})
    peer = Peer(broker)
    data = batch(bytes(1000))
    for kind in ("open", "write", "truncate"):
        acknowledged = log_of(broker).end_offset
        host.fs.faults.fail_next(kind, errno.ENOSPC, path="*/t-0/*", count=None)
        codes = [peer.produce([("t", [(0, data)])]).partition["error_code"] for _ in range(4)]
        assert 56 in codes
        assert set(codes) <= {0, 56}
        host.fs.faults.clear()
        codes += [peer.produce([("t", [(0, data)])]).partition["error_code"] for _ in range(4)]
        assert codes[-4:] == [0, 0, 0, 0]
        assert log_of(broker).end_offset == acknowledged + codes.count(0)
        count = log_of(broker).end_offset
        assert stored(log_of(broker)) == [stamped(data, offset) for offset in range(count)]
    host.fs.process_death()
    assert stored(log_of(a_broker(host))) == [stamped(data, offset) for offset in range(count)]
