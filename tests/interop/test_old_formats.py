"""Messages of magic 0 and 1: what real brokers make of them, and of ours."""

from __future__ import annotations

import shutil
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path

import confluent_kafka
import pytest

from logstore.os_host import system_host
from logstore.segments.kafka.batch_walk import iterate_entries
from logstore.segments.kafka.compression import Codec
from logstore.segments.kafka.legacy.down_conversion import down_convert
from logstore.segments.kafka.legacy.message import MAGIC_POSITION
from logstore.segments.kafka.legacy.message_set import encode_message_set
from logstore.segments.kafka.legacy.up_conversion import up_convert_produced
from logstore.segments.kafka.partition import KafkaPartition
from logstore.segments.kafka.record import Record, decode_records, encode_batch
from logstore.segments.kafka.record_batch import RecordBatch
from logstore.segments.kafka.segment_files import SegmentFiles
from logstore.tools.dev.kafka_peer import KafkaPeer
from tests.interop.clients import CLIENTS, read_all, settings
from tests.interop.conftest import new_topic, start_real
from tests.interop.eventually import eventually
from tests.interop.raw_wire import ask, produce_error, produce_request, request
from tests.segments.kafka.legacy.legacy_case import LegacyCase, legacy_cases

pytestmark = [pytest.mark.interop, pytest.mark.slow]

T = 1_700_000_000_000
FETCH = 1
PRODUCE = 0
CODECS = (Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4)
#: the oldest and the newest version of a request that speaks each magic
FETCHES = {0: (0, 1), 1: (2, 3)}
PRODUCES = {0: (0, 1), 1: (2, 2)}


def recovered(case: LegacyCase, directory: Path) -> Path:
    """Put a case's segments into `directory` and have us recover and close them."""
    directory.mkdir(parents=True)
    for path in case.golden_folder.glob("*.log"):
        shutil.copy(path, directory)
    host = system_host()
    files = SegmentFiles(host, str(directory), case.config, is_clean=False)
    KafkaPartition(host, files, case.topic, 0, recovery_point=0).close()
    return directory


def put_in_place(cases: Sequence[LegacyCase], peer: KafkaPeer) -> None:
    """Put the segments alone in place of the peer's own, after what it takes for a crash."""
    for case in cases:
        target = peer.data / f"{case.topic}-0"
        for path in target.iterdir():
            if path.name != "partition.metadata":
                path.unlink()
        for path in case.golden_folder.glob("*.log"):
            shutil.copy(path, target)
    (peer.data / ".kafka_cleanshutdown").unlink()
    (peer.data / "replication-offset-checkpoint").unlink(missing_ok=True)


@pytest.mark.parametrize("version", ["4", "3.9"])
def test_a_recovery_makes_of_old_logs_what_kafkas_makes(version: str, tmp_path: Path) -> None:
    """Given the segments alone, the real broker and we build the same indexes, byte for byte."""
    cases = legacy_cases()
    size = "segment.bytes" if version == "3.9" else "internal.segment.bytes"
    peer = start_real(tmp_path / "peer", version)
    try:
        for case in cases:
            given = case.content["topic_configs"]
            config = {size: given["segment.bytes"]}
            if "index.interval.bytes" in given:
                config["index.interval.bytes"] = given["index.interval.bytes"]
            new_topic(peer.bootstrap, case.topic, config=config)
        peer.stop()
        put_in_place(cases, peer)
        peer.start()
        for case in cases:
            found = read_all(CLIENTS[0], peer.bootstrap, case.topic, len(case.expected))
            records = [r for entry in case.stored_batches(0) for r in decode_records(entry.data)]
            assert [(s.key, s.value) for s in found] == [(r.key, r.value) for r in records]
    finally:
        peer.stop()
    for case in cases:
        ours = recovered(case, tmp_path / "ours" / case.name)
        compared = [p for p in ours.iterdir() if p.suffix in (".log", ".index", ".timeindex")]
        assert len(compared) >= 3
        for path in compared:
            theirs = (peer.data / f"{case.topic}-0" / path.name).read_bytes()
            assert theirs == path.read_bytes(), f"{case.name}/{path.name}"


@pytest.fixture(scope="module")
def old_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaPeer]:
    """The last broker that converts for old clients."""
    peer = start_real(tmp_path_factory.mktemp("old"), "3.9")
    yield peer
    peer.stop()


def named(text: str) -> bytes:
    """Return a string as requests have it."""
    return struct.pack(">h", len(text)) + text.encode()


def fetched(bootstrap: str, topic: str, offset: int, version: int) -> bytes:
    """Return the bytes that a Fetch of that old version gets of partition 0."""
    body = struct.pack(">iii", -1, 500, 1)
    if version >= 3:
        body += struct.pack(">i", 1 << 20)
    body += struct.pack(">i", 1) + named(topic) + struct.pack(">iiqi", 1, 0, offset, 1 << 20)
    answer = ask(bootstrap, request(FETCH, version, body))
    assert answer is not None
    start = (8 if version >= 1 else 4) + 4 + 2 + len(topic) + 4
    partition, error, _, size_bytes = struct.unpack_from(">ihqi", answer, start)
    assert (partition, error) == (0, 0)
    return answer[start + 18 : start + 18 + size_bytes]


def stored(peer: KafkaPeer, topic: str) -> list[RecordBatch]:
    """Return what the broker has in its (only) segment now."""
    (path,) = (peer.data / f"{topic}-0").glob("*.log")
    return list(iterate_entries(memoryview(path.read_bytes())))


def filled_topic(peer: KafkaPeer, topic: str, config: dict[str, str]) -> int:
    """Fill a topic with batches of all codecs, headers, nulls and a transaction; return its end."""
    new_topic(peer.bootstrap, topic, config=config | {"segment.ms": str(10**15)})
    records = [
        Record(0, T, b"k1", b"v1", (("h", b"x"),)),
        Record(1, T + 5, None, b"v2" * 40),
        Record(2, T + 3, b"", None),
        Record(3, T - 7, b"k4", b""),
    ]
    for codec in CODECS * 2:
        data = bytes(encode_batch(records, codec=codec))
        assert produce_error(peer.bootstrap, produce_request(topic, data)) == 0
    producer = confluent_kafka.Producer(settings(peer.bootstrap) | {"transactional.id": topic})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, b"of a transaction", b"k", 0, timestamp=T)
    producer.commit_transaction(30)
    eventually(lambda: [batch.is_control for batch in stored(peer, topic)][-1])
    data = bytes(encode_batch(records))
    assert produce_error(peer.bootstrap, produce_request(topic, data)) == 0
    return 8 * 4 + 2 + 4


@pytest.mark.parametrize("time", ["CreateTime", "LogAppendTime"])
@pytest.mark.parametrize("magic", [0, 1])
def test_down_conversion_is_that_of_the_last_broker_that_did_it(
    old_broker: KafkaPeer, magic: int, time: str
) -> None:
    """Fetches of old versions, from every offset: the bytes that we make of the stored batches."""
    topic = f"down-{magic}-{time}"
    end = filled_topic(old_broker, topic, {"message.timestamp.type": time})
    batches = stored(old_broker, topic)
    assert [batch.is_control for batch in batches].count(True) == 1
    compared = 0
    for version in FETCHES[magic]:
        for offset in range(end):
            whole = list(
                iterate_entries(memoryview(fetched(old_broker.bootstrap, topic, offset, version)))
            )
            asked = [batch for batch in batches if batch.last_offset >= offset]
            ours = down_convert(asked, magic, first_offset=offset)
            expected = list(iterate_entries(memoryview(ours)))
            # A converted answer is as long as the stored bytes were, so it may end sooner.
            assert whole or not expected
            for theirs, our in zip(whole, expected, strict=False):
                compared += same(theirs, our)
    assert compared > 200


def same(theirs: RecordBatch, our: RecordBatch) -> int:
    """Assert that two messages are alike, by their bytes if the codec allows; return 1."""
    if our.codec == Codec.SNAPPY:  # libraries differ in how they compress
        assert decode_records(theirs.data) == decode_records(our.data)
        assert (theirs.last_offset, theirs.attributes) == (our.last_offset, our.attributes)
    else:
        assert bytes(theirs.data) == bytes(our.data)
    return 1


@pytest.mark.parametrize("magic", [0, 1])
def test_up_conversion_is_that_of_the_last_broker_that_did_it(
    old_broker: KafkaPeer, magic: int
) -> None:
    """What old producers send is stored as the batch that we make of it."""
    topic = f"up-{magic}"
    new_topic(old_broker.bootstrap, topic)
    records = [
        Record(0, T, b"k1", b"v1"),
        Record(1, T + 5, None, b"v2" * 40),
        Record(2, T + 3, b"", None),
    ]
    expected: list[bytes] = []
    offset = 0
    for version in PRODUCES[magic]:
        for codec in CODECS:
            data = encode_message_set(records, magic=magic, codec=codec)
            body = struct.pack(">hii", -1, 10_000, 1) + named(topic)
            body += struct.pack(">iii", 1, 0, len(data)) + data
            answer = ask(old_broker.bootstrap, request(PRODUCE, version, body))
            assert answer is not None
            assert struct.unpack_from(">ihq", answer, 14 + len(topic)) == (0, 0, offset)
            batch = up_convert_produced(memoryview(data))
            converted = RecordBatch(batch, len(batch)).stamped(offset, 0)
            expected.append(bytes(converted.data))
            offset += 3
    found = stored(old_broker, topic)
    assert len(found) == len(expected)
    for theirs, our in zip(found, expected, strict=True):
        assert theirs.data[MAGIC_POSITION] == 2
        if theirs.codec == Codec.SNAPPY:
            assert decode_records(theirs.data) == decode_records(our)
        else:
            assert bytes(theirs.data) == our


@pytest.mark.parametrize("magic", [0, 1])
def test_what_the_last_converting_broker_refuses_is_refused(
    old_broker: KafkaPeer, magic: int
) -> None:
    """Two wrappers in one set, a wrong CRC: the error that we raise has the broker's code."""
    topic = f"refused-{magic}"
    new_topic(old_broker.bootstrap, topic)
    one = encode_message_set([Record(0, T, b"k", b"v")], magic=magic)
    wrapper = encode_message_set([Record(0, T, b"k", b"v")], magic=magic, codec=Codec.GZIP)
    for data, code in ((wrapper * 2, 87), (one + wrapper, 87), (one[:-1] + b"x", 2)):
        body = struct.pack(">hii", -1, 10_000, 1) + named(topic)
        body += struct.pack(">iii", 1, 0, len(data)) + data
        answer = ask(old_broker.bootstrap, request(PRODUCE, 2, body))
        assert answer is not None
        error = struct.unpack_from(">h", answer, 18 + len(topic))[0]
        raised = attempt(data)
        assert raised == {87: "InvalidRecordError", 2: "CorruptMessageError"}[code]
        assert error == code


def attempt(data: bytes) -> str:
    """Return the name of the error that our conversion raises."""
    try:
        up_convert_produced(memoryview(data))
    except Exception as error:  # noqa: BLE001 - the test is about which one it is
        return type(error).__name__
    return "none"
