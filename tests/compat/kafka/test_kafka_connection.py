"""One connection: requests in any pieces, answers in order, faults that stay where they are."""

from __future__ import annotations

import json
import struct
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from logstore.compat.kafka.broker import Broker
from logstore.compat.kafka.registry import APIS
from logstore.compat.waiting import Later
from logstore.testing.simulated_host import SimulatedHost
from tests.compat.kafka.batches import batch
from tests.compat.kafka.conversation import joined, message_class
from tests.compat.kafka.peer import Peer, a_broker, fetch_fields, produce_fields

CLIENTS = ["aiokafka", "java", "kafka-python", "kafkajs", "librdkafka"]
API_VERSIONS, METADATA, PRODUCE, FETCH, HEARTBEAT = 18, 3, 0, 1, 12
ALL_TOPICS = {"topics": None}


def header(
    key: int, version: int, correlation_id: int = 7, client_id: bytes | None = b"me"
) -> bytes:
    """Return a request header of version 1."""
    name = struct.pack(">h", -1) if client_id is None else struct.pack(">h", len(client_id))
    return struct.pack(">hhi", key, version, correlation_id) + name + (client_id or b"")


def framed(payload: bytes) -> bytes:
    """Return the payload with its length in front."""
    return struct.pack(">i", len(payload)) + payload


def frames_in(output: bytes) -> list[bytes]:
    """Return the frames, each of which must be whole."""
    found: list[bytes] = []
    while output:
        size_bytes = int.from_bytes(output[:4], "big", signed=True)
        assert 4 <= size_bytes <= len(output) - 4
        found.append(output[4 : 4 + size_bytes])
        output = output[4 + size_bytes :]
    return found


def correlation_ids(output: bytes) -> list[int]:
    """Return what the answers answer."""
    return [int.from_bytes(frame[:4], "big", signed=True) for frame in frames_in(output)]


def is_served(broker: Broker) -> bool:
    """Tell whether a new client gets what it asks for."""
    answer = Peer(broker).ask("Metadata", 12, ALL_TOPICS)
    return bool(answer.message["brokers"])


# pieces and order


@cache
def recorded(client: str) -> bytes:
    """Return everything that a recorded client sent, over all its connections, in order."""
    golden = Path(__file__).parents[2] / "golden" / "wire" / f"{client}.jsonl"
    lines = map(json.loads, golden.read_text().splitlines())
    # Asking for what is not served closes the connection, which would end the test.
    return b"".join(
        framed(bytes.fromhex(line["hex"]))
        for line in lines
        if line["from"] == "client" and line["api_key"] in APIS
    )


def replayed(client: str, pieces: list[bytes]) -> tuple[list[bytes], list[bytes]]:
    """Return (answers, logs) when the pieces arrive one after the other and time passes then."""
    host = SimulatedHost()
    broker = a_broker(host, group_initial_rebalance_delay_ms=0)
    connection = broker.connect("127.0.0.1")
    output = b"".join(joined(connection.feed(piece)) for piece in pieces)
    for _ in range(1000):
        due_ms = broker.timers.next_due_ms()
        if not connection.is_waiting or due_ms is None:
            break
        host.clock.advance(max(0, due_ms - host.clock.monotonic_ms()))
        broker.timers.run()
        output += joined(connection.output)
        connection.output.clear()
    assert not connection.is_waiting
    logs = [bytes(b.data) for p in broker.store.partitions() for b in p.batches()]
    return frames_in(output), logs


@cache
def replayed_whole(client: str) -> tuple[list[bytes], list[bytes]]:
    """Return what comes of all bytes at once."""
    return replayed(client, [recorded(client)])


@pytest.mark.parametrize("client", CLIENTS)
def test_recorded_requests_are_answered_however_they_are_cut(client: str) -> None:
    """Byte by byte, or in pieces of any one size, the answers are those to everything at once."""
    data = recorded(client)
    assert len(replayed_whole(client)[0]) > 20
    for step in (1, 2, 3, 7, 64, 1000, 16 * 1024 - 1):
        pieces = [data[start : start + step] for start in range(0, len(data), step)]
        assert replayed(client, pieces) == replayed_whole(client), step


@given(client=st.sampled_from(CLIENTS), cuts=st.lists(st.integers(0, 50_000), max_size=30))
def test_recorded_requests_are_answered_in_any_pieces(client: str, cuts: list[int]) -> None:
    """Pieces of different sizes make no difference either."""
    data = recorded(client)
    ends = sorted({cut % len(data) for cut in cuts} | {0, len(data)})
    pieces = [data[start:end] for start, end in pairwise(ends)]
    assert replayed(client, pieces) == replayed_whole(client)


def test_pipelined_requests_are_answered_in_order() -> None:
    """Also when some of them must wait: nothing overtakes."""
    host = SimulatedHost()
    broker = a_broker(host)
    broker.create_topic("t", 2)
    peer = Peer(broker)
    data = b""
    asked: list[tuple[str, int]] = []
    for index in range(40):
        api, version, fields = [
            ("Metadata", 12, ALL_TOPICS),
            ("Fetch", 12, fetch_fields([("t", [{"partition": 1, "fetch_offset": index}])], 12,
                                       max_wait_ms=100)),
            ("Produce", 9, produce_fields([("t", [(0, batch())])], 9, 1)),
            ("Fetch", 4, fetch_fields([("t", [{"partition": 0, "fetch_offset": 0}])], 4)),
        ][index % 4]  # fmt: skip
        data += peer.encoded(api, version, fields)
        asked.append((api, index + 1))
    output = joined(peer.connection.feed(data))
    producer = Peer(broker)
    while peer.connection.is_waiting:
        if len(correlation_ids(output)) % 8 == 1:
            producer.produce([("t", [(1, batch())])])
        else:
            host.clock.advance(100)
            broker.timers.run()
        output += joined(peer.connection.output)
        peer.connection.output.clear()
    assert correlation_ids(output) == list(range(1, 41))


def test_what_comes_while_an_answer_is_awaited_is_kept() -> None:
    """However much: the memory grows with it and is given back."""
    broker = a_broker()
    broker.create_topic("t", 2)
    peer = Peer(broker)
    asked = [{"partition": 0, "fetch_offset": 0}]
    peer.send("Fetch", 12, fetch_fields([("t", asked)], 12, max_wait_ms=1000))
    for _ in range(30):
        peer.send_produce([("t", [(1, batch(bytes(100_000)))])])
    assert peer.answers() == []
    Peer(broker).produce([("t", [(0, batch())])])
    answers = peer.answers()
    assert [answer.api for answer in answers] == ["Fetch"] + ["Produce"] * 30
    assert [a.partition["base_offset"] for a in answers[1:]] == list(range(30))


# headers


@pytest.mark.parametrize("version", [-1, 5, 6, 99, 2**15 - 1])
def test_an_api_versions_of_another_time_is_answered_in_version_0(version: int) -> None:
    """With 35 and the range that is served, so that the client can ask again (KIP-511)."""
    broker = a_broker()
    connection = broker.connect("127.0.0.1")
    output = joined(connection.feed(framed(header(API_VERSIONS, version) + b"\0whatever")))
    answer = message_class("ApiVersionsResponse").decode(
        output, version=0, header=True, framed=True
    )
    assert answer.error_code == 35
    ranges = [(api.api_key, api.min_version, api.max_version) for api in answer.api_keys]
    assert ranges == [(18, 0, 4)]
    assert joined(connection.feed(framed(header(API_VERSIONS, 0))))  # the connection lives on


@pytest.mark.parametrize(
    ("key", "version"),
    [(999, 0), (-1, 0), (4, 0), (METADATA, 99), (METADATA, -1), (PRODUCE, 2), (FETCH, 3),
     (FETCH, 19)],
)  # fmt: skip
def test_unknown_apis_and_versions_close(key: int, version: int) -> None:
    """There is no answer that the client could read."""
    broker = a_broker()
    connection = broker.connect("127.0.0.1")
    assert connection.feed(framed(header(key, version) + bytes(50))) == []
    assert connection.is_closing
    assert is_served(broker)


@pytest.mark.parametrize("client_id", [None, b"", b"x" * 300, b"\xff\xfe", "größe".encode()])
@pytest.mark.parametrize("version", [0, 9, 12])
def test_any_client_id_is_taken(client_id: bytes | None, version: int) -> None:
    """Null, empty, long, not UTF-8: the request is served."""
    broker = a_broker()
    connection = broker.connect("127.0.0.1")
    body = message_class("MetadataRequest")(version=version, topics=[]).encode(version=version)
    tags = b"\0" if version >= 9 else b""
    output = joined(connection.feed(framed(header(METADATA, version, 5, client_id) + tags + body)))
    assert correlation_ids(output) == [5]


@pytest.mark.parametrize("nameless", [None, b""])
def test_a_client_has_the_id_of_its_last_request(nameless: bytes | None) -> None:
    """Every request says its own; one without a name is not that of the one before."""
    connection = a_broker().connect("127.0.0.1")
    body = message_class("MetadataRequest")(version=0, topics=[]).encode(version=0)
    found: list[str] = []
    for client_id in (b"me", nameless, b"me", b"you", nameless):
        connection.feed(framed(header(METADATA, 0, 5, client_id) + body))
        found.append(connection.client.client_id)
    assert found == ["me", "", "me", "you", ""]


def test_tags_in_the_header_are_skipped() -> None:
    """Tagged fields that are not known yet do not matter."""
    connection = a_broker().connect("127.0.0.1")
    body = message_class("MetadataRequest")(version=12, topics=[]).encode(version=12)
    tags = b"\x02\x00\x03abc\xac\x02\x01z"
    output = joined(connection.feed(framed(header(METADATA, 12) + tags + body)))
    assert correlation_ids(output) == [7]


_TAIL_BYTES = {"Metadata": 1, "Produce": 0, "Fetch": 2, "FindCoordinator": 0}


@pytest.mark.parametrize("cut", range(1, 40))
def test_a_frame_that_ends_too_early_closes(cut: int) -> None:
    """Wherever in header or body; unless what is left is a whole request, nothing is answered."""
    broker = a_broker()
    broker.create_topic("t", 1)
    peer = Peer(broker)
    for api, version, fields in (
        ("Metadata", 12, {"topics": [{"name": "t"}]}),
        ("Produce", 9, produce_fields([("t", [(0, batch())])], 9, 1)),
        ("Fetch", 12, fetch_fields([("t", [{"partition": 0, "fetch_offset": 0}])], 12)),
        ("FindCoordinator", 4, {"key_type": 0, "coordinator_keys": ["g"]}),
    ):
        payload = peer.encoded(api, version, fields)[4:]
        connection = broker.connect("127.0.0.1")
        connection.feed(framed(payload[:-cut]))
        # Rack id and tags at the end say nothing here, and are not missed.
        assert connection.is_closing or cut <= _TAIL_BYTES[api]
    assert broker.topics["t"].partitions[0].end_offset == 0
    assert is_served(broker)


@pytest.mark.parametrize("size_bytes", [-1, -(2**31), 0, 1, 7, 9])
def test_sizes_that_no_request_has_close(size_bytes: int) -> None:
    """Negative, empty, or too short for a header."""
    broker = a_broker()
    connection = broker.connect("127.0.0.1")
    data = struct.pack(">i", size_bytes) + header(METADATA, 0, client_id=b"")[: max(size_bytes, 0)]
    assert connection.feed(data) == []
    assert connection.is_closing
    assert is_served(broker)


def test_the_largest_request_is_a_setting() -> None:
    """socket.request.max.bytes is taken whole; one byte more closes before it has arrived."""
    broker = a_broker(socket_request_max_bytes=1000)
    payload = header(API_VERSIONS, 0)
    connection = broker.connect("127.0.0.1")
    assert connection.feed(framed(payload + bytes(1000 - len(payload))))
    assert not connection.is_closing
    assert connection.feed(struct.pack(">i", 1001)) == []
    assert connection.is_closing


def test_a_huge_size_takes_no_memory() -> None:
    """Before the bytes have come there is a buffer for the frame at most, and for one only."""
    broker = a_broker()
    connection = broker.connect("127.0.0.1")
    connection.feed(struct.pack(">i", 100 * 1024 * 1024) + b"abc")
    assert not connection.is_closing
    assert len(connection.writable()) <= 100 * 1024 * 1024 + 4
    other = broker.connect("127.0.0.1")
    other.feed(struct.pack(">i", 2**31 - 1) + b"abc")
    assert (other.is_closing, len(other.writable()) < 1_000_000) == (True, True)


def test_after_the_end_nothing_is_read() -> None:
    """What follows the frame that closed the connection is not looked at."""
    broker = a_broker()
    broker.create_topic("t", 1)
    peer = Peer(broker)
    produce = peer.encoded("Produce", 9, produce_fields([("t", [(0, batch())])], 9, 1))
    output = joined(peer.connection.feed(produce + framed(b"abc") + produce))
    assert correlation_ids(output) == [1]
    assert peer.connection.is_closing
    assert peer.connection.feed(produce) == []
    assert broker.topics["t"].partitions[0].end_offset == 1


# faults of ours


def boom(*_: object) -> Any:
    """Fail as only a mistake in the code does."""
    raise RuntimeError("a fault of ours")


@pytest.mark.parametrize("is_raw", [True, False])
def test_a_handler_that_fails_closes_its_connection_only(
    is_raw: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The traceback is logged; other connections, and the fetches that wait, live on."""
    broker = a_broker()
    broker.create_topic("t", 1)
    waiting, victim = Peer(broker), Peer(broker)
    asked = [{"partition": 0, "fetch_offset": 0}]
    waiting.send("Fetch", 12, fetch_fields([("t", asked)], 12, max_wait_ms=1000))
    old = APIS[HEARTBEAT]
    broken = attrs.evolve(old, handle=None if is_raw else boom, handle_raw=boom if is_raw else None)
    monkeypatch.setitem(APIS, HEARTBEAT, broken)
    fields = {"group_id": "g", "generation_id": 1, "member_id": "m"}
    victim.send("Heartbeat", 4, fields)
    assert (victim.answers(), victim.connection.is_closing) == ([], True)
    assert "a fault of ours" in caplog.text
    assert is_served(broker)
    Peer(broker).produce([("t", [(0, batch())])])
    assert waiting.answer().partition["high_watermark"] == 1


def test_an_answer_that_cannot_be_written_is_a_fault_of_ours(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The request was sound: what went wrong is logged as an error, whatever its kind."""
    broker = a_broker()

    def unwritable(*_: object) -> Any:
        response = message_class("HeartbeatResponse")
        return response(version=4, throttle_time_ms="no number", error_code=0)

    broken = attrs.evolve(APIS[HEARTBEAT], handle=unwritable)
    monkeypatch.setitem(APIS, HEARTBEAT, broken)
    victim = Peer(broker)
    victim.send("Heartbeat", 4, {"group_id": "g", "generation_id": 1, "member_id": "m"})
    assert (victim.answers(), victim.connection.is_closing) == ([], True)
    assert [one.levelname for one in caplog.records] == ["ERROR"]
    assert is_served(broker)


def test_an_answer_that_cannot_be_written_closes_its_connection_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also when it comes late: whoever brings the answer does not suffer."""
    broker = a_broker()
    promise: Later[Any] = Later()

    def later(*_: object) -> Later[Any]:
        return promise

    broken = attrs.evolve(APIS[HEARTBEAT], handle=later)
    monkeypatch.setitem(APIS, HEARTBEAT, broken)
    victim = Peer(broker)
    victim.send("Heartbeat", 4, {"group_id": "g", "generation_id": 1, "member_id": "m"})
    told: list[str] = []
    victim.connection.on_output = lambda: told.append("the driver hangs up")
    promise.answer("no message")
    assert (victim.connection.is_closing, victim.connection.is_waiting) == (True, False)
    assert told == ["the driver hangs up"]
    assert is_served(broker)


def test_a_fetch_that_fails_while_it_waits_closes_its_connection_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The producer that woke it is answered, and nothing of the fetch is left."""
    broker = a_broker()
    topic = broker.create_topic("t", 1)
    due_ms = broker.timers.next_due_ms()
    victim = Peer(broker)
    asked = [{"partition": 0, "fetch_offset": 0}]
    victim.send("Fetch", 12, fetch_fields([("t", asked)], 12, max_wait_ms=1000))
    monkeypatch.setattr(topic.partitions[0], "read", boom)
    assert Peer(broker).produce([("t", [(0, batch())])]).partition["error_code"] == 0
    assert (victim.answers(), victim.connection.is_closing) == ([], True)
    assert broker.timers.next_due_ms() == due_ms
    assert topic.partitions[0].on_append is None


def test_a_connection_may_be_lost_at_any_time() -> None:
    """While it waits, twice, or before it has said anything."""
    broker = a_broker()
    broker.create_topic("t", 1)
    peer = Peer(broker)
    asked = [{"partition": 0, "fetch_offset": 0}]
    peer.send("Fetch", 12, fetch_fields([("t", asked)], 12, max_wait_ms=1000))
    for _ in range(2):
        peer.connection.lost()
    broker.connect("127.0.0.1").lost()
    Peer(broker).produce([("t", [(0, batch())])])
    assert peer.answers() == []
    assert is_served(broker)
