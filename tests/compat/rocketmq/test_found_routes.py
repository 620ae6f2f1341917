"""Routes as name servers tell them: one in the process by a call, others in JSON."""

from __future__ import annotations

from typing import Any

import pytest

from logstore.compat.rocketmq.found_routes import FoundRoute, route_at, route_in_table
from logstore.compat.rocketmq.name_server.route_bodies import route_body
from logstore.compat.rocketmq.name_server.routes import BrokerData, QueueData, Route, RouteTable
from logstore.compat.rocketmq.wire.codes import RequestCode, ResponseCode
from logstore.compat.rocketmq.wire.remoting import Command
from logstore.compat.waiting import Later
from logstore.errors import LogStoreError

ROUTE = Route(
    [QueueData("b1", 2, 3, 6, 0)],
    [BrokerData("c", "b1", {0: "192.0.2.1:10911", 1: "192.0.2.2:10911"}), BrokerData("c", "b2")],
    {},
    None,
)


class Answering:
    """A connection whose peer answers at once."""

    def __init__(self, code: int, body: bytes = b"", remark: str | None = None) -> None:
        self.asked: list[tuple[int, Any]] = []
        self._answer = Command(code, 0, 1, "JAVA", 513, remark, {}, memoryview(body), 0)

    def ask(self, code: int, fields: Any, *, timeout_ms: int) -> Later[Command]:
        """Answer."""
        assert timeout_ms > 0
        self.asked.append((code, fields))
        later: Later[Command] = Later()
        later.answer(self._answer)
        return later


def _found(channel: Any) -> FoundRoute:
    found: list[FoundRoute] = []
    route_at(channel, "t").then(found.append)
    return found[0]


@pytest.mark.parametrize("is_standard", [True, False])
def test_a_route_is_read_in_either_form(is_standard: bool) -> None:
    """Ids of brokers may stand there as bare numbers."""
    channel = Answering(ResponseCode.SUCCESS, route_body(ROUTE, 0, is_standard=is_standard))
    found = _found(channel)
    assert channel.asked == [(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": "t"})]
    assert found.queues == (QueueData("b1", 2, 3, 6, 0),)
    assert found.addresses == {"b1": {0: "192.0.2.1:10911", 1: "192.0.2.2:10911"}, "b2": {}}
    assert found.masters() == {"b1": "192.0.2.1:10911"}


def test_a_topic_that_is_nowhere_has_no_queues() -> None:
    """That is no failure."""
    assert _found(Answering(ResponseCode.TOPIC_NOT_EXIST)) == FoundRoute()
    found: list[FoundRoute] = []
    route_in_table(RouteTable(), "t").then(found.append)
    assert found == [FoundRoute()]


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{}", b'{"queueDatas":[1],"brokerDatas":[]}', b"\xff"]
)
def test_what_is_no_route_is_told_of(body: bytes) -> None:
    """Whoever waits learns that nobody can read it."""
    with pytest.raises(LogStoreError, match="cannot be read"):
        _found(Answering(ResponseCode.SUCCESS, body))


def test_a_refusal_is_told_of() -> None:
    """By what the name server says."""
    with pytest.raises(LogStoreError, match="not ready"):
        _found(Answering(ResponseCode.SYSTEM_ERROR, remark="name server not ready"))
