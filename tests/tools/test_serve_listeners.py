"""``logstore serve`` with several listeners, TLS and SASL."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from logstore.tools.dev.free_ports import free_port
from tests.compat.tls_peers import authority, client_context, written
from tests.tools.serving import SECONDS_MAX, Serving, refused
from tests.tools.test_serve import cluster, configs, consume, produce

JAAS = (
    "listener.name.sasl_plaintext.plain.sasl.jaas.config=org.apache.kafka.common.security.plain."
    'PlainLoginModule required user_alice="secret";'
)
PLAIN = "listener.name.sasl_plaintext.sasl.enabled.mechanisms=PLAIN"


def given(*settings: str) -> list[str]:
    """Return settings as arguments."""
    return [word for setting in settings for word in ("--set", setting)]


def test_several_listeners(tmp_path: Path) -> None:
    """All are told, the first one as the bootstrap address; --port is its port."""
    store = written(tmp_path / "server.pem", authority().server())
    settings = given(
        "listeners=PLAINTEXT://127.0.0.1:1,SSL://localhost:0,SASL_PLAINTEXT://:0",
        "ssl.keystore.type=PEM", f"ssl.keystore.location={store}", PLAIN, JAAS,
    )  # fmt: skip
    with Serving("--json", "--data", tmp_path / "data", *settings) as serving:
        listeners = serving.ready["listeners"]
        assert list(listeners) == ["PLAINTEXT", "SSL", "SASL_PLAINTEXT"]
        assert serving.bootstrap == listeners["PLAINTEXT"] != "127.0.0.1:1"
        produce(serving.bootstrap, b"a")
        assert consume(serving.bootstrap, 1) == [b"a"]
        named = ",".join(f"{name}://{address}" for name, address in listeners.items())
        assert configs(serving.bootstrap)["listeners"] == named
        host, _, port = listeners["SSL"].rpartition(":")
        assert host == "localhost"
        with (
            socket.create_connection((host, int(port)), SECONDS_MAX) as plain,
            client_context(tmp_path).wrap_socket(plain, server_hostname=host) as secure,
        ):
            assert secure.version() == "TLSv1.3"
        assert serving.stop() == 0
        assert serving.err == ""


def test_what_it_prints(tmp_path: Path) -> None:
    """Every listener by its name and address, ready to be copied."""
    settings = given("listeners=SASL_PLAINTEXT://127.0.0.1:0,PLAINTEXT://127.0.0.1:0", PLAIN, JAAS)
    with Serving(*settings) as serving:
        assert serving.line.startswith("Kafka broker at SASL_PLAINTEXT://127.0.0.1:")
        assert ", PLAINTEXT://127.0.0.1:" in serving.line


def test_several_listeners_of_several_nodes() -> None:
    """Each node's ports come behind those of the one before; what is advertised goes with them."""
    first = free_port(1, 2, 3)
    assert first is not None
    settings = given(
        f"listeners=PLAINTEXT://127.0.0.1:{first},SASL_PLAINTEXT://127.0.0.1:{first + 1}",
        "advertised.listeners="
        f"PLAINTEXT://127.0.0.1:{first},SASL_PLAINTEXT://localhost:{first + 1}",
        PLAIN, JAAS,
    )  # fmt: skip
    with Serving("--json", "--nodes", 2, *settings, port=None) as serving:
        plain = [f"127.0.0.1:{first}", f"127.0.0.1:{first + 2}"]
        assert serving.ready["nodes"] == {"1": plain[0], "2": plain[1]}
        assert serving.ready["listeners"] == {
            "PLAINTEXT": ",".join(plain),
            "SASL_PLAINTEXT": f"localhost:{first + 1},localhost:{first + 3}",
        }
        login = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN",
                 "sasl.username": "alice", "sasl.password": "secret"}  # fmt: skip
        for bootstrap, more in ((plain[1], {}), (f"localhost:{first + 3}", login)):
            found = cluster(bootstrap, more).brokers
            told = sorted((one.id, one.port) for one in found.values())
            step = 1 if more else 0
            assert told == [(1, first + step), (2, first + 2 + step)]
        produce(serving.bootstrap, b"a")
        assert consume(plain[1], 1) == [b"a"]
        assert (serving.stop(), serving.err) == (0, "")


def test_one_plain_listener_is_what_it_was(tmp_path: Path) -> None:
    """Under whatever name; what is advertised is what clients are told."""
    settings = given(
        "listeners=INSIDE://127.0.0.1:0", "listener.security.protocol.map=INSIDE:PLAINTEXT"
    )
    with Serving("--json", *settings) as serving:
        assert "listeners" not in serving.ready
        assert len(cluster(serving.bootstrap).brokers) == 1


def test_a_listener_that_nobody_names_is_called_plaintext() -> None:
    """What its name stands for is as it is said: clients log in."""
    jaas = JAAS.replace("sasl_plaintext", "plaintext")
    settings = given(
        "listener.security.protocol.map=PLAINTEXT:SASL_PLAINTEXT", jaas,
        "sasl.enabled.mechanisms=PLAIN",
    )  # fmt: skip
    with Serving("--json", *settings) as serving:
        assert list(serving.ready["listeners"]) == ["PLAINTEXT"]
        login = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN",
                 "sasl.username": "alice", "sasl.password": "secret"}  # fmt: skip
        assert len(cluster(serving.bootstrap, login).brokers) == 1


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        (["listeners=SSL://:0"], "ssl.keystore.location = None"),
        (["listeners=SASL_PLAINTEXT://:0", PLAIN], "must be given for PLAIN"),
        (["listeners=SASL_SSL://:0,PLAINTEXT://:0"], "TLS needs a certificate"),
        (["listeners=OUTSIDE://:0,PLAINTEXT://:0"], "OUTSIDE must have a protocol"),
    ],
)
def test_what_is_not_enough(settings: list[str], told: str, tmp_path: Path) -> None:
    """It ends with one line that names the setting."""
    code, said = refused("--data", tmp_path / "data", *given(*settings))
    assert code == 1
    assert told in said
    assert len(said.splitlines()) == 1


def test_a_taken_port(tmp_path: Path) -> None:
    """Also one of a further listener."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        two = f"listeners=PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:{port}"
        code, said = refused("--data", tmp_path / "data", *given(two, PLAIN, JAAS))
    assert code == 1
    assert f"127.0.0.1:{port} is taken" in said
