"""One broker asks others: whom it can reach, and what becomes of its question if it cannot."""

from __future__ import annotations

import pytest

from logstore.compat.rocketmq.static_topics.broker_calls import BrokerCalls
from logstore.compat.rocketmq.steps import begin
from logstore.compat.rocketmq.wire.codes import RequestCode
from logstore.compat.waiting import Later
from logstore.errors import LogStoreError
from tests.compat.rocketmq.replication.network import Network

NAME, ADDRESS = "broker-b", "127.0.0.1:20001"


class Caller:
    """A broker that asks another one how far a queue reaches."""

    def __init__(self) -> None:
        self.network = Network()
        self.asking = self.network.broker({"brokerName": "broker-a"})
        self.asked = self.network.broker({"brokerName": NAME})
        self.network.listening[ADDRESS] = self.asked.connect
        self.addresses = {NAME: ADDRESS}
        self.found = 0
        self.calls = BrokerCalls(self.asking)
        self.calls.begin(self.network.reach, self.find_brokers)
        self.answers: list[str] = []

    def find_brokers(self) -> Later[dict[str, str]]:
        """Tell where brokers are, and count how often."""
        self.found += 1
        later: Later[dict[str, str]] = Later()
        later.answer(self.addresses)
        return later

    def ask(self, code: RequestCode = RequestCode.GET_MAX_OFFSET) -> None:
        """Ask."""
        answer = begin(self.calls.ask(NAME, code, {"topic": "t", "queueId": "0"}))
        answer.then(
            lambda command: self.answers.append(command.ext_fields["offset"]),
            lambda error: self.answers.append(str(error)),
        )


def test_one_connection_is_enough() -> None:
    """Whoever asks while it is made waits for it; it stays, and so does what is known."""
    caller = Caller()
    caller.ask()
    caller.ask()
    caller.network.settle()
    caller.ask()
    caller.network.settle()
    assert caller.answers == ["0"] * 3
    assert (caller.network.reached, caller.found) == ([ADDRESS], 1)


def test_a_broker_that_moves_is_found() -> None:
    """After five seconds a name server is asked anew."""
    caller = Caller()
    caller.ask()
    caller.network.settle()
    moved = "127.0.0.1:20002"
    caller.addresses = {NAME: moved}
    caller.network.listening[moved] = caller.asked.connect
    caller.network.run(6_000)
    caller.ask()
    caller.network.settle()
    assert caller.answers == ["0", "0"]
    assert caller.network.reached == [ADDRESS, moved]


def test_a_connection_that_broke_is_made_anew() -> None:
    """A question that was under way is lost, the next one is not."""
    caller = Caller()
    caller.ask()
    caller.network.settle()
    caller.ask()
    caller.network.cut()
    caller.ask()
    caller.network.settle()
    assert caller.answers[0] == caller.answers[2] == "0"
    assert caller.answers[1].startswith("error from remoting layer: ")


def test_nobody_listens() -> None:
    """Whoever asks is told so."""
    caller = Caller()
    caller.network.listening.clear()
    caller.ask()
    caller.network.settle()
    (said,) = caller.answers
    assert said == (f"error from remoting layer: {ADDRESS} cannot be reached: nobody listens")


def test_nobody_knows_the_broker() -> None:
    """Neither where name servers do not list it, nor where none can be asked."""
    caller = Caller()
    caller.addresses = {}
    caller.ask()
    silent: Later[dict[str, str]] = Later()
    silent.fail(LogStoreError("no name server can be reached"))
    caller.calls.begin(caller.network.reach, lambda: silent)
    caller.ask()
    assert caller.answers == [f"cannot find addr for broker {NAME}"] * 2


@pytest.mark.parametrize(("setting", "seconds"), [({}, 3), ({"forwardTimeout": "1000"}, 1)])
def test_an_answer_does_not_come(setting: dict[str, str], seconds: int) -> None:
    """After three seconds, or as many as is said, nobody waits any more."""
    caller = Caller()
    caller.asking.update_settings(setting)
    caller.ask()
    caller.network.settle()
    caller.network.lines[0].server.on_output = None
    caller.ask()
    for _ in range(seconds * 10 + 10):
        caller.network.clock.advance(100)
        caller.asking.timers.run()
    assert caller.answers[1].endswith(f"did not answer request 30 within {seconds}000 ms")


@pytest.mark.parametrize("code", [RequestCode.GET_TOPIC_CONFIG, RequestCode.ADD_BROKER])
def test_an_answer_that_nobody_expects(code: RequestCode) -> None:
    """A refusal of the other broker is none that a client is told."""
    caller = Caller()
    caller.ask(code)
    caller.network.settle()
    assert caller.answers == ["unknown remote error"]
