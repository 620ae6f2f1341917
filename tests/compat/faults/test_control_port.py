"""The control port: what a test in any language may ask, and what it is answered."""

from __future__ import annotations

import errno
import json
import socket
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from logstore.compat.faults.control_port import ControlPort
from logstore.compat.faults.fault_control import FaultControl
from logstore.compat.running import AddressError
from logstore.compat.waiting import Timers

SECONDS_MAX = 20


class Asked:
    """A control port, and what was run where requests are served."""

    def __init__(self) -> None:
        self.control = FaultControl()
        self.control.faults.know(["Produce", "Fetch"], ["NOT_LEADER_OR_FOLLOWER"])
        self.run_count = 0
        self.port = ControlPort(self.control, self._run, "127.0.0.1", 0)

    def _run(self, work: Callable[[], Any]) -> Any:
        self.run_count += 1
        return work()

    def ask(self, method: str, path: str, body: object = None) -> Any:
        """Return what is answered; an error is a pair of status and text."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode() if body else None
        url = f"http://127.0.0.1:{self.port.port}{path}"
        request = urllib.request.Request(url, data, method=method)
        try:
            with urllib.request.urlopen(request, timeout=SECONDS_MAX) as answer:  # noqa: S310 - http
                return json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)["error"]


@pytest.fixture
def asked() -> Iterator[Asked]:
    """Return a control port that listens."""
    asked = Asked()
    with asked.port:
        yield asked


def test_a_fault_is_planned_and_ends(asked: Asked) -> None:
    """It has a number, by which it ends alone."""
    planned = asked.ask("POST", "/faults", {"action": "drop", "api": "Fetch", "topic": "t"})
    assert (planned["number"], planned["topic"], planned["times"]) == (1, "t", 1)
    asked.ask("POST", "/faults", {"action": "hold", "api": "*", "times": None})
    assert asked.ask("GET", "/faults") == [
        fault.to_json() for fault in asked.control.faults.planned
    ]
    assert [one["number"] for one in asked.ask("DELETE", "/faults/1")] == [2]
    went: list[int] = []
    asked.control.faults.planned[0].held.append(lambda: went.append(1))
    assert asked.ask("POST", "/faults/2/release") == []
    assert went == [1]
    asked.ask("POST", "/faults", {"action": "drop", "api": "Fetch"})
    assert asked.ask("DELETE", "/faults") == []
    assert asked.run_count == 7


def test_files_fail(asked: Asked) -> None:
    """Once, for ever, or all of them by the state of the disk."""
    asked.ask("POST", "/disk", {"kind": "write", "error": "ENOSPC", "partial_bytes": 7})
    asked.ask("POST", "/disk", {"kind": "sync", "count": None, "path": "*.log"})
    told = asked.ask("PUT", "/disk", {"is_read_only": True, "capacity_bytes": 100})
    assert told == asked.ask("GET", "/disk")
    assert [(one["kind"], one["code"], one["count"]) for one in told["planned"]] == [
        ("write", errno.ENOSPC, 1),
        ("sync", errno.EIO, None),
    ]
    assert asked.control.disk.planned[0].partial_bytes == 7
    assert (told["is_read_only"], told["capacity_bytes"], told["sync_lies"]) == (True, 100, False)
    assert asked.ask("DELETE", "/disk") == {
        "planned": [], "is_read_only": False, "sync_lies": False, "capacity_bytes": None,
    }  # fmt: skip


def test_time_is_pushed(asked: Asked) -> None:
    """What is due by then is done."""
    timers = Timers(asked.control.clock)
    asked.control.timers.append(timers)
    done: list[int] = []
    timers.after(60_000, lambda: done.append(1))
    before = asked.ask("GET", "/clock")
    after = asked.ask("POST", "/clock", {"advance_ms": 60_000})
    assert done == [1]
    assert 60_000 <= after["monotonic_ms"] - before["monotonic_ms"] < 90_000
    jumped = asked.ask("POST", "/clock", {"jump_wall_ms": -3_600_000})
    assert jumped["wall_ms"] < before["wall_ms"]
    assert jumped["monotonic_ms"] >= after["monotonic_ms"]


def test_leaders_move(asked: Asked) -> None:
    """Where there are any."""
    refused = asked.ask("POST", "/leaders", {"topic": "t"})
    assert refused == (400, "only Kafka's layout has leader epochs")

    def move(topic: str, index: int | None, to: int | None) -> dict[int, int]:
        if index == 9:
            raise ValueError(f"there is no partition {topic}-9")
        return {0: 4, 1: 5} if to is None else {0: 6}

    asked.control.move_leaders = move
    assert asked.ask("POST", "/leaders", {"topic": "t"}) == {"0": 4, "1": 5}
    assert asked.ask("POST", "/leaders", {"topic": "t", "to": 2}) == {"0": 6}
    refused = asked.ask("POST", "/leaders", {"topic": "t", "partition": 9})
    assert refused == (400, "there is no partition t-9")


class TwoNodes:
    """A cluster whose second node cannot come back."""

    def __init__(self) -> None:
        self.up = {1: True, 2: True}

    def states(self) -> dict[int, bool]:
        """Return whether each is up."""
        return self.up

    def stop(self, node_id: int) -> None:
        """Take one out."""
        if node_id not in self.up:
            raise ValueError(f"there is no node {node_id}")
        self.up[node_id] = False

    def start(self, node_id: int) -> None:
        """Fail."""
        raise OSError(f"the port of node {node_id} is taken")


def test_nodes_go_and_come(asked: Asked) -> None:
    """Where there are several; what keeps them from it is told."""
    assert asked.ask("GET", "/nodes") == {}
    refused = asked.ask("POST", "/nodes/2/stop")
    assert refused == (400, "there is a cluster only with `logstore serve --nodes N`")
    asked.control.nodes = TwoNodes()
    assert asked.ask("POST", "/nodes/2/stop") == {"1": True, "2": False}
    assert asked.ask("GET", "/nodes") == {"1": True, "2": False}
    assert asked.ask("POST", "/nodes/3/stop") == (400, "there is no node 3")
    assert asked.ask("POST", "/nodes/2/start") == (400, "the port of node 2 is taken")


def test_all_there_is_to_know(asked: Asked) -> None:
    """With the names that may be used."""
    state = asked.ask("GET", "/")
    assert sorted(state) == ["apis", "clock", "disk", "errors", "faults", "nodes"]
    assert state["apis"] == ["Fetch", "Produce"]
    assert state["errors"] == ["NOT_LEADER_OR_FOLLOWER"]


@pytest.mark.parametrize(
    ("method", "path", "body", "code", "text"),
    [
        ("GET", "/nothing", None, 404, "there is no GET /nothing"),
        ("PUT", "/faults", None, 405, "there is no PUT /faults"),
        ("DELETE", "/faults/7", None, 404, "no fault has the number 7"),
        ("POST", "/faults", b"{", 400, "the body is no JSON"),
        ("POST", "/faults", b"[]", 400, "the body is no JSON object"),
        ("POST", "/faults", {"api": "Fetch"}, 400, "a fault needs at least an action and an api"),
        ("POST", "/faults", {"action": "drop", "api": "Fetch", "x": 1}, 400, "no field is called"),
        ("POST", "/faults", {"action": "drop", "api": "Fech"}, 400, "did you mean Fetch"),
        ("POST", "/faults", {"action": "drop", "api": "Fetch", "after": "1"}, 400, "not supported"),
        ("POST", "/faults", {"action": "fail", "api": "Fetch"}, 400, "who fails needs an error"),
        ("POST", "/disk", {"kind": "explode"}, 400, "kind is one of open, read, write"),
        ("POST", "/disk", {"kind": "read", "error": "EX"}, 400, "error is a name of errno"),
        ("POST", "/disk", {"kind": "read", "after": True}, 400, "after: True is of the wrong kind"),
        ("PUT", "/disk", {"is_read_only": 1}, 400, "is_read_only: 1 is of the wrong kind"),
        ("PUT", "/disk", {"planned": []}, 400, "no field is called 'planned'"),
        ("POST", "/clock", {"advance_ms": -1}, 400, "time does not run backwards"),
        ("POST", "/clock", {"advance_ms": "1h"}, 400, "advance_ms: '1h' is of the wrong kind"),
    ],
)
def test_what_makes_no_sense(
    asked: Asked, method: str, path: str, body: object, code: int, text: str
) -> None:
    """Is refused with the reason, and changes nothing."""
    before = asked.ask("GET", "/disk")
    status, told = asked.ask(method, path, body)
    assert (status, text in told) == (code, True), told
    assert asked.ask("GET", "/disk") == before
    assert asked.ask("GET", "/faults") == []


def test_a_port_that_is_taken(asked: Asked) -> None:
    """Is said so."""
    with (
        pytest.raises(AddressError, match="name another port"),
        ControlPort(asked.control, asked.port.run, "127.0.0.1", asked.port.port),
    ):
        pass


@pytest.mark.parametrize("size", [b"99999999999", b"-1", b"many"])
def test_a_body_without_end(asked: Asked, size: bytes) -> None:
    """Is not waited for."""
    with socket.create_connection(("127.0.0.1", asked.port.port), SECONDS_MAX) as peer:
        peer.sendall(b"POST /faults HTTP/1.1\r\nContent-Length: " + size + b"\r\n\r\n")
        assert peer.recv(4096).startswith(b"HTTP/1.1 413 ")
