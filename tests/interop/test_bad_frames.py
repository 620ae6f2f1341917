"""Bad frames: random bytes, wrong sizes, unknown APIs; answered or closed as Kafka does."""

from __future__ import annotations

import json
import random
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.damage import damaged
from tests.interop.conftest import Broker
from tests.interop.our_broker import OurBroker
from tests.interop.raw_wire import API_VERSIONS, METADATA, PRODUCE, Wire, answers, ask, request

pytestmark = pytest.mark.interop

INVALID_TOPIC_EXCEPTION, UNSUPPORTED_VERSION, INVALID_REQUEST = 17, 35, 42
NO_TOPICS = struct.pack(">i", 0)
SOCKET_REQUEST_BYTES_MAX = 104_857_600
LEADER_AND_ISR = 4


@pytest.fixture(autouse=True)
def lives_on(broker: Broker) -> Iterator[None]:
    """Whatever a test sent: afterwards a new connection is served."""
    yield
    assert answers(broker.bootstrap)


def flexible(api_key: int, version: int, body: bytes) -> bytes:
    """Return a request's payload with header version 2: tags after the client id."""
    return struct.pack(">hhih4sB", api_key, version, 7, 4, b"test", 0) + body


@pytest.mark.parametrize(
    "payload",
    [
        pytest.param(request(999, 0, b""), id="unknown api"),
        pytest.param(request(-1, 0, b""), id="negative api"),
        pytest.param(request(LEADER_AND_ISR, 0, b""), id="an api of other times"),
        pytest.param(request(METADATA, 99, b""), id="version too new"),
        pytest.param(request(METADATA, -1, b""), id="negative version"),
        pytest.param(request(PRODUCE, 2, b""), id="version too old"),
        pytest.param(request(METADATA, 1, b"\0\0"), id="body cut"),
        pytest.param(request(METADATA, 1, struct.pack(">i", 0x7FFFFFFF)), id="huge array"),
        pytest.param(request(PRODUCE, 3, b"\xff" * 30), id="produce without sense"),
        pytest.param(flexible(API_VERSIONS, 3, b""), id="flexible body cut"),
        pytest.param(b"", id="empty"),
        pytest.param(b"abc", id="header cut"),
        pytest.param(b"\0\3\0\1\0\0\0", id="header cut in the correlation id"),
    ],
)
def test_what_makes_no_sense_closes_the_connection(broker: Broker, payload: bytes) -> None:
    """There is no answer that a client could match, so there is none."""
    assert ask(broker.bootstrap, payload) is None


@pytest.mark.parametrize(
    "size_bytes", [-1, 0, -0x80000000, 0x7FFFFFFF, SOCKET_REQUEST_BYTES_MAX + 1]
)
def test_impossible_sizes_close_the_connection(broker: Broker, size_bytes: int) -> None:
    """A size that no request may have is not waited for."""
    with Wire(broker.bootstrap) as wire:
        wire.send(struct.pack(">i", size_bytes) + b"x" * 100)
        assert wire.receive_frame() is None


def test_another_protocol_closes_the_connection(broker: Broker) -> None:
    """A browser that got the port wrong does not hang."""
    with Wire(broker.bootstrap) as wire:
        wire.send(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert wire.receive_frame() is None


@pytest.mark.parametrize(
    ("payload", "answer"),
    [
        pytest.param(
            flexible(API_VERSIONS, 99, b""),
            struct.pack(">ih", 7, UNSUPPORTED_VERSION),
            id="ApiVersions too new",
        ),
        pytest.param(
            request(API_VERSIONS, -1, b""),
            struct.pack(">ih", 7, UNSUPPORTED_VERSION),
            id="ApiVersions negative",
        ),
        pytest.param(
            flexible(API_VERSIONS, 3, b"\x04a b\x02b\x00"),
            struct.pack(">ih", 7, INVALID_REQUEST),
            id="ApiVersions with an impossible client name",
        ),
        pytest.param(
            flexible(API_VERSIONS, 3, b"\x02a\x02b\x00"),
            struct.pack(">ih", 7, 0),
            id="ApiVersions as it should be",
        ),
        pytest.param(
            request(METADATA, 1, NO_TOPICS + b"junk"), struct.pack(">ii", 7, 1), id="bytes behind"
        ),
        pytest.param(
            struct.pack(">hhih", METADATA, 1, 7, -1) + NO_TOPICS,
            struct.pack(">ii", 7, 1),
            id="no client id",
        ),
        pytest.param(
            struct.pack(">hhih2s", METADATA, 1, 7, 2, b"\xff\xfe") + NO_TOPICS,
            struct.pack(">ii", 7, 1),
            id="client id that is no text",
        ),
    ],
)
def test_what_can_be_answered_is_answered(broker: Broker, payload: bytes, answer: bytes) -> None:
    """ApiVersions is always answered, so that a client of another time can find common ground."""
    found = ask(broker.bootstrap, payload)
    assert found is not None
    assert found[: len(answer)] == answer


def test_requests_before_a_bad_one_are_answered(broker: Broker) -> None:
    """Three in one write, the second unknown: the first is answered, then the connection ends."""
    with Wire(broker.bootstrap) as wire:
        frames = [request(API_VERSIONS, 0, b"", 1), request(999, 0, b""), request(18, 0, b"", 3)]
        wire.send(b"".join(struct.pack(">i", len(frame)) + frame for frame in frames))
        first = wire.receive_frame()
        assert first is not None
        assert struct.unpack_from(">ih", first) == (1, 0)
        assert wire.receive_frame() is None


def test_a_frame_may_come_byte_by_byte(broker: Broker) -> None:
    """However the network cuts a frame, it is one frame."""
    payload = request(API_VERSIONS, 0, b"", 5)
    with Wire(broker.bootstrap) as wire:
        for byte in struct.pack(">i", len(payload)) + payload:
            wire.send(bytes([byte]))
        answer = wire.receive_frame()
    assert answer is not None
    assert struct.unpack_from(">ih", answer) == (5, 0)


def test_half_a_frame_is_dropped(broker: Broker) -> None:
    """A client that goes in the middle of a frame leaves nothing behind."""
    with Wire(broker.bootstrap) as wire:
        wire.send(struct.pack(">i", 100) + b"abc")
        wire.finish()
        assert wire.receive_frame() is None


def test_a_frame_may_be_as_large_as_the_limit(broker: Broker) -> None:
    """socket.request.max.bytes itself is waited for; that alone takes no memory."""
    with Wire(broker.bootstrap) as wire:
        wire.send(struct.pack(">i", SOCKET_REQUEST_BYTES_MAX) + b"x" * 100)
        assert answers(broker.bootstrap)
        wire.finish()
        assert wire.receive_frame() is None


def test_random_bytes(broker: Broker) -> None:
    """Frames of noise, and noise without frames, are closed or answered, one after the other."""
    chance = random.Random(4)
    for number in range(200):
        noise = chance.randbytes(chance.randrange(1, 200))
        with Wire(broker.bootstrap) as wire:
            if number % 2:
                wire.send(noise)
            else:
                wire.send_frame(noise)
            wire.finish()
            wire.receive_frame()


def recorded_frames(golden: Path) -> list[bytes]:
    """Return what real clients once sent, a frame each."""
    frames: list[bytes] = []
    for file in sorted((golden / "wire").glob("*.jsonl")):
        for line in file.read_text().splitlines():
            event = json.loads(line)
            if event["from"] == "client":
                frames.append(bytes.fromhex(event["hex"]))
    return frames


def test_damaged_requests_of_real_clients(ours: OurBroker, golden: Path) -> None:
    """Recorded requests of five clients, damaged in many ways: no handler breaks over them."""
    chance = random.Random(4)
    logged = ours.log.stat().st_size
    frames = recorded_frames(golden)
    assert len(frames) > 300
    for frame in frames * 3:
        with Wire(ours.bootstrap) as wire:
            wire.send_frame(damaged(frame, chance, first=8))
            wire.finish()
    assert answers(ours.bootstrap)
    assert "Traceback" not in ours.log.read_text(errors="replace")[logged:]
