"""How many connections are let in, from where and how fast: by the real Kafka and by ours alike."""

from __future__ import annotations

import itertools
import socket
import struct
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from logstore.compat import TestBroker
from tests.compat.kafka.groups.questioner import Line
from tests.interop.conftest import SETTINGS, start_real
from tests.interop.eventually import eventually

pytestmark = pytest.mark.interop

LIMITS: dict[str, object] = {
    "max.connections": "5",
    "max.connections.per.ip": "3",
    "max.connections.per.ip.overrides": "127.0.0.7:1,127.0.0.8:100",
}
#: ApiVersions v0 of nobody
REQUEST = struct.pack(">ihhih", 10, 18, 0, 7, -1)
ANSWERED, HUNG_UP, WAITS = "answered", "hung up on", "waits"
#: how long nothing must come from a broker that lets somebody wait
PATIENCE_SECONDS = 0.7


class Visitor:
    """Somebody who connects from an address of his own, and asks one question."""

    def __init__(self, bootstrap: str, address: str) -> None:
        host, port = bootstrap.rsplit(":", 1)
        self._socket = socket.create_connection(
            (host, int(port)), timeout=10, source_address=(address, 0)
        )
        self._socket.sendall(REQUEST)

    def hears(self, seconds: float = PATIENCE_SECONDS) -> str:
        """Return what comes of it within some time."""
        self._socket.settimeout(seconds)
        try:
            return ANSWERED if self._socket.recv(1) else HUNG_UP
        except TimeoutError:
            return WAITS
        except ConnectionError:
            return HUNG_UP

    def leave(self) -> None:
        """Hang up."""
        self._socket.close()


@pytest.fixture(scope="module", params=["real", "ours"])
def bootstrap(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """A broker of either kind with these limits."""
    if request.param == "real":
        directory: Path = tmp_path_factory.mktemp("real")
        real = start_real(directory, settings=LIMITS)
        yield real.bootstrap
        real.stop()
        return
    with TestBroker(settings={k: str(v) for k, v in (SETTINGS | LIMITS).items()}) as ours:
        yield ours.bootstrap


def settled(bootstrap: str) -> None:
    """Return once nobody is counted any more who connected to find out whether it is up."""

    def is_empty() -> bool:
        visitors = [Visitor(bootstrap, "127.0.0.8") for _ in range(5)]
        heard = [one.hears(5) for one in visitors[:1]] + [one.hears() for one in visitors[1:]]
        for one in visitors:
            one.leave()
        return heard == [ANSWERED] * 5

    eventually(is_empty)


def test_so_many_connections_of_an_address_and_of_all(bootstrap: str) -> None:
    """Those of an address beyond its share are hung up on, those beyond all wait for a place."""
    settled(bootstrap)
    three = [Visitor(bootstrap, "127.0.0.2") for _ in range(3)]
    assert [one.hears(5) for one in three] == [ANSWERED] * 3
    assert Visitor(bootstrap, "127.0.0.2").hears(5) == HUNG_UP
    only = Visitor(bootstrap, "127.0.0.7")
    assert only.hears(5) == ANSWERED
    assert Visitor(bootstrap, "127.0.0.7").hears(5) == HUNG_UP
    last = Visitor(bootstrap, "127.0.0.8")
    assert last.hears(5) == ANSWERED
    beyond, behind = Visitor(bootstrap, "127.0.0.8"), Visitor(bootstrap, "127.0.0.9")
    assert beyond.hears() == WAITS
    only.leave()
    assert beyond.hears(5) == ANSWERED
    assert behind.hears() == WAITS
    three[0].leave()
    assert behind.hears(5) == ANSWERED


def test_an_address_that_connects_too_fast(bootstrap: str) -> None:
    """By the quota of its address it is let in so often; from then on it is hung up on, later."""
    settled(bootstrap)
    line = Line(bootstrap)
    entity = [{"entity_type": "ip", "entity_name": "127.0.0.3"}]
    op = {"key": "connection_creation_rate", "value": 1.0, "remove": False}
    answer = line.ask(
        "AlterClientQuotas", 1, entries=[{"entity": entity, "ops": [op]}], validate_only=False
    )
    assert answer["entries"][0]["error_code"] == 0
    line.close()

    def comes() -> str:
        visitor = Visitor(bootstrap, "127.0.0.3")
        heard = visitor.hears()
        visitor.leave()
        return heard

    began = time.monotonic()
    heard = list(itertools.takewhile(lambda one: one == ANSWERED, (comes() for _ in range(40))))
    # A second each is the share of a window of ten; and what has come about meanwhile.
    assert 9 <= len(heard) <= 11 + (time.monotonic() - began)
    late = Visitor(bootstrap, "127.0.0.3")
    assert late.hears(5) == HUNG_UP
    assert Visitor(bootstrap, "127.0.0.4").hears(5) == ANSWERED
