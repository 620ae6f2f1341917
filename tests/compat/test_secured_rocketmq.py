"""The RocketMQ broker for tests with users and TLS: what the README promises."""

from __future__ import annotations

import base64
import hashlib
import hmac
import socket
import ssl
import subprocess
import sys
from pathlib import Path

import pytest

from logstore.compat import TestBroker
from logstore.compat.test_broker_arguments import ArgumentError
from logstore.segments.rocketmq.settings.java_config import ConfigError
from tests.compat.rocketmq.frames import Answer, answers, request

SECONDS_MAX = 20


def signed(user: str, password: str, topic: str) -> dict[str, object]:
    """Return the fields of a question about a queue."""
    fields = {"AccessKey": user, "queueId": "0", "topic": topic}
    content = "".join(fields[name] for name in sorted(fields)).encode()
    digest = hmac.new(password.encode(), content, hashlib.sha1).digest()
    return {**fields, "Signature": base64.b64encode(digest).decode()}


def ask(
    port: int, fields: dict[str, object], context: ssl.SSLContext | None = None, code: int = 30
) -> Answer:
    """Ask a server one thing, by TLS if there is a context."""
    peer: socket.socket = socket.create_connection(("127.0.0.1", port), SECONDS_MAX)
    if context is not None:
        peer = context.wrap_socket(peer, server_hostname="localhost")
    with peer:
        peer.sendall(request(code, fields))
        data = b""
        while len(data) < 4 or len(data) < 4 + int.from_bytes(data[:4], "big"):
            received = peer.recv(65536)
            if not received:
                raise ConnectionError("it hung up")
            data += received
    (answer,) = answers(data)
    return answer


def told(broker: TestBroker, user: str, password: str) -> str:
    """Return what a user is told who asks about a queue."""
    answer = ask(broker.rocketmq.advertised_port, signed(user, password, "t"))
    return answer.remark or str(answer.code)


def test_users() -> None:
    """They sign, may do everything, and are there after a crash and a restart."""
    with TestBroker(layout="rocketmq", users={"alice": "secret"}) as broker:
        for end in ("", "crash", "restart"):
            if end == "crash":
                broker.crash()
                broker.start()
            elif end == "restart":
                broker.restart()
            assert told(broker, "alice", "secret") == "0"
            assert told(broker, "alice", "wrong") == "check signature failed."
            assert told(broker, "bob", "secret") == "User:bob is not found."


def test_users_may_change(tmp_path: Path) -> None:
    """Of one directory, another broker's users come in by their passwords of now."""
    directory = str(tmp_path)
    with TestBroker(directory, layout="rocketmq", users={"alice": "a", "bob": "b"}) as broker:
        assert told(broker, "bob", "b") == "0"
    with TestBroker(directory, layout="rocketmq", users={"alice": "other"}) as broker:
        assert told(broker, "alice", "other") == "0"
        assert told(broker, "alice", "a") == "check signature failed."
        assert told(broker, "bob", "b") == "0"


def test_rights_are_a_matter_of_settings() -> None:
    """With authorization users may do what rules say, and whoever is a super user everything."""
    settings = {
        "authorizationEnabled": "true",
        "initAuthenticationUser": '{"username":"root","password":"root"}',
    }
    with TestBroker(layout="rocketmq", users={"alice": "secret"}, settings=settings) as broker:
        assert "no matched policies" in told(broker, "alice", "secret")
        assert told(broker, "root", "root") == "0"


def test_tls() -> None:
    """Both ports show one certificate, which `ca_file` is of, and take nothing plain."""
    with TestBroker(layout="rocketmq", tls=True) as broker:
        context = ssl.create_default_context(cafile=broker.ca_file)
        for port in (broker.port, broker.rocketmq.advertised_port):
            assert ask(port, {"topic": "t", "queueId": 0}, context, 34).code in (1, 3)
            with pytest.raises(ConnectionError):
                ask(port, {"topic": "t", "queueId": 0})
        assert ask(broker.port, {"x": "y"}, context, 106).code == 0


def test_clients_show_certificates() -> None:
    """Those that the same authority has issued are let in, others are not."""
    settings = {"tls.server.need.client.auth": "require"}
    with TestBroker(layout="rocketmq", tls=True, settings=settings) as broker:
        context = ssl.create_default_context(cafile=broker.ca_file)
        with pytest.raises((ssl.SSLError, ConnectionError)):
            ask(broker.port, {"x": "y"}, context, 106)
        context.load_cert_chain(broker.client_certificate("alice"))
        assert ask(broker.port, {"x": "y"}, context, 106).code == 0


def test_a_large_answer_goes_by_tls() -> None:
    """Stored messages are read and encrypted, some at a time."""
    with TestBroker(layout="rocketmq", tls=True) as broker:
        broker.create_topic("t")
        context = ssl.create_default_context(cafile=broker.ca_file)
        port = broker.rocketmq.advertised_port
        body = bytes(range(256)) * 4096
        fields = {"a": "p", "b": "t", "c": "TBW102", "d": 1, "e": 0, "f": 0, "g": 1, "h": 0,
                  "i": "", "j": 0, "k": "false", "m": "false"}  # fmt: skip
        with socket.create_connection(("127.0.0.1", port), SECONDS_MAX) as plain:
            peer = context.wrap_socket(plain, server_hostname="localhost")
            pull = {"consumerGroup": "g", "topic": "t", "queueId": 0, "queueOffset": 0,
                    "maxMsgNums": 1, "sysFlag": 4, "commitOffset": 0, "suspendTimeoutMillis": 0,
                    "subscription": "*", "subVersion": 0}  # fmt: skip
            peer.sendall(request(310, fields, body) + request(11, pull, opaque=2))
            data, found = b"", list[Answer]()
            while len(found) < 2:
                data += peer.recv(65536)
                size = 4 + int.from_bytes(data[:4], "big")
                if len(data) >= max(size, 5):
                    found += answers(data[:size])
                    data = data[size:]
        assert found[0].code == 0
        assert found[1].code == 0
        assert body in found[1].body


def test_nothing_is_imported_that_is_not_used() -> None:
    """A broker without users whom nobody speaks TLS to knows neither."""
    program = (
        "import sys\n"
        "from logstore.compat import TestBroker\n"
        "with TestBroker(layout='rocketmq'):\n"
        "    print(sorted(n for n in sys.modules if '.rocketmq.auth' in n\n"
        "                 or n.endswith(('.tls', 'tls_settings', 'tables.access'))))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_mechanisms_are_kafkas() -> None:
    """RocketMQ's clients sign; and what is named must be there."""
    with pytest.raises(ArgumentError, match="RocketMQ's clients sign"):
        TestBroker(layout="rocketmq", mechanisms=["PLAIN"])
    settings = {"authenticationMetadataProvider": "com.example.Mine"}
    with (
        pytest.raises(ConfigError, match=r"com\.example\.Mine"),
        TestBroker(layout="rocketmq", users={"alice": "x"}, settings=settings),
    ):
        pass
