"""TLS at the ports of name server and broker: told from plain frames by the first byte."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from logstore.compat.rocketmq.broker import Broker
from logstore.compat.rocketmq.connection import RemotingConnection
from logstore.compat.rocketmq.name_server.name_server import NameServer
from logstore.compat.rocketmq.tls_settings import tls_context
from logstore.segments.rocketmq.settings.java_config import ConfigError
from logstore.testing.manual_clock import ManualClock
from logstore.testing.simulated_host import SimulatedHost
from tests.compat.rocketmq.broker_peer import a_broker, sent_fields
from tests.compat.rocketmq.frames import Answer, answers, joined, request
from tests.compat.tls_peers import TlsClient, authority, client_context

#: the settings' own file, which this machine may have, is none of ours
MINE = {"tls.config.file": "/nowhere"}


def certificates(directory: Path, **more: str) -> dict[str, str]:
    """Return settings with a certificate that clients trust."""
    issued = authority().server()
    (directory / "key.pem").write_text(issued.key)
    (directory / "server.pem").write_text(issued.certificate)
    (directory / "ca.pem").write_text(authority().certificate)
    return {
        **MINE,
        "tls.test.mode.enable": "false",
        "tls.server.keyPath": str(directory / "key.pem"),
        "tls.server.certPath": str(directory / "server.pem"),
        **{name.replace("__", "."): value for name, value in more.items()},
    }


def a_name_server(settings: dict[str, str]) -> NameServer:
    """Return a name server without brokers."""
    return NameServer(SimulatedHost(clock=ManualClock()), "/kv.json", settings)


def began(connection: RemotingConnection, context: ssl.SSLContext) -> TlsClient:
    """Return a client whose handshake is done, by the connection that takes over."""
    client = TlsClient(connection, context)
    with pytest.raises(ssl.SSLWantReadError):
        client.tls.do_handshake()
    connection.feed(client.outgoing.read())
    assert connection.is_closing
    assert connection.heir is not None
    client.connection = connection.heir
    client.shake_hands()
    return client


def ask(client: TlsClient, code: int, fields: dict[str, object], body: bytes = b"") -> Answer:
    """Return the answer to one request by TLS."""
    client.send(request(code, fields, body))
    (answer,) = answers(client.receive())
    return answer


def anybody() -> ssl.SSLContext:
    """Return a client's context that trusts everybody."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


@pytest.mark.parametrize("mode", ["permissive", "enforcing"])
def test_who_speaks_tls_is_served(mode: str, tmp_path: Path) -> None:
    """By broker and name server; the broker knows a connection once."""
    settings = certificates(tmp_path, tls__server__mode=mode)
    broker = a_broker(settings=settings)
    client = began(broker.connect("127.0.0.1", 40001), client_context(tmp_path))
    assert ask(client, 310, sent_fields("orders", 0), b"three apples").code == 0
    assert ask(client, 30, {"topic": "orders", "queueId": 0}).fields == {"offset": "1"}
    assert len(broker.born_hosts) == 1
    client.connection.lost()
    assert broker.born_hosts == {}
    name_server = a_name_server(settings)
    client = began(name_server.connect("127.0.0.1", 40001), client_context(tmp_path))
    assert ask(client, 106, {}).code == 0


def test_by_default_both_are_served() -> None:
    """The certificate is made when the first one speaks TLS, and the same for all."""
    broker = a_broker(settings=MINE)
    assert broker.tls is not None
    plain = broker.connect("127.0.0.1", 40001)
    assert joined(plain.feed(request(30, {"topic": "t", "queueId": 0})))
    assert plain.heir is None
    shown = [
        began(broker.connect("127.0.0.1", port), anybody()).tls.getpeercert(binary_form=True)
        for port in (40002, 40003)
    ]
    assert shown[0] == shown[1]
    assert shown[0]


def test_plain_peers_are_hung_up_on_where_all_must_speak_tls(tmp_path: Path) -> None:
    """At the first frame, without a word."""
    settings = certificates(tmp_path, tls__server__mode="enforcing")
    for service in (a_broker(settings=settings), a_name_server(settings)):
        connection = service.connect("127.0.0.1", 40001)
        assert connection.feed(request(30, {"topic": "t", "queueId": 0})) == []
        assert connection.is_closing
        assert connection.heir is None


def test_tls_is_refused_where_it_is_disabled() -> None:
    """The connection just ends."""
    settings = {"tls.server.mode": "disabled"}
    services: list[Broker | NameServer] = [a_broker(settings=settings), a_name_server(settings)]
    for service in services:
        connection = service.connect("127.0.0.1", 40001)
        connection.feed(b"\x16\x03\x01\x00\x05hello")
        assert connection.is_closing
        assert connection.heir is None


def test_tls_within_tls_is_none(tmp_path: Path) -> None:
    """Who begins with it anew is hung up on."""
    broker = a_broker(settings=certificates(tmp_path))
    client = began(broker.connect("127.0.0.1", 40001), client_context(tmp_path))
    client.send(b"\x16\x03\x01\x00\x05hello")
    assert client.connection.is_closing


def test_without_a_certificate() -> None:
    """Who need not speak TLS is served, who does is hung up on; where all must nobody can be."""
    settings = {**MINE, "tls.test.mode.enable": "false"}
    connection = a_broker(settings=settings).connect("127.0.0.1", 40001)
    connection.feed(b"\x16\x03\x01\x00\x05hello")
    assert connection.is_closing
    assert connection.heir is None
    with pytest.raises(ConfigError, match=r"tls\.server\.keyPath"):
        a_broker(settings={**settings, "tls.server.mode": "enforcing"})


def test_clients_may_have_to_show_certificates(tmp_path: Path) -> None:
    """One of an authority that is trusted; none is asked for if nobody would look at it."""
    settings = certificates(
        tmp_path,
        tls__server__need__client__auth="require",
        tls__server__trustCertPath=str(tmp_path / "ca.pem"),
    )
    broker = a_broker(settings=settings)
    client = began(broker.connect("127.0.0.1", 40001), client_context(tmp_path, "alice"))
    assert ask(client, 30, {"topic": "t", "queueId": 0}).code == 0
    modes = {
        ("none", "true"): ssl.CERT_NONE,
        ("strange", "true"): ssl.CERT_NONE,
        ("optional", "false"): ssl.CERT_NONE,
        ("optional", "true"): ssl.CERT_OPTIONAL,
        ("REQUIRE", "false"): ssl.CERT_REQUIRED,
    }
    for (wanted, authenticates), mode in modes.items():
        settings["tls.server.need.client.auth"] = wanted
        settings["tls.server.authClient"] = authenticates
        assert tls_context(settings).verify_mode == mode, wanted


def test_versions_and_suites(tmp_path: Path) -> None:
    """Those that are named, in Java's words; unknown ones are refused."""
    settings = certificates(
        tmp_path,
        tls__protocols="TLSv1.2",
        tls__ciphers="TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
    )
    client = began(a_broker(settings=settings).connect("127.0.0.1", 1), client_context(tmp_path))
    cipher = client.tls.cipher()
    assert cipher is not None
    assert cipher[:2] == ("ECDHE-ECDSA-AES128-GCM-SHA256", "TLSv1.2")
    for name, text in (("tls.protocols", "SSLv3"), ("tls.ciphers", "STRANGE")):
        with pytest.raises(ConfigError, match=name):
            tls_context({**settings, name: text})


def test_the_file_of_its_own_wins(tmp_path: Path) -> None:
    """Where tls.config.file is there, what it says goes, comments aside."""
    settings = certificates(tmp_path)
    file = tmp_path / "tls.properties"
    file.write_text("# tls.protocols=SSLv3\ntls.protocols = TLSv1.3\ntls.server.mode=disabled\n\n")
    context = tls_context({**settings, "tls.protocols": "TLSv1.2", "tls.config.file": str(file)})
    assert context.minimum_version == ssl.TLSVersion.TLSv1_3


def test_keys_with_passwords(tmp_path: Path) -> None:
    """They are opened by theirs, for the proxy's library too, which asks for none."""
    from cryptography.hazmat.primitives.serialization import (
        BestAvailableEncryption,
        Encoding,
        PrivateFormat,
        load_pem_private_key,
    )

    settings = certificates(tmp_path)
    plain = (tmp_path / "key.pem").read_bytes()
    locked = load_pem_private_key(plain, None).private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret")
    )
    (tmp_path / "key.pem").write_bytes(locked)
    opened = {**settings, "tls.server.keyPassword": "secret"}
    tls_context(opened)
    for wrong in (settings, {**settings, "tls.server.keyPassword": "wrong"}):
        with pytest.raises(ConfigError, match=r"tls\.server\.keyPath"):
            tls_context(wrong)
