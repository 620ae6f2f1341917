"""What nobody who speaks HTTP/2 does: each is told which rule it was, and hung up on."""

from __future__ import annotations

import random
import struct

import hpack
import pytest

from logstore.compat.grpc.connection import GrpcConnection
from logstore.compat.grpc.frames import PREFACE, ErrorCode
from tests.compat.grpc.scripted_calls import ClientPeer, ScriptedService, framed

DATA, HEADERS, PRIORITY, RST, SETTINGS, PUSH, PING, GOAWAY, WINDOW, CONTINUATION = range(10)
BEGIN = [
    (":method", "POST"), (":scheme", "http"), (":path", "/test/Hold"), (":authority", "a"),
    ("content-type", "application/grpc"),
]  # fmt: skip


def a_frame(kind: int, flags: int, number: int, payload: bytes = b"") -> bytes:
    """Return a frame."""
    head = struct.pack(">HBBBL", len(payload) >> 8, len(payload) & 255, kind, flags, number)
    return head + payload


def beginning(number: int, flags: int = 4) -> bytes:
    """Return a frame that begins a call."""
    return a_frame(HEADERS, flags, number, hpack.Encoder().encode(BEGIN))


BROKEN = {
    "a frame that is too large": (a_frame(DATA, 0, 1, bytes(16_385)), 6),
    "data of no stream": (a_frame(DATA, 0, 0, b"x"), 1),
    "data before headers": (a_frame(DATA, 0, 3, b"x"), 1),
    "a stream of ours": (beginning(2), 1),
    "padding longer than the frame": (beginning(1) + a_frame(DATA, 8, 1, b"\5abc"), 1),
    "padding without its length": (beginning(1) + a_frame(DATA, 8, 1), 1),
    "headers that are none": (a_frame(HEADERS, 4, 1, b"\xff\xff\xff\xff\xff\xff"), 9),
    "a place outside of the table": (a_frame(HEADERS, 4, 1, b"\xfe"), 9),
    "headers within headers": (beginning(1, 0) + beginning(3), 1),
    "another one's continuation": (beginning(1, 0) + a_frame(CONTINUATION, 4, 3), 1),
    "a continuation of nothing": (a_frame(CONTINUATION, 4, 1), 1),
    "headers without an end": (
        beginning(1, 0) + a_frame(CONTINUATION, 0, 1, bytes(16_000)) * 9, 11,
    ),
    "headers in the middle": (beginning(1) + beginning(1), 1),
    "settings of a stream": (a_frame(SETTINGS, 0, 1), 1),
    "half a setting": (a_frame(SETTINGS, 0, 0, b"\0\4\0"), 6),
    "a window above all": (a_frame(SETTINGS, 0, 0, struct.pack(">HL", 4, 2**31)), 3),
    "frames of nothing": (a_frame(SETTINGS, 0, 0, struct.pack(">HL", 5, 100)), 1),
    "a push": (a_frame(PUSH, 4, 1, bytes(4)), 1),
    "half a ping": (a_frame(PING, 0, 0, b"1234"), 6),
    "a ping of a stream": (a_frame(PING, 0, 1, bytes(8)), 1),
    "a window of no bytes": (a_frame(WINDOW, 0, 0, bytes(4)), 1),
    "a window too wide": (a_frame(WINDOW, 0, 0, struct.pack(">L", 2**31 - 1)), 3),
    "half a window": (a_frame(WINDOW, 0, 0, bytes(3)), 6),
    "a window before headers": (a_frame(WINDOW, 0, 7, struct.pack(">L", 1)), 1),
    "a reset before headers": (a_frame(RST, 0, 7, bytes(4)), 1),
    "data after a reset": (beginning(1) + a_frame(RST, 0, 1, bytes(4)) + a_frame(DATA, 0, 1), 5),
    "headers after a reset": (beginning(1) + a_frame(RST, 0, 1, bytes(4)) + beginning(1), 5),
    "a stream that comes too late": (beginning(5) + beginning(3), 5),
    "a stream that depends on itself": (a_frame(PRIORITY, 0, 3, b"\0\0\0\3\0"), 1),
    "headers that depend on themselves": (
        a_frame(HEADERS, 4 | 32, 3, b"\0\0\0\3\0" + hpack.Encoder().encode(BEGIN)), 1,
    ),
    "half a priority": (a_frame(PRIORITY, 0, 3, bytes(4)), 6),
    "a priority of nothing": (a_frame(PRIORITY, 0, 0, bytes(5)), 1),
    "settings in an acknowledgement": (a_frame(SETTINGS, 1, 0, bytes(6)), 6),
    "a push of two": (a_frame(SETTINGS, 0, 0, struct.pack(">HL", 2, 2)), 1),
    "frames of 16 MiB": (a_frame(SETTINGS, 0, 0, struct.pack(">HL", 5, 2**24)), 1),
    "the end of one stream": (a_frame(GOAWAY, 0, 1, bytes(8)), 1),
    "half a reset": (beginning(1) + a_frame(RST, 0, 1, bytes(3)), 6),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_broken_rules(name: str) -> None:
    """The peer is told, calls under way are cancelled, and nothing more is read."""
    data, code = BROKEN[name]
    client = ClientPeer()
    client.feed(data)
    client.exchange()
    assert client.connection.is_closing
    assert client.goaway == ErrorCode(code)
    assert all(served.is_cancelled for served in client.service.begun)


STREAM_ONLY = {
    "data after the end": (beginning(1, 5) + a_frame(DATA, 0, 1, b"x"), 5),
    "a call's window of no bytes": (beginning(1) + a_frame(WINDOW, 0, 1, bytes(4)), 1),
    "a call's window too wide": (
        beginning(1) + a_frame(WINDOW, 0, 1, struct.pack(">L", 2**31 - 1)), 3,
    ),
}  # fmt: skip


MALFORMED = {
    "an unknown one of HTTP's": [*BEGIN, (":thing", "x")],
    "one of answers": [(":status", "200"), *BEGIN],
    "one too late": [*BEGIN, (":authority", "b")],
    "one twice": [BEGIN[0], *BEGIN],
    "no method": BEGIN[1:],
    "no path": [one for one in BEGIN if one[0] != ":path"],
    "an empty path": [(":path", ""), *(one for one in BEGIN if one[0] != ":path")],
    "large letters": [*BEGIN, ("X-Thing", "x")],
    "of a connection": [*BEGIN, ("connection", "close")],
    "te": [*BEGIN, ("te", "gzip")],
}


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_headers(name: str) -> None:
    """The stream is reset, and the next one is served."""
    client, encoder = ClientPeer(), hpack.Encoder()
    client.feed(a_frame(HEADERS, 5, 1, encoder.encode(MALFORMED[name])))
    assert client.connection.output[-1] == a_frame(RST, 0, 1, struct.pack(">L", 1))
    assert not client.service.begun
    client.feed(a_frame(HEADERS, 4, 3, encoder.encode(BEGIN)))
    assert len(client.service.begun) == 1
    client.feed(a_frame(HEADERS, 5, 3, encoder.encode(BEGIN[:1])))
    assert client.service.begun[0].is_cancelled


@pytest.mark.parametrize("name", STREAM_ONLY)
def test_what_costs_one_call_alone(name: str) -> None:
    """The others go on."""
    data, code = STREAM_ONLY[name]
    client = ClientPeer()
    client.feed(data)
    output = b"".join(bytes(chunk) for chunk in client.connection.output)  # type: ignore[arg-type]
    assert a_frame(RST, 0, 1, struct.pack(">L", code)) in output
    assert client.service.begun[0].is_cancelled
    client.connection.output.clear()
    assert not client.connection.is_closing


def test_what_breaks_no_rule() -> None:
    """Frames of other kinds, priorities, padding, settings that nobody knows, a late reset."""
    client, block = ClientPeer(), hpack.Encoder().encode(BEGIN)
    client.feed(
        a_frame(99, 255, 1, b"whatever")
        + a_frame(PRIORITY, 0, 9, bytes(5))
        + a_frame(SETTINGS, 0, 0, struct.pack(">HL", 77, 1))
        + a_frame(HEADERS, 8 | 32, 1, b"\3" + bytes(5) + block[:4] + bytes(3))
        + a_frame(CONTINUATION, 0, 1, block[4:9])
        + a_frame(CONTINUATION, 4, 1, block[9:])
        + a_frame(DATA, 8, 1, b"\2" + framed(b"abc") + bytes(2))
        + a_frame(RST, 0, 1, bytes(4)) * 2
        + a_frame(WINDOW, 0, 1, struct.pack(">L", 5))
        + a_frame(GOAWAY, 0, 0, bytes(8))
    )
    assert not client.connection.is_closing
    assert client.service.begun[0].heard == [b"abc"]


@pytest.mark.parametrize("data", [b"GET / HTTP/1.1\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nXX", b"\0"])
def test_who_does_not_greet(data: bytes) -> None:
    """Is hung up on without a word."""
    connection = GrpcConnection(ScriptedService(), "192.0.2.1", 1)
    connection.writable()[: len(data)] = data
    connection.received(len(data))
    assert (connection.is_closing, connection.heir, connection.output) == (True, None, [])


def test_damaged_talk() -> None:
    """Whatever comes, a connection serves it or ends; it raises nothing."""
    draw = random.Random(7)
    for _ in range(400):
        talk = bytearray(
            a_frame(SETTINGS, 0, 0)
            + beginning(1)
            + a_frame(DATA, 1, 1, framed(b"x" * draw.randrange(50)))
            + beginning(3, 0)
            + a_frame(CONTINUATION, 4, 3)
            + a_frame(WINDOW, 0, 3, struct.pack(">L", 9))
            + a_frame(PING, 0, 0, bytes(8))
            + a_frame(RST, 0, 3, bytes(4))
        )
        for _ in range(draw.randrange(1, 6)):
            talk[draw.randrange(len(talk))] = draw.randrange(256)
        connection = GrpcConnection(ScriptedService(), "192.0.2.1", 1)
        data = PREFACE + bytes(talk)
        while data and not connection.is_closing:
            count = min(len(data), draw.randrange(1, 60))
            connection.writable()[:count] = data[:count]
            connection.received(count)
            data = data[count:]
        assert connection.output, "the greeting at least"
