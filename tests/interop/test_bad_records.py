"""Bad records and names: Kafka's own answer, nothing written, and the server lives on."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import attrs
import crc32c
import kafka
import pytest

from logstore.segments.kafka.compression import Codec, compress
from tests.interop.clients import CLIENTS, read, read_all
from tests.interop.conftest import Broker, CreateTopic
from tests.interop.eventually import eventually
from tests.interop.raw_wire import (
    METADATA,
    answers,
    ask,
    produce_error,
    produce_request,
    request,
)

pytestmark = [pytest.mark.interop, pytest.mark.either_layout]

UNKNOWN_SERVER_ERROR = -1
CORRUPT_MESSAGE = 2
UNKNOWN_TOPIC_OR_PARTITION = 3
MESSAGE_TOO_LARGE = 10
INVALID_TOPIC_EXCEPTION = 17
INVALID_REQUIRED_ACKS = 21
OUT_OF_ORDER_SEQUENCE_NUMBER = 45
INVALID_PRODUCER_EPOCH = 47
UNSUPPORTED_COMPRESSION_TYPE = 76
INVALID_RECORD = 87

# Layout of a batch header (v2): where its fields stand.
LENGTH, LEADER_EPOCH, MAGIC, CRC, ATTRIBUTES = 8, 12, 16, 17, 21
LAST_OFFSET_DELTA, PRODUCER_ID, PRODUCER_EPOCH, BASE_SEQUENCE, RECORD_COUNT = 23, 43, 51, 53, 57


def varint(value: int) -> bytes:
    """Encode a zig-zag varint."""
    rest = value << 1 if value >= 0 else (-value << 1) - 1
    encoded = b""
    while rest > 0x7F:
        encoded += bytes([rest & 0x7F | 0x80])
        rest >>= 7
    return encoded + bytes([rest])


def batch(count: int = 2, value: bytes = b"value") -> bytes:
    """Return an honest record batch, as any client would send it."""
    records = b""
    for number in range(count):
        record = b"\x00\x00" + varint(number) + varint(-1) + varint(len(value)) + value + varint(0)
        records += varint(len(record)) + record
    now = 1_700_000_000_000
    after_crc = struct.pack(">hiqqqhii", 0, count - 1, now, now, -1, -1, -1, count) + records
    crc = crc32c.crc32c(after_crc)
    return struct.pack(">qiibI", 0, len(after_crc) + 9, -1, 2, crc) + after_crc


def changed(data: bytes, position: int, layout: str, value: int, *, sign: bool = True) -> bytes:
    """Return the batch with one header field changed, its checksum made right again if `sign`."""
    fresh = bytearray(data)
    struct.pack_into(f">{layout}", fresh, position, value)
    if sign:
        struct.pack_into(">I", fresh, CRC, crc32c.crc32c(bytes(fresh[ATTRIBUTES:])))
    return bytes(fresh)


@attrs.frozen
class Bad:
    """
    Records with a fault, and what Kafka answers.

    Where Kafka only says UNKNOWN_SERVER_ERROR a more telling code is as good. `stored` is how many
    records it takes all the same.
    """

    name: str
    records: bytes
    expected: tuple[int, ...]
    stored: int = 0


def compressed(codec: int, body: bytes) -> bytes:
    """Return an honest header over data that are said to be compressed with `codec`."""
    found = changed(HONEST[:61] + body, LENGTH, "i", 49 + len(body), sign=False)
    return changed(found, ATTRIBUTES, "h", codec)


HONEST = batch()
#: the beginning of each codec's data, and nothing of what must follow
GZIP_CUT = compress(Codec.GZIP, HONEST[61:])[:-12]
LZ4_CUT = compress(Codec.LZ4, HONEST[61:])[:-9]
ZSTD_CUT = compress(Codec.ZSTD, HONEST[61:])[:-4]
UNREADABLE = (UNKNOWN_SERVER_ERROR, CORRUPT_MESSAGE, UNSUPPORTED_COMPRESSION_TYPE, INVALID_RECORD)
BAD_RECORDS = (
    Bad("checksum", changed(HONEST, CRC, "I", 1, sign=False), (CORRUPT_MESSAGE,)),
    Bad("flipped payload", HONEST[:-3] + b"X" + HONEST[-2:], (CORRUPT_MESSAGE,)),
    Bad("codec 5", changed(HONEST, ATTRIBUTES, "h", 5), UNREADABLE),
    Bad("codec 7", changed(HONEST, ATTRIBUTES, "h", 7), UNREADABLE),
    Bad("not gzip", changed(HONEST, ATTRIBUTES, "h", 1), UNREADABLE),
    Bad("not snappy", changed(HONEST, ATTRIBUTES, "h", 2), UNREADABLE),
    Bad("not lz4", changed(HONEST, ATTRIBUTES, "h", 3), UNREADABLE),
    Bad("not zstd", changed(HONEST, ATTRIBUTES, "h", 4), UNREADABLE),
    Bad("cut gzip", compressed(1, GZIP_CUT), UNREADABLE),
    Bad("cut lz4", compressed(3, LZ4_CUT), UNREADABLE),
    Bad("cut zstd", compressed(4, ZSTD_CUT), UNREADABLE),
    Bad("gzip of garbage", compressed(1, compress(Codec.GZIP, b"\xff" * 40)), UNREADABLE),
    Bad("control batch", changed(HONEST, ATTRIBUTES, "h", 0x20), (INVALID_RECORD,)),
    Bad("magic 3", changed(HONEST, MAGIC, "b", 3), (CORRUPT_MESSAGE,)),
    Bad("magic 1", changed(HONEST, MAGIC, "b", 1), (INVALID_RECORD,)),
    Bad("length too large", changed(HONEST, LENGTH, "i", len(HONEST) * 9), (INVALID_RECORD,)),
    Bad("length too small", changed(HONEST, LENGTH, "i", 5), (CORRUPT_MESSAGE,)),
    Bad("length negative", changed(HONEST, LENGTH, "i", -1), (CORRUPT_MESSAGE,)),
    Bad("more records said", changed(HONEST, RECORD_COUNT, "i", 3), (INVALID_RECORD,)),
    Bad("fewer records said", changed(HONEST, RECORD_COUNT, "i", 1), (INVALID_RECORD,)),
    Bad("records negative", changed(HONEST, RECORD_COUNT, "i", -2), (INVALID_RECORD,)),
    Bad("last offset", changed(HONEST, LAST_OFFSET_DELTA, "i", 7), (INVALID_RECORD,)),
    Bad("cut in the header", HONEST[:40], (INVALID_RECORD,)),
    Bad("cut in the records", HONEST[:-1], (INVALID_RECORD,)),
    Bad("two batches", HONEST + HONEST, (INVALID_RECORD,)),
    Bad("nothing", b"", (INVALID_RECORD,)),
    Bad("too large", batch(1, b"x" * 1_100_000), (MESSAGE_TOO_LARGE,)),
    # Odd, and taken: what cannot be a batch behind the last one is cut off.
    Bad("garbage behind", HONEST + b"garbage", (0,), stored=2),
    Bad("sequence without producer", changed(HONEST, BASE_SEQUENCE, "i", 4), (0,), stored=2),
    Bad("log append time", changed(HONEST, ATTRIBUTES, "h", 8), (0,), stored=2),
)


@pytest.fixture(autouse=True)
def lives_on(broker: Broker) -> Iterator[None]:
    """Whatever a test sent: afterwards a new connection is served."""
    yield
    assert answers(broker.bootstrap)


@pytest.fixture
def topic(broker: Broker, create_topic: CreateTopic) -> str:
    """A topic that holds one honest batch of two records."""
    name = create_topic(broker.bootstrap)
    eventually(lambda: produce_error(broker.bootstrap, produce_request(name, HONEST)) == 0)
    return name


@pytest.mark.parametrize("bad", BAD_RECORDS, ids=lambda bad: bad.name)
def test_bad_records_are_refused(broker: Broker, bad: Bad, topic: str) -> None:
    """Each kind of damage has Kafka's error code, and the log stays as it was."""
    code = produce_error(broker.bootstrap, produce_request(topic, bad.records))
    assert code in bad.expected
    assert produce_error(broker.bootstrap, produce_request(topic, HONEST)) == 0
    found = read_all(CLIENTS[0], broker.bootstrap, topic, 4 + bad.stored)
    assert [record.value for record in found] == [b"value"] * (4 + bad.stored)


@pytest.mark.parametrize(
    ("acks", "partition", "expected"),
    [
        (5, 0, INVALID_REQUIRED_ACKS),
        (-2, 0, INVALID_REQUIRED_ACKS),
        (-1, 9, UNKNOWN_TOPIC_OR_PARTITION),
        (-1, -1, UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
def test_impossible_acks_and_partitions(
    broker: Broker, topic: str, acks: int, partition: int, expected: int
) -> None:
    """Acks other than -1, 0 and 1, and partitions that are not there."""
    asked = produce_request(topic, HONEST, acks, partition)
    assert produce_error(broker.bootstrap, asked) == expected


ILLEGAL_NAMES = ("", ".", "..", "a b", "x" * 250, "größe", "a/b", "../up", "a\x00b")


@pytest.mark.parametrize("name", ILLEGAL_NAMES, ids=lambda name: ascii(name)[:12])
def test_illegal_topic_names(broker: Broker, name: str) -> None:
    """They cannot be created, asked for or written to, and no file of that name appears."""
    admin: Any = kafka.KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    answer = admin.create_topics({name: {"num_partitions": 1}}, raise_errors=False)
    admin.close()
    assert [topic["error_code"] for topic in answer["topics"]] == [INVALID_TOPIC_EXCEPTION]
    asked = name.encode()
    body = struct.pack(">ih", 1, len(asked)) + asked
    metadata = ask(broker.bootstrap, request(METADATA, 1, body))
    assert metadata is not None
    assert struct.pack(">hh", INVALID_TOPIC_EXCEPTION, len(asked)) + asked in metadata
    code = produce_error(broker.bootstrap, produce_request(name, HONEST))
    assert code == UNKNOWN_TOPIC_OR_PARTITION
    assert not [path for path in broker.data.iterdir() if path.name.startswith(f"{name}-")]


@pytest.mark.own_layout("RocketMQ has no topics with a dot in their names")
def test_colliding_topic_names(broker: Broker, topic_name: str) -> None:
    """Names that differ in dots and underscores only would collide in metric names."""
    admin: Any = kafka.KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    admin.create_topics({f"{topic_name}.a_b": {"num_partitions": 1}})
    answer = admin.create_topics({f"{topic_name}_a.b": {}}, raise_errors=False)
    admin.close()
    assert [topic["error_code"] for topic in answer["topics"]] == [INVALID_TOPIC_EXCEPTION]


def sequenced(producer_id: int, epoch: int, sequence: int) -> bytes:
    """Return an honest batch of two records by an idempotent producer."""
    found = changed(HONEST, PRODUCER_ID, "q", producer_id)
    found = changed(found, PRODUCER_EPOCH, "h", epoch)
    return changed(found, BASE_SEQUENCE, "i", sequence)


def test_sequences_of_a_producer(broker: Broker, topic: str) -> None:
    """A gap is refused, a repetition is answered again but not stored, an old epoch is fenced."""
    steps = [
        (0, 0, 0, True),
        (0, 2, 0, True),
        (0, 6, OUT_OF_ORDER_SEQUENCE_NUMBER, False),
        (0, 2, 0, False),
        (0, 0, 0, False),
        (1, 0, 0, True),
        (0, 4, INVALID_PRODUCER_EPOCH, False),
        (1, 3, OUT_OF_ORDER_SEQUENCE_NUMBER, False),
        (1, 2, 0, True),
    ]
    count = 2
    for epoch, sequence, expected, is_stored in steps:
        asked = produce_request(topic, sequenced(4_000_000, epoch, sequence))
        assert produce_error(broker.bootstrap, asked) == expected, (epoch, sequence)
        count += 2 if is_stored else 0
    assert len(read_all(CLIENTS[0], broker.bootstrap, topic, count)) == count
    consumer = CLIENTS[0].consumer(broker.bootstrap, topic)
    assert len(read(consumer, count + 1, seconds=2)) == count
    consumer.close()
