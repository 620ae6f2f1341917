"""Calls over HTTP/2, asked by a client of others' making."""

from __future__ import annotations

import gzip
import zlib

import pytest
from h2.settings import SettingCodes

from logstore.compat.grpc.headers import metadata_of, timeout_ms_of
from tests.compat.grpc.scripted_calls import BYTES_MAX, ClientPeer, framed

SIZES = (0, 1, 16_379, 16_380, 16_384, 65_530, 65_535, 200_000, 5_000_000)


@pytest.mark.parametrize("size_bytes", SIZES)
def test_one_message_and_one_answer(size_bytes: int) -> None:
    """Of any size: windows open as they are used."""
    heard = ClientPeer().ask("/test/Join", bytes(size_bytes))
    assert heard.headers[":status"] == "200"
    assert heard.headers["content-type"] == "application/grpc"
    assert (heard.messages, heard.status) == ([bytes(size_bytes)], "0")
    assert (heard.is_ended, heard.reset) == (True, None)


@pytest.mark.parametrize("cut_bytes", [1, 2, 7, 100])
def test_however_bytes_are_cut(cut_bytes: int) -> None:
    """Frames and messages are put together again."""
    client = ClientPeer(cut_bytes=cut_bytes)
    for turn in range(3):
        messages = [b"%d" % turn * 300, b"", b"x"]
        assert client.ask("/test/Each", *messages).messages == messages


def test_both_talk_at_once() -> None:
    """Each message is answered before the next one is said; calls do not wait for each other."""
    client = ClientPeer()
    first, second = client.begin("/test/Echo"), client.begin("/test/Echo")
    for turn in range(5):
        for number in (first, second):
            client.say(number, framed(b"%d of %d" % (turn, number)))
            assert client.heard[number].messages[-1] == b"%d of %d" % (turn, number)
    client.say(second, b"", is_last=True)
    assert (client.heard[second].status, client.heard[first].status) == ("0", None)
    client.say(first, b"", is_last=True)
    assert client.heard[first].is_ended


def test_thousands_of_calls() -> None:
    """Nothing is left of those that have ended, and windows do not wear out."""
    client = ClientPeer()
    for turn in range(2000):
        assert client.ask("/test/Join", b"%d" % turn, request_id=str(turn)).status == "0"
    assert not client.connection._calls  # pyright: ignore[reportPrivateUsage]
    assert not client.connection._blocked  # pyright: ignore[reportPrivateUsage]


def test_metadata_and_time() -> None:
    """Are known to who serves a call."""
    client = ClientPeer()
    client.ask("/test/Join", b"", x_mq_client_id="größe", grpc_timeout="1500m")
    call = client.service.begun[0].call
    assert (call.metadata["x-mq-client-id"], call.timeout_ms) == ("größe", 1500)
    assert (call.host, call.port, call.path) == ("192.0.2.1", 4711, "/test/Join")


def test_of_two_of_a_name() -> None:
    """The last one counts, as in Java's gRPC."""
    fields = [(":method", "POST"), (":scheme", "http"), (":path", "/a/b"), ("x-mq-client-id", "a")]
    assert metadata_of([*fields, ("x-mq-client-id", "b")])["x-mq-client-id"] == "b"


@pytest.mark.parametrize(
    ("text", "timeout_ms"),
    [
        ("1H", 3_600_000), ("2M", 120_000), ("3S", 3000), ("4m", 4), ("5000u", 5), ("6000000n", 6),
        (None, None), ("", None), ("S", None), ("1x", None), ("-1S", None), ("123456789S", None),
    ],
)  # fmt: skip
def test_timeouts(text: str | None, timeout_ms: float | None) -> None:
    """A number and its unit; what is none waits for ever."""
    found = timeout_ms_of(text)
    assert found == (None if timeout_ms is None else pytest.approx(timeout_ms))


@pytest.mark.parametrize(
    ("path", "status", "text"),
    [
        ("/test/Refuse", "3", "100%25 gr%C3%B6%C3%9Fer%0A"),
        ("/test/Fail", "2", "ValueError: out of luck"),
        ("/other/Thing", "12", "Method not found: other/Thing"),
    ],
)
def test_refused_calls(path: str, status: str, text: str) -> None:
    """Are told why, in a text of plain letters; the connection goes on."""
    client = ClientPeer()
    heard = client.ask(path, b"x")
    assert heard.headers[":status"] == "200"
    assert (heard.status, heard.headers["grpc-message"]) == (status, text)
    assert client.ask("/test/Join", b"y").messages == [b"y"]


@pytest.mark.parametrize(
    ("headers", "status"),
    [({":method": "GET"}, "405"), ({"content-type": "text/plain"}, "415")],
)
def test_who_does_not_speak_grpc(headers: dict[str, str], status: str) -> None:
    """Is told so in HTTP."""
    client = ClientPeer()
    number = client.begin("/test/Join", **headers)
    assert client.heard[number].headers == {":status": status}
    assert client.ask("/test/Join", b"y").messages == [b"y"]


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
def test_compressed_messages(encoding: str) -> None:
    """Are read, and what is no such thing is refused."""
    client, message = ClientPeer(), b"again and " * 1000
    data = gzip.compress(message) if encoding == "gzip" else zlib.compress(message)
    for sent, status in ((data, "0"), (data[:-5], "13"), (b"nothing of it", "13")):
        number = client.begin("/test/Join", grpc_encoding=encoding)
        client.say(number, framed(sent, is_compressed=True), is_last=True)
        assert client.heard[number].status == status
    assert client.heard[1].messages == [message]


def test_messages_that_cannot_be_read() -> None:
    """Too large ones, on the wire or once inflated, and those that nobody said how to read."""
    client, bomb = ClientPeer(), gzip.compress(bytes(BYTES_MAX + 1))
    number = client.begin("/test/Join")
    client.say(number, framed(bytes(BYTES_MAX + 1))[:100])
    assert client.heard[number].status == "8"
    number = client.begin("/test/Join", grpc_encoding="gzip")
    client.say(number, framed(bomb, is_compressed=True), is_last=True)
    assert client.heard[number].status == "8"
    for data in (framed(b"x", is_compressed=True), b"\2\0\0\0\1x", b"\0\0\0\0\2x"):
        number = client.begin("/test/Join")
        client.say(number, data, is_last=True)
        assert client.heard[number].status == "13"
    assert client.ask("/test/Join", b"x", grpc_encoding="br").status == "12"
    assert client.ask("/test/Join", bytes(BYTES_MAX)).status == "0"


def test_an_answer_before_the_request_is_whole() -> None:
    """The rest of it is asked for no more, and what is under way is dropped."""
    client = ClientPeer()
    number = client.begin("/test/Hasty")
    client.say(number, framed(b"x"))
    heard = client.heard[number]
    assert (heard.messages, heard.status, heard.reset) == ([b"enough"], "0", 0)
    client.feed(b"\0\0\1\0\0\0\0\0" + bytes((number,)) + b"x")
    assert client.ask("/test/Join", b"y").messages == [b"y"]


def test_a_client_that_reads_slowly() -> None:
    """Is sent no more than it takes, and the rest when it takes more; others are not kept."""
    client = ClientPeer()
    client.is_reading = False
    number = client.begin("/test/Each")
    messages = [bytes((turn,)) * 30_000 for turn in range(4)]
    client.say(number, b"".join(map(framed, messages)), is_last=True)
    heard, call = client.heard[number], client.service.begun[0].call
    assert len(heard.data) == 65_535
    assert call.told_count == 2
    client.h2.increment_flow_control_window(1_000_000)
    client.exchange()
    assert len(heard.data) == 65_535
    assert client.ask("/test/Join", b"y").messages == [b"y"]
    client.h2.increment_flow_control_window(1_000_000, number)
    client.exchange()
    assert (heard.messages, heard.status, call.told_count) == (messages, "0", 4)


def test_a_window_that_is_made_smaller() -> None:
    """May be overdrawn, and is paid back before more comes."""
    client = ClientPeer()
    client.is_reading = False
    number = client.begin("/test/Each")
    client.say(number, framed(bytes(100_000)), is_last=True)
    client.h2.increment_flow_control_window(1_000_000)
    for window_bytes in (10, 80_000, 100_000, 100_005):
        client.h2.update_settings({SettingCodes.INITIAL_WINDOW_SIZE: window_bytes})
        client.exchange()
        assert len(client.heard[number].data) == max(65_535, window_bytes)
    assert client.heard[number].status == "0"


@pytest.mark.parametrize("is_gone", [True, False])
def test_who_does_not_listen_any_more(*, is_gone: bool) -> None:
    """Who serves the call is told, and knows what has left in full."""
    client = ClientPeer()
    client.is_reading = False
    number, other = client.begin("/test/Each"), client.begin("/test/Hold")
    client.say(number, framed(bytes(60_000)) * 2, is_last=True)
    if is_gone:
        client.connection.lost()
    else:
        client.h2.reset_stream(number)
        client.exchange()
    each, hold = client.service.begun
    assert (each.is_cancelled, each.call.told_count) == (True, 1)
    assert hold.is_cancelled == is_gone
    if not is_gone:
        client.say(other, framed(b"x"))
        assert hold.heard == [b"x"]
    each.call.tell(b"nobody hears it")
    each.call.end()
    assert not client.connection.output


def test_pings_are_answered() -> None:
    """With what they said."""
    client = ClientPeer()
    client.h2.ping(b"12345678")
    client.feed(client.h2.data_to_send())
    assert client.connection.output == [b"\0\0\x08\6\1\0\0\0\x0012345678"]


def test_a_service_that_stops() -> None:
    """Says goodbye, and takes no more calls."""
    client = ClientPeer()
    client.begin("/test/Hold")
    client.connection.hang_up()
    client.exchange()
    assert (client.goaway, client.connection.is_closing) == (0, True)
    assert client.service.begun[0].is_cancelled
