"""The real RocketMQ as a peer: what holds without starting it."""

from __future__ import annotations

import json
import socket
import struct
import threading
from pathlib import Path

import pytest

from logstore.tools.dev import rocketmq_jars
from logstore.tools.dev.free_ports import are_free, free_port
from logstore.tools.dev.maven import PeerUnavailable
from logstore.tools.dev.remoting_request import ask, broker_address, lists_broker
from logstore.tools.dev.rocketmq_jars import VERSION_4, VERSION_5, compiled, fetch, java
from logstore.tools.dev.rocketmq_peer import RocketMQPeer

CLUSTER = b'{"brokerAddrTable":{"broker-a":{"brokerAddrs":{0:"127.0.0.1:10911"}}}}'


class NameServer:
    """Answers one request on a port of its own with a code and a body, and keeps what it got."""

    def __init__(self, code: int, body: bytes) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address: tuple[str, int] = self._listener.getsockname()
        self.request = b""
        header = json.dumps({"code": code, "remark": "so", "opaque": 1}).encode()
        sizes = struct.pack(">II", 4 + len(header) + len(body), len(header))
        self._thread = threading.Thread(target=self._serve, args=(sizes + header + body,))
        self._thread.start()

    def _serve(self, answer: bytes) -> None:
        connection, _ = self._listener.accept()
        with connection:
            size = struct.unpack(">I", connection.recv(4, socket.MSG_WAITALL))[0]
            self.request = connection.recv(size, socket.MSG_WAITALL)
            connection.sendall(answer)

    def close(self) -> None:
        """Wait for the one answer, and close."""
        self._thread.join()
        self._listener.close()


def test_a_broker_has_its_neighbouring_ports_too() -> None:
    """RocketMQ opens the port two below, for "VIP" clients, and the one above, for replication."""
    port = free_port(-2, 1)
    assert port is not None
    assert 12_000 <= port < 32_000
    with socket.create_server(("127.0.0.1", port - 2)):
        assert not are_free([port, port - 2])
        assert are_free([port, port + 1])


def test_without_maven_one_line_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that cannot fetch the jars gets one clear error that names what is missing."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    for short, version in (("5", VERSION_5), ("4", VERSION_4)):
        with pytest.raises(PeerUnavailable, match=f"RocketMQ {version}: no `mvn` on the PATH"):
            fetch(short)


def test_without_java_one_line_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Starting a peer without Java names Java, before anything is fetched."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(PeerUnavailable, match="no `java` on the PATH"):
        RocketMQPeer("5", tmp_path / "rocketmq").start()


def test_a_class_path_is_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where every jar is on disk, Maven is not asked; where one is gone, it is."""
    jar = tmp_path / "rocketmq.jar"
    jar.touch()
    saved = tmp_path / "logstore" / "peers" / "rocketmq" / "9.9.9" / "classpath.txt"
    saved.parent.mkdir(parents=True)
    saved.write_text(str(jar))
    pom = Path(rocketmq_jars.__file__).with_name("rocketmq_peer.xml")
    saved.with_name("pom.xml").write_text(pom.read_text())
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("shutil.which", {"java": "java"}.get)
    command = java("9.9.9", "some.Main", "argument", classes="more", home=tmp_path / "home")
    assert command[0] == "java"
    assert command[-4:] == ["-cp", f"more:{jar}", "some.Main", "argument"]
    assert (tmp_path / "home" / "conf" / "logback_broker.xml").exists()
    with pytest.raises(PeerUnavailable, match="no `javac` on the PATH"):
        compiled("9.9.9", [])
    jar.unlink()
    with pytest.raises(PeerUnavailable, match="mvn"):
        fetch("9.9.9")


def test_one_request_and_its_answer() -> None:
    """Fields go as text in a JSON header behind its length; code, remark and body come back."""
    server = NameServer(17, b"body")
    answer = ask(server.address, 105, {"topic": "t", "number": 7}, b"sent")
    server.close()
    assert (answer.code, answer.remark, answer.body) == (17, "so", b"body")
    size = int.from_bytes(server.request[1:4], "big")
    header = json.loads(server.request[4 : 4 + size])
    assert (header["code"], header["extFields"]) == (105, {"topic": "t", "number": "7"})
    assert server.request[4 + size :] == b"sent"


@pytest.mark.parametrize(
    ("code", "body", "found"),
    [
        (0, CLUSTER, ("127.0.0.1", 10911)),
        (0, CLUSTER.replace(b"0:", b'"0":'), ("127.0.0.1", 10911)),
        (0, b'{"brokerAddrTable":{}}', None),
    ],
)
def test_the_broker_that_a_name_server_lists(
    code: int, body: bytes, found: tuple[str, int] | None
) -> None:
    """Its address is read from Java's own kind of JSON and from the common one."""
    server = NameServer(code, body)
    assert broker_address(server.address) == found
    server.close()
    server = NameServer(code, body)
    assert lists_broker(server.address, "127.0.0.1:10911") is (found is not None)
    server.close()


def test_nobody_lists_a_broker_on_a_closed_port() -> None:
    """A refused connection is no answer and no error."""
    port = free_port()
    assert port is not None
    assert broker_address(("127.0.0.1", port)) is None
    assert not lists_broker(("127.0.0.1", port))
