"""Produce: what is refused, with which code, whichever way the request takes."""

from __future__ import annotations

import uuid
from typing import Any

import attrs
import pytest

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.segments.kafka.compression import Codec, compress
from logstore.segments.kafka.record import Record, encode_batch
from tests.compat.kafka.batches import (
    ATTRIBUTES_POSITION,
    CRC_POSITION,
    LAST_DELTA_POSITION,
    NOW_MS,
    RECORD_COUNT_POSITION,
    altered,
    batch,
    old_message,
)
from tests.compat.kafka.peer import Answer, Peer, a_broker, produce_fields
from tests.compat.kafka.transactions.producer import TransactionalClient
from tests.compat.kafka.transactions.test_wire import served

GOOD = batch(b"a", b"b", timestamp_ms=NOW_MS)
HOUR_MS = 3_600_000
LENGTH_POSITION, MAGIC_POSITION, BASE_SEQUENCE_POSITION = 8, 16, 53
MAX_TIMESTAMP_POSITION = 35
CORRUPT, TOO_LARGE, LIST_TOO_LARGE, BAD_TIME, BAD_CODEC, BAD_RECORD = 2, 10, 18, 32, 76, 87
UNKNOWN = 3


@attrs.frozen
class Bad:
    """Record bytes that are refused with `code` by a topic with these settings."""

    name: str
    records: bytes | None
    code: int
    settings: dict[str, str] = attrs.field(factory=dict[str, str])
    #: nobody can tell where it ends, so that all of the request is refused, in words
    is_unreadable: bool = False


def with_tail(tail: bytes) -> bytes:
    """Return a batch of one record whose value and headers are these bytes, behind a long key."""
    record = b"\0\0\0" + bytes([60 * 2]) + b"k" * 60 + tail
    size = len(record) * 2
    body = bytes([size & 0x7F | 0x80, size >> 7]) + record
    return altered(batch()[:61] + body, LENGTH_POSITION, "i", 49 + len(body))


def gzip_of(body: bytes) -> bytes:
    """Return a batch of one record that calls itself gzip and has this body."""
    header = batch(codec=Codec.GZIP)[:61]
    return altered(header + body, LENGTH_POSITION, "i", 49 + len(body))


def broken(codec: Codec) -> bytes:
    """Return a batch that begins as `codec` does and is cut in the middle, its CRC right."""
    good = batch(b"x" * 400, b"y" * 400, codec=codec)
    cut = good[: 61 + (len(good) - 61) * 2 // 3]
    return altered(cut, LENGTH_POSITION, "i", len(cut) - 12)


def hollow(codec: Codec) -> bytes:
    """Return a batch whose data can be decompressed, to something that is no records."""
    header = batch(b"a", codec=codec)[:61]
    body = compress(codec, b"\xff" * 40)
    return altered(header + body, LENGTH_POSITION, "i", 49 + len(body))


BAD = (
    Bad("a key out of its record", altered(batch(b"v" * 90), 66, "b", 0x7E), BAD_RECORD),
    Bad("an overlong null and no headers", with_tail(b"\x81\x00"), BAD_RECORD),
    Bad("headers that are not there", altered(batch(b"v" * 9), 79, "b", 2), BAD_RECORD),
    Bad("null", None, BAD_RECORD),
    Bad("empty", b"", BAD_RECORD),
    Bad("two batches", GOOD + GOOD, BAD_RECORD),
    Bad("magic 0", old_message(0), BAD_RECORD),
    Bad("magic 1", old_message(1), BAD_RECORD),
    Bad("magic 1 with a time", old_message(1, 4 << 24), BAD_RECORD),
    Bad("magic 3", altered(GOOD, MAGIC_POSITION, "b", 3), CORRUPT, is_unreadable=True),
    Bad("wrong crc", altered(GOOD, CRC_POSITION, "I", 1, mend_crc=False), CORRUPT),
    Bad("changed value", GOOD[:-2] + b"X" + GOOD[-1:], CORRUPT),
    Bad("cut in the length", GOOD[:10], BAD_RECORD),
    Bad("cut in the header", GOOD[:40], BAD_RECORD),
    Bad("cut in the records", GOOD[:-1], BAD_RECORD),
    Bad("garbage with an impossible length behind", GOOD + bytes(30), CORRUPT),
    Bad(
        "length of a few bytes", altered(GOOD, LENGTH_POSITION, "i", 5), CORRUPT, is_unreadable=True
    ),
    Bad("length of half a header", altered(GOOD, LENGTH_POSITION, "i", 30), CORRUPT),
    Bad("length below zero", altered(GOOD, LENGTH_POSITION, "i", -1), CORRUPT, is_unreadable=True),
    Bad("large for the topic", batch(bytes(300)), TOO_LARGE, {"max.message.bytes": "300"}),
    Bad(
        "large for a segment", batch(bytes(300)), LIST_TOO_LARGE, {"internal.segment.bytes": "300"}
    ),
    Bad("codec 5", altered(GOOD, ATTRIBUTES_POSITION, "h", 5), BAD_CODEC),
    Bad("codec 7", altered(GOOD, ATTRIBUTES_POSITION, "h", 7), BAD_CODEC),
    *[
        Bad(f"not {codec.name}", altered(GOOD, ATTRIBUTES_POSITION, "h", codec), BAD_RECORD)
        for codec in Codec
        if codec not in (Codec.NONE, Codec.ZSTD)
    ],
    Bad(
        "broken gzip", gzip_of(b"\x1f\x8b\x08" + bytes(20)), BAD_RECORD, {"compression.type": "lz4"}
    ),
    *[
        Bad(f"{what.__name__} {codec.name}", what(codec), BAD_RECORD)
        for what in (broken, hollow)
        for codec in (Codec.GZIP, Codec.SNAPPY, Codec.LZ4)
    ],
    Bad("control batch", batch(is_control=True), BAD_RECORD),
    Bad("no records", altered(GOOD, RECORD_COUNT_POSITION, "i", 0), BAD_RECORD),
    Bad("records below zero", altered(GOOD, RECORD_COUNT_POSITION, "i", -2), BAD_RECORD),
    Bad("more records said", altered(GOOD, RECORD_COUNT_POSITION, "i", 3), BAD_RECORD),
    Bad("fewer records said", altered(GOOD, RECORD_COUNT_POSITION, "i", 1), BAD_RECORD),
    Bad("last offset", altered(GOOD, LAST_DELTA_POSITION, "i", 7), BAD_RECORD),
    Bad("base offset", altered(GOOD, 0, "q", 5), BAD_RECORD),
    Bad(
        "more records than there are",
        altered(altered(GOOD, LAST_DELTA_POSITION, "i", 2), RECORD_COUNT_POSITION, "i", 3),
        BAD_RECORD,
    ),
    Bad("producer without a sequence", batch(producer=(5, 0, -1)), BAD_RECORD),
    Bad(
        "append time that nobody gave",
        altered(altered(GOOD, MAX_TIMESTAMP_POSITION, "q", -1), ATTRIBUTES_POSITION, "h", 8),
        BAD_TIME,
    ),
    Bad(
        "append time that is the broker's",
        altered(GOOD, ATTRIBUTES_POSITION, "h", 8),
        BAD_TIME,
        {"message.timestamp.type": "LogAppendTime"},
    ),
    Bad("from the future", batch(timestamp_ms=NOW_MS + HOUR_MS + 1), BAD_TIME),
    Bad("too old", batch(timestamp_ms=NOW_MS - HOUR_MS - 1), BAD_TIME),
    Bad("no key", batch(key=None), BAD_RECORD, {"cleanup.policy": "compact"}),
)
#: that is what the tests about times are about
TIMES = {
    "message.timestamp.after.max.ms": str(HOUR_MS),
    "message.timestamp.before.max.ms": str(HOUR_MS),
}


def settings_of(bad: Bad) -> dict[str, str]:
    """Return the settings of the topic that refuses it."""
    return {**TIMES, **bad.settings}


@pytest.mark.parametrize("version", [3, 7, 8, 9, 13])
@pytest.mark.parametrize("bad", BAD, ids=lambda bad: bad.name)
def test_bad_records_are_refused(bad: Bad, version: int) -> None:
    """The code is Kafka's and nothing is written, first and after requests that were good."""
    broker = a_broker()
    topic = broker.create_topic("t", 1, settings_of(bad))
    name: Any = topic.name if version < 13 else uuid.UUID(bytes=topic.topic_id)
    peer = Peer(broker)
    answers: list[Answer] = []
    for expected_end in (0, 2, 4):
        answers.append(peer.produce([(name, [(0, bad.records)])], version=version))
        assert topic.partitions[0].end_offset == expected_end
        good = peer.produce([(name, [(0, GOOD)])], version=version)
        assert (good.partition["error_code"], good.partition["base_offset"]) == (0, expected_end)

    first, *others = [answer.partition for answer in answers]
    assert (first["error_code"], first["base_offset"]) == (bad.code, -1)
    assert others == [first, first]  # by the short way as by the long one
    # Why is told in words only of single records and of whole requests, in version 8 and later.
    has_words = bool(first.get("record_errors")) or (bad.is_unreadable and version >= 8)
    assert bool(first.get("error_message")) == has_words


@pytest.mark.parametrize("version", [3, 8, 13])
def test_what_is_no_batch_refuses_the_whole_request(version: int) -> None:
    """All is 2, what is sound and what nobody knows too, as Kafka looks at all batches first."""
    broker = a_broker()
    topic = broker.create_topic("t", 1)
    broker.create_topic("u", 1)
    names: list[Any] = ["t", "u", "unknown"]
    if version >= 13:
        known = [uuid.UUID(bytes=broker.topics[name].topic_id) for name in names[:2]]
        names = [*known, uuid.UUID(int=7)]
    bad = altered(GOOD, LENGTH_POSITION, "i", 5)
    data = [GOOD, bad, GOOD]
    answer = Peer(broker).produce(
        [(name, [(0, records)]) for name, records in zip(names, data, strict=True)], version=version
    )
    assert [p["error_code"] for topic in answer.by_topic for p in topic] == [CORRUPT] * 3
    assert topic.partitions[0].end_offset == 0


@pytest.mark.parametrize("acks", [7, -2])
def test_acks_are_looked_at_last(acks: int) -> None:
    """What is no batch, or none for this version, is told before the acks that there are not."""
    broker = a_broker()
    broker.create_topic("t", 1)
    peer = Peer(broker)
    for records, version, code in (
        (GOOD, 9, 21),
        (GOOD + GOOD, 9, BAD_RECORD),
        (old_message(1), 9, BAD_RECORD),
        (batch(codec=Codec.ZSTD), 6, BAD_CODEC),
        (batch(codec=Codec.ZSTD), 7, 21),
    ):
        answer = peer.produce([("t", [(0, records)])], version=version, acks=acks)
        assert answer.partition["error_code"] == code


@pytest.mark.parametrize(("policy", "code"), [("producer", 0), ("gzip", -1)])
def test_what_cannot_be_encoded_anew(policy: str, code: int) -> None:
    """A time below -1, nobody's transaction, no epoch: -1 where the topic has another codec."""
    broker = a_broker()
    topic = broker.create_topic("t", 1, {"compression.type": policy})
    peer = Peer(broker)
    for data in (
        batch(b"v", timestamp_ms=-5),
        batch(b"v", timestamp_ms=NOW_MS, producer=(-1, -1, -1), is_transactional=True),
        batch(b"v", timestamp_ms=NOW_MS, producer=(99, -1, 0)),
    ):
        fields = produce_fields([("t", [(0, data)])], 9, 1) | {"transactional_id": "x"}
        assert peer.ask("Produce", 9, fields).partition["error_code"] == code
    assert topic.partitions[0].end_offset == (0 if code else 3)


def test_a_negative_time_is_too_old() -> None:
    """Where the topic says how old a record may be; -1 is no time."""
    broker = a_broker()
    broker.create_topic("t", 1, TIMES)
    peer = Peer(broker)
    for time_ms, code in ((-5, BAD_TIME), (-1, 0)):
        data = batch(b"v", timestamp_ms=time_ms)
        assert peer.produce([("t", [(0, data)])]).partition["error_code"] == code


@pytest.mark.parametrize("told_ms", [-1, 2**62, -7])
def test_the_largest_time_is_made_true(told_ms: int) -> None:
    """A header that lies about it is put right: as Kafka, by the records."""
    broker = a_broker()
    topic = broker.create_topic("t", 1)
    data = altered(GOOD, MAX_TIMESTAMP_POSITION, "q", told_ms)
    assert Peer(broker).produce([("t", [(0, data)])]).partition["error_code"] == 0
    (stored,) = topic.partitions[0].batches()
    assert stored.max_timestamp_ms == NOW_MS


@pytest.mark.parametrize("bad", [GOOD + GOOD, old_message(1)])
@pytest.mark.parametrize("is_last", [False, True])
def test_of_a_partition_named_twice_what_is_sound_is_appended(bad: bytes, *, is_last: bool) -> None:
    """Of two of which one is no batch the other is appended, and nobody is told of that."""
    broker = a_broker()
    topic = broker.create_topic("t", 2)
    sent = [(0, GOOD), (0, bad)] if is_last else [(0, bad), (0, GOOD)]
    answer = Peer(broker).produce([("t", [*sent, (1, GOOD)])])
    codes = {one["index"]: one["error_code"] for (of,) in [answer.by_topic] for one in of}
    assert codes == {0: BAD_RECORD, 1: 0}
    assert [topic.partitions[index].end_offset for index in (0, 1)] == [2, 2]


def test_of_a_partition_named_twice_that_is_not_there_that_is_told() -> None:
    """What is wrong with a batch does not matter then."""
    broker = a_broker()
    broker.create_topic("t", 1)
    answer = Peer(broker).produce([("t", [(7, GOOD), (7, GOOD + GOOD)])])
    assert answer.partition["error_code"] == UNKNOWN


@pytest.mark.parametrize(
    ("length", "codes"), [(20, [-1, -1]), (38, [-1, -1]), (39, [CORRUPT, 0]), (48, [CORRUPT, 0])]
)
def test_a_batch_that_ends_in_its_own_header(length: int, codes: list[int]) -> None:
    """Over one that ends before its producer's id Kafka stumbles, and refuses all that is asked."""
    broker = a_broker()
    broker.create_topic("t", 2)
    data = altered(GOOD, LENGTH_POSITION, "i", length)[: 12 + length]
    answer = Peer(broker).produce([("t", [(0, data), (1, GOOD)])])
    assert [one["error_code"] for one in answer.by_topic[0]] == codes


def test_a_base_offset_is_told_of_before_the_size() -> None:
    """Of a batch that is too large, and does not begin at 0."""
    broker = a_broker()
    broker.create_topic("t", 1, {"max.message.bytes": "10"})
    data = altered(GOOD, 0, "q", 5)
    assert Peer(broker).produce([("t", [(0, data)])]).partition["error_code"] == BAD_RECORD


@pytest.mark.parametrize("version", [9, 13])
def test_what_cannot_be_read_counts_although_it_is_named_again(version: int) -> None:
    """Of a partition named twice the last batch is meant, and yet the first has to be one."""
    broker = a_broker()
    topic = broker.create_topic("t", 1)
    name: Any = topic.name if version < 13 else uuid.UUID(bytes=topic.topic_id)
    answer = Peer(broker).produce([(name, [(0, bytes(61)), (0, GOOD)])], version=version)
    assert answer.partition["error_code"] == CORRUPT
    assert topic.partitions[0].end_offset == 0


def test_what_is_not_zstd_is_refused() -> None:
    """Data that call themselves zstd and are not are told from older versions' refusal of zstd."""
    broker = a_broker()
    broker.create_topic("t", 1)
    data = altered(GOOD, ATTRIBUTES_POSITION, "h", Codec.ZSTD)
    assert Peer(broker).produce([("t", [(0, data)])]).partition["error_code"] == BAD_RECORD


@pytest.mark.parametrize("version", range(3, 14))
def test_zstd_is_for_version_7_and_later(version: int) -> None:
    """Older consumers may read what older producers write: below v7 zstd is 76."""
    broker = a_broker()
    topic = broker.create_topic("t", 1)
    name: Any = topic.name if version < 13 else uuid.UUID(bytes=topic.topic_id)
    peer = Peer(broker)
    assert peer.produce([(name, [(0, GOOD)])], version=version).partition["error_code"] == 0
    answer = peer.produce([(name, [(0, batch(codec=Codec.ZSTD))])], version=version)

    assert answer.partition["error_code"] == (BAD_CODEC if version < 7 else 0)
    assert topic.partitions[0].end_offset == (2 if version < 7 else 3)


def test_what_follows_the_batch_and_is_none_is_cut_off() -> None:
    """As in Kafka: a piece of a second batch is dropped, the first one is stored."""
    broker = a_broker()
    topic = broker.create_topic("t", 1)
    peer = Peer(broker)
    for tail in (b"garbage", GOOD[:-1], GOOD[:17], GOOD[:12]):
        assert peer.produce([("t", [(0, GOOD + tail)])]).partition["error_code"] == 0

    assert {entry.size_bytes for entry in topic.partitions[0].batches()} == {len(GOOD)}
    assert topic.partitions[0].end_offset == 8


def several(*ages_ms: int, keys: list[bytes | None] | None = None) -> bytes:
    """Return a batch of records so old, with these keys."""
    return bytes(
        encode_batch(
            [
                Record(index, NOW_MS - age_ms, keys[index] if keys else b"k", b"v")
                for index, age_ms in enumerate(ages_ms)
            ]
        )
    )


@pytest.mark.parametrize("version", [8, 9, 12])
def test_every_bad_timestamp_is_named(version: int) -> None:
    """With 32 come the indexes of all records at fault (KIP-467), and Kafka's sentence."""
    broker = a_broker()
    topic = broker.create_topic("t", 1, TIMES)
    peer = Peer(broker)
    old, new = HOUR_MS + 1, -HOUR_MS - 1
    answer = peer.produce([("t", [(0, several(0, old, new, HOUR_MS, old))])], version=version)

    assert answer.partition["error_code"] == BAD_TIME
    assert [error["batch_index"] for error in answer.partition["record_errors"]] == [1, 2, 4]
    assert all(error["batch_index_error_message"] for error in answer.partition["record_errors"])
    assert answer.partition["error_message"] == (
        "One or more records have been rejected due to invalid timestamp"
    )
    assert topic.partitions[0].end_offset == 0


def test_the_bounds_of_timestamps_are_inclusive() -> None:
    """A record exactly as old or as new as the topic allows is taken; so is one without time."""
    broker = a_broker()
    broker.create_topic("t", 1, TIMES)
    peer = Peer(broker)
    for data in (several(HOUR_MS, -HOUR_MS, 0), batch(timestamp_ms=-1)):
        assert peer.produce([("t", [(0, data)])]).partition["error_code"] == 0


def test_every_record_without_key_is_named() -> None:
    """On a compacted topic 87 comes with the index of each record that has no key."""
    broker = a_broker()
    topic = broker.create_topic("t", 1, {"cleanup.policy": "compact,delete"})
    data = several(0, 0, 0, 0, keys=[None, b"", b"k", None])
    answer = Peer(broker).produce([("t", [(0, data)])])

    assert answer.partition["error_code"] == BAD_RECORD
    assert [error["batch_index"] for error in answer.partition["record_errors"]] == [0, 3]
    assert {error["batch_index_error_message"] for error in answer.partition["record_errors"]} == {
        "Compacted topic cannot accept message without key in topic partition t-0"
    }
    assert topic.partitions[0].end_offset == 0


def test_a_producer_may_not_pretend_to_be_the_broker_but_is_corrected() -> None:
    """On a CreateTime topic the bit for LogAppendTime is taken out of a batch that has times."""
    broker = a_broker()
    topic = broker.create_topic("t", 1)
    data = altered(GOOD, ATTRIBUTES_POSITION, "h", 8)
    assert Peer(broker).produce([("t", [(0, data)])]).partition["error_code"] == 0

    (entry,) = topic.partitions[0].batches()
    assert (entry.is_log_append_time, entry.crc) == (False, entry.computed_crc())


@pytest.mark.parametrize("version", [3, 9, 13])
def test_a_partition_below_zero_is_unknown(version: int) -> None:
    """Partition numbers are signed on the wire; there is no partition -1."""
    broker = a_broker()
    topic = broker.create_topic("t", 1)
    name: Any = topic.name if version < 13 else uuid.UUID(bytes=topic.topic_id)
    answer = Peer(broker).produce([(name, [(-1, GOOD), (2**31 - 1, GOOD)])], version=version)
    assert [result["error_code"] for result in answer.by_topic[0]] == [3, 3]


def test_who_cannot_be_asked_about_a_transaction_is_told_by_name() -> None:
    """In Kafka's words, as something that an old client tries again (19)."""
    broker = served()
    client = TransactionalClient(broker, 1)
    client.init()
    broker.transactions.refusal = ErrorCode.NOT_COORDINATOR
    data = batch(b"x", producer=(client.producer_id, client.epoch, 0), is_transactional=True)
    fields = produce_fields([("t", [(0, data)])], 9, -1)
    fields["transactional_id"] = client.transactional_id
    told = Peer(broker).ask("Produce", 9, fields).partition
    assert told["error_code"] == 19
    assert told["error_message"] == (
        "Unable to verify the partition has been added to the transaction. "
        "Underlying error: NOT_COORDINATOR"
    )
