"""Clients of other times: the real 3.9, the last that serves them, and ours that emulates it."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

import confluent_kafka
import pytest

from logstore.segments.kafka.batch_walk import iterate_entries
from logstore.segments.kafka.compression import Codec
from logstore.segments.kafka.legacy.message_set import encode_message_set
from logstore.segments.kafka.record import Record, encode_batch
from logstore.tools.dev.kafka_peer import KafkaPeer
from tests.interop.conftest import RunTool, start_real
from tests.interop.eventually import eventually
from tests.interop.our_broker import OurBroker
from tests.interop.raw_wire import ask, request

pytestmark = pytest.mark.interop

T = 1_700_000_000_000
PRODUCE, FETCH, LIST_OFFSETS, API_VERSIONS = 0, 1, 2, 18
CREATE_TOPICS, DELETE_TOPICS = 19, 20
OFFSET_FOR_LEADER_EPOCH, WRITE_TXN_MARKERS, DESCRIBE_CONFIGS = 23, 27, 32
RECORDS = [
    Record(0, T, b"k1", b"v1"),
    Record(1, T + 5, None, b"v2" * 40),
    Record(2, T + 3, b"", None),
]


@pytest.fixture(scope="module")
def real_39(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaPeer]:
    """The last broker that converts for old clients."""
    peer = start_real(tmp_path_factory.mktemp("real"), "3.9")
    yield peer
    peer.stop()


@pytest.fixture(scope="module")
def ours_39(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OurBroker]:
    """Ours, as if it were a 3.9."""
    with OurBroker(tmp_path_factory.mktemp("ours"), arguments=("--emulate", "3.9")) as broker:
        yield broker


def named(text: str) -> bytes:
    """Return a string as requests have it."""
    return struct.pack(">h", len(text)) + text.encode()


def topic_body(topic: str, partition: bytes) -> bytes:
    """Return an array of one topic with one partition."""
    return struct.pack(">i", 1) + named(topic) + struct.pack(">i", 1) + partition


def conversation(topic: str) -> Iterator[tuple[int, int, bytes]]:
    """Yield (API key, version, body) of every request of before 0.11, and what surrounds them."""
    for version in (0, 1):
        plan = struct.pack(">i", 1) + named(f"{topic}{version}") + struct.pack(">ih", 1, 1)
        plan += struct.pack(">iii", 0, 0, 30_000) + (b"\x00" if version else b"")
        yield CREATE_TOPICS, version, plan
        if version == 0:  # from 1 on an error has a text, which is everybody's own
            yield CREATE_TOPICS, version, plan
    name = f"{topic}1"
    good: dict[int, bytes] = {}
    for version, magic in ((0, 0), (1, 0), (2, 1)):
        for codec in (Codec.NONE, Codec.GZIP, Codec.LZ4):
            data = bytes(encode_message_set(RECORDS, magic=magic, codec=codec))
            partition = struct.pack(">ii", 0, len(data)) + data
            good[version] = struct.pack(">hi", -1, 10_000) + topic_body(name, partition)
            yield PRODUCE, version, good[version]
    whole = bytes(encode_message_set(RECORDS, magic=1))
    wrapper = bytes(encode_message_set(RECORDS, magic=1, codec=Codec.GZIP))
    for bad in (whole[:-1] + b"x", wrapper * 2, whole + wrapper, whole[:20], b""):
        partition = struct.pack(">ii", 0, len(bad)) + bad
        yield PRODUCE, 2, struct.pack(">hi", -1, 10_000) + topic_body(name, partition)
    batch = bytes(encode_batch(RECORDS, codec=Codec.ZSTD))
    partition = struct.pack(">ii", 0, len(batch)) + batch
    yield (
        PRODUCE,
        7,
        b"\xff\xff" + struct.pack(">hi", -1, 10_000) + topic_body(f"{topic}0", partition),
    )
    for version in range(4):
        limit = struct.pack(">i", 1 << 20) if version == 3 else b""
        head = struct.pack(">iii", -1, 100, 1) + limit
        for where, offset in (
            (name, 0),
            (name, 4),
            (name, 26),
            (name, 99),
            (f"{topic}0", 0),
            ("no", 0),
        ):
            yield FETCH, version, head + topic_body(where, struct.pack(">iqi", 0, offset, 1 << 20))
    for time_ms, count in ((-1, 1), (-1, 5), (-2, 5), (T, 5), (1 << 50, 5), (-1, 0)):
        asked = topic_body(name, struct.pack(">iqi", 0, time_ms, count))
        yield LIST_OFFSETS, 0, struct.pack(">i", -1) + asked
    yield from later_requests(name)
    for where in (name, "no"):
        yield DELETE_TOPICS, 0, struct.pack(">i", 1) + named(where) + struct.pack(">i", 30_000)


def later_requests(name: str) -> Iterator[tuple[int, int, bytes]]:
    """Yield first versions of what came after that."""
    for version in (0, 1):
        for where, partition in ((name, struct.pack(">ii", 0, 0)), ("no", struct.pack(">ii", 0, 0)),
                                 (name, struct.pack(">ii", 7, 5))):  # fmt: skip
            yield OFFSET_FOR_LEADER_EPOCH, version, topic_body(where, partition)
    keys = struct.pack(">i", 3) + b"".join(
        map(named, ("max.message.bytes", "cleanup.policy", "no"))
    )
    yield DESCRIBE_CONFIGS, 0, struct.pack(">ib", 1, 2) + named(name) + keys
    marker = struct.pack(">iqh?", 1, 1, 0, True)
    for where in (name, "no"):
        body = topic_body(where, struct.pack(">i", 0)) + struct.pack(">i", 0)
        yield WRITE_TXN_MARKERS, 0, marker + body


def told(bootstrap: str, topic: str) -> list[tuple[int, int, bytes | None]]:
    """Return what a broker answers to it all."""
    found: list[tuple[int, int, bytes | None]] = []
    for key, version, body in conversation(topic):
        found.append((key, version, ask(bootstrap, request(key, version, body))))
        if key == CREATE_TOPICS:
            eventually(lambda: is_led(bootstrap, f"{topic}{version}"))  # noqa: B023 - asked now
    return found


def is_led(bootstrap: str, topic: str) -> bool:
    """Tell whether a new topic takes messages."""
    body = struct.pack(">hi", -1, 10_000) + topic_body(topic, struct.pack(">ii", 0, 0))
    answer = ask(bootstrap, request(PRODUCE, 2, body))
    assert answer is not None
    error: int = struct.unpack_from(">h", answer, 18 + len(topic))[0]
    return error == 0


def test_requests_of_old_get_the_answers_of_the_last_that_knew_them(
    real_39: KafkaPeer, ours_39: OurBroker
) -> None:
    """Topics made, message sets of all kinds, good and bad, offsets: byte for byte."""
    theirs, ours = told(real_39.bootstrap, "talk"), told(ours_39.bootstrap, "talk")
    assert len(theirs) > 40
    message_count = 0
    for number, (their, our) in enumerate(zip(theirs, ours, strict=True)):
        assert our[:2] == their[:2]
        if their[0] != FETCH:
            assert our == their, f"question {number}"
            continue
        their_head, their_messages = taken_apart(their[1], their[2])
        our_head, our_messages = taken_apart(our[1], our[2])
        assert our_head == their_head, f"question {number}"
        # A real answer is as long as the stored batches, so it may end sooner.
        assert our_messages[: len(their_messages)] == their_messages, f"question {number}"
        message_count += len(their_messages)
    assert message_count > 40


def taken_apart(version: int, answer: bytes | None) -> tuple[bytes, list[bytes]]:
    """Return what an answer to a Fetch of one partition says of it, and its whole messages."""
    assert answer is not None
    name_at = (8 if version >= 1 else 4) + 4
    end = name_at + 2 + struct.unpack_from(">h", answer, name_at)[0] + 4 + 14
    messages = iterate_entries(memoryview(answer)[end + 4 :])
    return answer[:end], [bytes(message.data) for message in messages]


def ranges(bootstrap: str) -> dict[int, tuple[int, int]]:
    """Return what ApiVersions v0 tells."""
    answer = ask(bootstrap, request(API_VERSIONS, 0, b""))
    assert answer is not None
    count = struct.unpack_from(">i", answer, 6)[0]
    entries = struct.iter_unpack(">hhh", answer[10 : 10 + 6 * count])
    return {key: (lowest, highest) for key, lowest, highest in entries}


def test_the_ranges_are_those_of_the_real_one(real_39: KafkaPeer, ours_39: OurBroker) -> None:
    """The lowest and the highest of each API that clients use."""
    theirs, ours = ranges(real_39.bootstrap), ranges(ours_39.bootstrap)
    assert ours.keys() <= theirs.keys()
    assert ours == {key: theirs[key] for key in ours}


@pytest.mark.parametrize("release", ["2.3", "3.8"])
def test_a_client_of_today_finds_the_versions_of_an_older_broker(
    tmp_path: Path, kafka_tool: RunTool, release: str
) -> None:
    """Its first question is of a version that the release did not have; it asks again."""
    with OurBroker(tmp_path, arguments=("--emulate", release)) as broker:
        where = ("TopicCommand", "--bootstrap-server", broker.bootstrap)
        size = ("--partitions", "1", "--replication-factor", "1")  # before 2.4 there is no default
        kafka_tool(*where, "--create", "--topic", "t", *size)
        assert kafka_tool(*where, "--list").stdout.split() == ["t"]


@pytest.mark.parametrize("release", ["0.8.2", "0.9.0"])
@pytest.mark.parametrize(
    "codec",
    [
        pytest.param("none", marks=pytest.mark.slow),
        "gzip",
        pytest.param("snappy", marks=pytest.mark.slow),
    ],
)
def test_librdkafka_as_it_spoke_to_brokers_of_before_api_versions(
    tmp_path: Path, release: str, codec: str
) -> None:
    """It produces, and a consumer (from 0.9 on a group) reads the same."""
    with OurBroker(tmp_path, arguments=("--emulate", release.removesuffix(".0"))) as broker:
        settings = {
            "bootstrap.servers": broker.bootstrap,
            "api.version.request": False,
            "broker.version.fallback": release,
            "log_level": 0,
        }
        producer = confluent_kafka.Producer(settings | {"compression.codec": codec})
        sent = [(f"k{number}".encode(), b"value" * number) for number in range(50)]
        for key, value in sent:
            producer.produce("old", value, key)
        assert producer.flush(30) == 0
        consumer = confluent_kafka.Consumer(
            settings
            | {"group.id": "g", "auto.offset.reset": "earliest", "enable.auto.commit": False}
        )
        if release.startswith("0.8"):
            consumer.assign([confluent_kafka.TopicPartition("old", 0, 0)])
        else:
            consumer.subscribe(["old"])
        found: list[confluent_kafka.Message] = []
        while len(found) < len(sent):
            batch = consumer.consume(len(sent) - len(found), 30)
            assert batch, f"only {len(found)} came"
            found += batch
        assert [(m.key(), m.value()) for m in found] == sent
        assert [m.offset() for m in found] == list(range(len(sent)))
        if not release.startswith("0.8"):
            consumer.commit(asynchronous=False)
            (committed,) = consumer.committed([confluent_kafka.TopicPartition("old", 0)], 30)
            assert committed.offset == len(sent)
        consumer.close()
