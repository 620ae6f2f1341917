"""RocketMQ's requests that meet a planned fault, with time that stands still."""

from __future__ import annotations

from typing import Any

import pytest

from logstore.compat.faults.request_faults import RequestFaults
from logstore.compat.rocketmq.faults.faulty_connection import make_faulty
from logstore.compat.rocketmq.name_server.name_server import NameServer
from logstore.compat.rocketmq.wire.codes import RequestCode, ResponseCode
from logstore.testing.simulated_host import SimulatedHost
from tests.compat.rocketmq.broker_peer import ONEWAY, TOPIC, Peer, a_broker, sent_fields
from tests.compat.rocketmq.frames import answers, joined, request

SEND = RequestCode.SEND_MESSAGE_V2


@pytest.fixture
def faults() -> RequestFaults:
    """Return a place to plan faults."""
    return RequestFaults()


@pytest.fixture
def peer(faults: RequestFaults) -> Peer:
    """Return a client of a broker whose requests meet `faults`; its topic is there."""
    broker = a_broker()
    make_faulty(broker, faults)
    peer = Peer(broker)
    assert peer.produce(b"first").code == ResponseCode.SUCCESS
    return peer


def bodies(peer: Peer) -> list[bytes]:
    """Return what is stored, as any client reads it."""
    return [bytes(message.body) for message in peer.messages()]


def send(peer: Peer, body: bytes = b"x", topic: str = TOPIC, *, flag: int = 0) -> int:
    """Send a message; return the opaque number of the request."""
    return peer.send(SEND, sent_fields(topic, 0), body, flag=flag)


def let_pass(peer: Peer, delay_ms: float) -> None:
    """Let time pass."""
    clock: Any = peer.broker.host.clock
    clock.advance(delay_ms)
    peer.broker.timers.run()


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_send_fails(peer: Peer, faults: RequestFaults, when: Any) -> None:
    """It is not served, or it is and the answer lies."""
    faults.fail("SEND_MESSAGE_V2", "SERVICE_NOT_AVAILABLE", message="[PCBUSY]", when=when)
    answer = peer.answer_to(send(peer, b"second"))
    assert answer is not None
    assert (answer.code, answer.remark) == (ResponseCode.SERVICE_NOT_AVAILABLE, "[PCBUSY]")
    assert peer.produce(b"third").code == ResponseCode.SUCCESS
    lost = [b"second"] if when == "after" else []
    assert bodies(peer) == [b"first", *lost, b"third"]


@pytest.mark.parametrize(("when", "is_there"), [("before", False), ("after", True)])
@pytest.mark.parametrize("flag", [0, ONEWAY])
def test_the_broker_hangs_up(
    peer: Peer, faults: RequestFaults, when: Any, is_there: bool, flag: int
) -> None:
    """Of a one-way request nothing is awaited; what is dropped is dropped all the same."""
    faults.drop("SEND_MESSAGE*", when=when)
    opaque = send(peer, b"second", flag=flag)
    assert peer.answer_to(opaque) is None
    assert peer.connection.is_closing
    assert (b"second" in bodies(Peer(peer.broker, 40002))) == is_there


def test_a_oneway_request_fails_in_silence(peer: Peer, faults: RequestFaults) -> None:
    """It is not served, and nobody is told."""
    fault = faults.fail("SEND_MESSAGE_V2", "SYSTEM_ERROR")
    assert peer.answer_to(send(peer, b"second", flag=ONEWAY)) is None
    assert fault.is_spent
    assert bodies(peer) == [b"first"]


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_request_is_late_and_others_are_not(peer: Peer, faults: RequestFaults, when: Any) -> None:
    """On the same connection, too: requests do not wait for each other."""
    faults.delay("SEND_MESSAGE_V2", 200, when=when)
    slow, fast = send(peer, b"slow"), send(peer, b"fast")
    assert peer.answer_to(fast) is not None
    let_pass(peer, 199)
    assert peer.answer_to(slow) is None
    let_pass(peer, 1)
    answer = peer.answer_to(slow)
    assert answer is not None
    assert answer.code == ResponseCode.SUCCESS
    order = [b"slow", b"fast"] if when == "after" else [b"fast", b"slow"]
    assert bodies(peer) == [b"first", *order]


def test_held_requests_go_on_when_they_are_released(peer: Peer, faults: RequestFaults) -> None:
    """All of them, in their order; and those of whoever is gone do not."""
    fault = faults.hold("SEND_MESSAGE_V2", times=None)
    opaques = [send(peer, b"a"), send(peer, b"b")]
    gone = Peer(peer.broker, 40002)
    send(gone, b"gone")
    gone.hang_up()
    faults.release(fault)
    assert all(peer.answer_to(opaque) is not None for opaque in opaques)
    assert bodies(peer) == [b"first", b"a", b"b"]


def test_a_pull_that_waits_is_struck_when_it_ends(peer: Peer, faults: RequestFaults) -> None:
    """The message that ends it is not seen: the client pulls again."""
    faults.fail("PULL_MESSAGE", "SYSTEM_ERROR", when="after")
    opaque = peer.send(RequestCode.PULL_MESSAGE, peer.pull_fields(TOPIC, 0, 1, "g"))
    assert peer.answer_to(opaque) is None
    peer.produce(b"second")
    answer = peer.answer_to(opaque)
    assert answer is not None
    assert answer.code == ResponseCode.SYSTEM_ERROR


def test_patterns_choose(peer: Peer, faults: RequestFaults) -> None:
    """By request, group and topic; the group of a send is its producers'."""
    fault = faults.fail(
        "SEND_*", "NO_PERMISSION", topic="pay*", client="producers", times=None, after=1
    )
    codes: list[int] = []
    for topic in (TOPIC, "payments", "payments"):
        answer = peer.answer_to(send(peer, topic=topic))
        assert answer is not None
        codes.append(answer.code)
    assert codes == [0, 0, ResponseCode.NO_PERMISSION]
    assert (fault.seen_count, fault.struck_count) == (2, 1)


def test_a_name_server_fails() -> None:
    """Whose requests are planned with the same words."""
    faults = RequestFaults()
    name_server = NameServer(SimulatedHost(), "/kvConfig.json")
    make_faulty(name_server, faults)
    faults.fail("GET_ROUTEINFO_BY_TOPIC", "TOPIC_NOT_EXIST", message="none today")
    connection = name_server.connect("127.0.0.1", 1)
    (answer,) = answers(joined(connection.feed(request(105, {"topic": "t"}))))
    assert (answer.code, answer.remark) == (ResponseCode.TOPIC_NOT_EXIST, "none today")


def test_words_that_no_request_has(peer: Peer, faults: RequestFaults) -> None:
    """Are refused when the fault is planned, with the likeliest meant."""
    del peer
    with pytest.raises(ValueError, match="did you mean SEND_MESSAGE_V2"):
        faults.drop("SEND_MESAGE_V2")
    with pytest.raises(ValueError, match="no error is called 'NO_PERMISION'; did you mean"):
        faults.fail("SEND_MESSAGE", "NO_PERMISION")
