"""A broker behind real sockets: large answers, slow readers, peers that vanish."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from logstore.compat import TestBroker
from logstore.segments.kafka.record import Record, encode_batch
from logstore.segments.kafka.record_batch import RecordBatch
from tests.compat.kafka.conversation import build, message_class, plain
from tests.compat.kafka.peer import fetch_fields, produce_fields

SECONDS_MAX = 20
BATCH_COUNT, VALUE_BYTES = 8, 512 * 1024


class Client:
    """A blocking connection that speaks the library's messages."""

    def __init__(self, broker: TestBroker, *, receive_buffer_bytes: int = 0) -> None:
        self.socket = socket.socket()
        if receive_buffer_bytes:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
        self.socket.settimeout(SECONDS_MAX)
        self.socket.connect(("127.0.0.1", broker.port))

    def send(self, api: str, version: int, fields: Mapping[str, Any]) -> None:
        """Send a request."""
        request = build(message_class(f"{api}Request"), version, fields)
        request.with_header(correlation_id=1, client_id="test")
        self.socket.sendall(bytes(request.encode(version=version, header=True, framed=True)))

    def take(self, size_bytes: int, *, step_bytes: int = 1 << 20) -> bytes:
        """Receive exactly so much, in small steps if asked to."""
        pieces: list[bytes] = []
        while size_bytes:
            piece = self.socket.recv(min(step_bytes, size_bytes))
            assert piece, f"{size_bytes} bytes are missing"
            pieces.append(piece)
            size_bytes -= len(piece)
        return b"".join(pieces)

    def receive(self, api: str, version: int, *, step_bytes: int = 1 << 20) -> dict[str, Any]:
        """Receive the answer to a request."""
        size_bytes = int.from_bytes(self.take(4), "big")
        frame = self.take(size_bytes, step_bytes=step_bytes)
        response = message_class(f"{api}Response")
        answer: dict[str, Any] = plain(response.decode(frame, version=version, header=True))
        return answer

    def reset(self) -> None:
        """Vanish."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()


def value_of(number: int) -> bytes:
    """Return a large value that differs from the others."""
    return struct.pack(">I", number) * (VALUE_BYTES // 4)


def filled(broker: TestBroker, settings: dict[str, str] | None = None) -> None:
    """Fill topic "t" with large batches."""

    def work() -> None:
        partition = broker.broker.create_topic("t", 1, settings).partitions[0]
        now_ms = broker.broker.host.clock.wall_ms()
        for number in range(BATCH_COUNT):
            data = encode_batch([Record(0, now_ms, b"k", value_of(number))])
            partition.append_produced(memoryview(data), now_ms)

    broker.call(work)


def check_batches(records: bytes, *, first: int = 0) -> int:
    """Return how many whole batches there are; each must be as it was produced."""
    count, position = 0, 0
    while len(records) - position >= 61:
        size_bytes = 12 + int.from_bytes(records[position + 8 : position + 12], "big")
        if len(records) - position < size_bytes:
            break
        found = RecordBatch(records[position : position + size_bytes], size_bytes)
        assert (found.base_offset, found.crc) == (first + count, found.computed_crc())
        count, position = count + 1, position + size_bytes
    return count


def fetch(**fields: Any) -> dict[str, Any]:
    """Return a request for all of topic "t"."""
    asked = [{"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1 << 26}]
    return fetch_fields([("t", asked)], 4, max_bytes=1 << 26, **fields)


def test_a_slow_consumer_gets_everything() -> None:
    """Megabytes through a few KiB of buffer, while others are served at their own pace."""
    with TestBroker() as broker:
        filled(broker)
        slow, quick = Client(broker, receive_buffer_bytes=4096), Client(broker)
        slow.send("Fetch", 4, fetch())
        slow.send("Metadata", 1, {"topics": []})
        for _ in range(3):
            quick.send("Fetch", 4, fetch())
            (topic,) = quick.receive("Fetch", 4)["responses"]
            assert check_batches(bytes(topic["partitions"][0]["records"])) == BATCH_COUNT
        (topic,) = slow.receive("Fetch", 4, step_bytes=20_000)["responses"]
        assert check_batches(bytes(topic["partitions"][0]["records"])) == BATCH_COUNT
        assert slow.receive("Metadata", 1)["topics"] == []


def delete_topic(broker: TestBroker) -> None:
    """Delete topic "t"."""
    broker.broker.delete_topic(broker.broker.topics["t"])


def retain(broker: TestBroker) -> None:
    """Give up all segments but the last one, and remove their files."""
    partition = broker.broker.topics["t"].partitions[0]
    partition.delete_records(BATCH_COUNT - 1)
    assert partition.retain() > 0
    partition.files.purge(everything=True)


def roll(broker: TestBroker) -> None:
    """Seal the segment that is being read."""
    broker.broker.topics["t"].partitions[0].log.roll()


@pytest.mark.parametrize("change", [delete_topic, retain, roll])
def test_what_is_being_sent_is_sent_to_the_end(change: Callable[[TestBroker], None]) -> None:
    """The topic is deleted, retention takes the segment away, it is sealed: all bytes arrive."""
    segment_bytes = VALUE_BYTES * (BATCH_COUNT - 2)
    with TestBroker() as broker:
        filled(broker, {"internal.segment.bytes": str(segment_bytes)})
        slow = Client(broker, receive_buffer_bytes=4096)
        slow.send("Fetch", 4, fetch())
        size_bytes = int.from_bytes(slow.take(4), "big")
        head = slow.take(10_000)
        broker.call(lambda: change(broker))
        if change is delete_topic:
            assert not list(Path(broker.directory).glob("t-0"))
        frame = head + slow.take(size_bytes - len(head), step_bytes=50_000)
        answer = plain(message_class("FetchResponse").decode(frame, version=4, header=True))
        (topic,) = answer["responses"]
        assert check_batches(bytes(topic["partitions"][0]["records"])) >= BATCH_COUNT - 3


def test_consumers_that_vanish_harm_nobody(caplog: pytest.LogCaptureFixture) -> None:
    """In the middle of an answer and of a long poll; a producer and a waiting consumer go on."""
    with TestBroker() as broker:
        filled(broker)
        end = [("t", [{"partition": 0, "fetch_offset": BATCH_COUNT}])]
        survivor = Client(broker)
        survivor.send("Fetch", 4, fetch_fields(end, 4, max_wait_ms=60_000))
        vanished = [Client(broker, receive_buffer_bytes=4096) for _ in range(20)]
        for number, client in enumerate(vanished):
            if number % 2:
                client.send("Fetch", 4, fetch())
                client.take(10_000)
            else:
                client.send("Fetch", 4, fetch_fields(end, 4, max_wait_ms=60_000))
        for client in vanished:
            client.reset()
        producer = Client(broker)
        data = bytes(encode_batch([Record(0, time.time_ns() // 1_000_000, b"k", b"v")]))
        producer.send("Produce", 3, produce_fields([("t", [(0, data)])], 3, 1))
        (topic,) = producer.receive("Produce", 3)["responses"]
        assert topic["partition_responses"][0]["error_code"] == 0
        (topic,) = survivor.receive("Fetch", 4)["responses"]
        assert check_batches(bytes(topic["partitions"][0]["records"]), first=BATCH_COUNT) == 1
    assert [record for record in caplog.records if record.exc_info] == []


def test_many_long_polls_are_answered_by_one_append() -> None:
    """Two hundred consumers wait for one partition; a record comes and all have it."""
    with TestBroker() as broker:
        broker.call(lambda: broker.broker.create_topic("t", 1))
        clients = [Client(broker) for _ in range(200)]
        for client in clients:
            client.send("Fetch", 4, fetch(max_wait_ms=60_000))
        producer = Client(broker)
        data = bytes(encode_batch([Record(0, time.time_ns() // 1_000_000, b"k", b"v")]))
        producer.send("Produce", 3, produce_fields([("t", [(0, data)])], 3, -1))
        producer.receive("Produce", 3)
        for client in clients:
            (topic,) = client.receive("Fetch", 4)["responses"]
            assert check_batches(bytes(topic["partitions"][0]["records"])) == 1
