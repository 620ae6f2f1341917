"""Planned faults of the broker's requests, met by those who come by the proxy."""

from __future__ import annotations

from typing import Any

import pytest

from logstore.compat.faults.request_faults import RequestFaults
from logstore.compat.rocketmq.faults.faulty_connection import make_faulty
from logstore.compat.rocketmq.proxy.codes import Code
from tests.compat.rocketmq.proxy.proxy_stage import GROUP, Peer, Stage, handle_of, plain

_INVISIBLE_MS = 15_000


@pytest.fixture
def faults() -> RequestFaults:
    """Return a place to plan faults."""
    return RequestFaults()


@pytest.fixture
def stage(faults: RequestFaults) -> Stage:
    """Return a proxy before a broker whose requests meet `faults`."""
    stage = Stage(has_wheel=True)
    make_faulty(stage.broker, faults)
    return stage


@pytest.fixture
def peer(stage: Stage) -> Peer:
    """Return a client that consumes, and may send."""
    peer = Peer(stage)
    peer.consume("normal")
    assert peer.receive("normal") == []
    return peer


def received(peer: Peer) -> dict[str, Any]:
    """Send a message and receive it."""
    peer.send(peer.message("normal"))
    (message,) = peer.receive("normal")
    return message


def acknowledging(peer: Peer, message: dict[str, Any]) -> list[dict[str, Any]]:
    """Acknowledge a message; return where its answer comes to."""
    entry = {"message_id": "m", "receipt_handle": handle_of(message)}
    found: list[dict[str, Any]] = []
    asked = peer.begin(
        "AckMessage", group={"name": GROUP}, topic={"name": "normal"}, entries=[entry]
    )
    asked.then(lambda answer: found.append(plain(answer)))
    return found


def told(answers: list[dict[str, Any]]) -> int:
    """Return the code of the one answer."""
    (answer,) = answers
    code: int = answer["status"]["code"]
    return code


def test_an_acknowledgement_fails(peer: Peer, faults: RequestFaults) -> None:
    """It is not served, so the message comes again."""
    message = received(peer)
    faults.fail("ACK_MESSAGE", "SYSTEM_BUSY")
    assert told(acknowledging(peer, message)) == Code.INTERNAL_SERVER_ERROR
    peer.stage.let_pass(_INVISIBLE_MS + 5_000)
    (again,) = peer.receive("normal")
    assert again["system_properties"]["delivery_attempt"] == 2


@pytest.mark.parametrize("when", ["before", "after"])
def test_an_acknowledgement_is_late(peer: Peer, faults: RequestFaults, when: Any) -> None:
    """It is served, or answered, when its time has come, and counts."""
    message = received(peer)
    faults.delay("ACK_MESSAGE", 500, when=when)
    answers = acknowledging(peer, message)
    peer.stage.let_pass(499)
    assert answers == []
    peer.stage.let_pass(1)
    assert told(answers) == Code.OK
    peer.stage.let_pass(_INVISIBLE_MS + 5_000)
    assert peer.receive("normal") == []


def test_an_acknowledgement_is_held(peer: Peer, faults: RequestFaults) -> None:
    """Others come first; it is answered once it is let go."""
    first = received(peer)
    second = received(peer)
    faults.hold("ACK_MESSAGE", times=1)
    held = acknowledging(peer, first)
    assert told(acknowledging(peer, second)) == Code.OK
    assert held == []
    faults.release()
    assert told(held) == Code.OK


def test_an_answer_is_lost(peer: Peer, faults: RequestFaults) -> None:
    """The broker hangs up on the client, which is told so; what it asked for is done."""
    message = received(peer)
    faults.drop("ACK_MESSAGE", when="after")
    assert told(acknowledging(peer, message)) == Code.INTERNAL_SERVER_ERROR
    peer.consume("normal")
    peer.stage.let_pass(_INVISIBLE_MS + 5_000)
    assert peer.receive("normal") == []


def test_a_send_is_answered_late(peer: Peer, faults: RequestFaults) -> None:
    """It is stored at once, and whoever sent it knows later."""
    faults.delay("SEND_MESSAGE", 500, when="after")
    found: list[Any] = []
    peer.begin("SendMessage", messages=[peer.message("normal")]).then(found.append)
    assert len(peer.receive("normal")) == 1
    assert found == []
    peer.stage.let_pass(500)
    assert found[0].status.code == Code.OK
