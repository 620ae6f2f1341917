"""The broker for tests with users and TLS: what the README promises."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient

from logstore.compat import TestBroker
from logstore.segments.kafka.config_keys import ConfigError
from logstore.testing.running_clock import RunningClock
from logstore.testing.simulated_host import SimulatedHost

SECONDS_MAX = 20


def settings(broker: TestBroker, listener: str, **more: str) -> dict[str, Any]:
    """Return librdkafka's settings for a listener, whose name is that of its protocol."""
    found = {
        "bootstrap.servers": broker.listeners[listener],
        "security.protocol": listener,
        "log_level": 0,
    }
    if listener.endswith("SSL"):
        found["ssl.ca.location"] = broker.ca_file
    return found | {key.replace("_", "."): value for key, value in more.items()}


def login(name: str, password: str, mechanism: str = "SCRAM-SHA-256") -> dict[str, str]:
    """Return what a user gives."""
    return {"sasl_mechanism": mechanism, "sasl_username": name, "sasl_password": password}


def topics(client: dict[str, Any]) -> set[str]:
    """Return the topics that a client is told of; an error says why it is not let in."""
    errors: list[confluent_kafka.KafkaError] = []
    told: dict[str, Any] = {**client, "error_cb": errors.append}
    admin = AdminClient(told)
    deadline = time.monotonic() + SECONDS_MAX
    while not errors and time.monotonic() < deadline:
        try:
            return set(admin.list_topics(timeout=1).topics)
        except confluent_kafka.KafkaException:
            admin.poll(0)
    raise PermissionError(str(errors[0]))


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_users_and_tls(mechanism: str) -> None:
    """One listener, SASL_SSL; the users come in by each mechanism, over crashes and restarts."""
    with TestBroker(users={"alice": 'se"cr\\et'}, tls=True) as broker:
        assert list(broker.listeners.items()) == [("SASL_SSL", broker.bootstrap)]
        client = settings(broker, "SASL_SSL", **login("alice", 'se"cr\\et', mechanism))
        broker.create_topic("t")
        assert topics(client) == {"t"}
        for again in (broker.crash, broker.start, broker.restart):
            again()
        assert client["bootstrap.servers"] == broker.bootstrap
        assert topics(client) == {"t"}
        principals = broker.call(_principals(broker))
        assert principals <= {"User:alice"}


def _principals(broker: TestBroker) -> Any:
    def work() -> set[str]:
        import gc

        from logstore.compat.kafka.connection import KafkaConnection

        return {
            str(one.client.principal)
            for one in gc.get_objects()
            if isinstance(one, KafkaConnection) and one.broker is broker.broker
        }

    return work


def test_a_wrong_password() -> None:
    """The client is told so in Kafka's words."""
    with TestBroker(users={"alice": "secret"}, mechanisms=["SCRAM-SHA-512"]) as broker:
        wrong = settings(broker, "SASL_PLAINTEXT", **login("alice", "x", "SCRAM-SHA-512"))
        with pytest.raises(PermissionError, match="invalid credentials with SASL mechanism"):
            topics(wrong)
        other = settings(broker, "SASL_PLAINTEXT", **login("alice", "secret"))
        with pytest.raises(PermissionError, match="supported mechanisms: SCRAM-SHA-512"):
            topics(other)


def test_a_new_password_holds_on_old_data(tmp_path: Path) -> None:
    """What the arguments say counts, and other users stay."""
    directory = str(tmp_path / "data")
    for password in ("old", "old", "new"):
        with TestBroker(directory, users={"alice": password}) as broker:
            assert topics(settings(broker, "SASL_PLAINTEXT", **login("alice", password))) == set()
    with TestBroker(directory, users={"bob": "b"}) as broker:
        assert topics(settings(broker, "SASL_PLAINTEXT", **login("alice", "new"))) == set()


def test_certificates_of_clients(tmp_path: Path) -> None:
    """The broker's own authority issues them; the files go away with the broker."""
    with TestBroker(tls=True, settings={"ssl.client.auth": "required"}) as broker:
        path = broker.client_certificate("alice")
        own = {"ssl_certificate_location": path, "ssl_key_location": path}
        assert topics(settings(broker, "SSL", **own)) == set()
        ca = broker.ca_file
    assert not os.path.exists(path)
    assert not os.path.exists(ca)


def test_several_listeners() -> None:
    """Each is what its name says, and has what it needs; the port stays that of the first."""
    text = "PLAINTEXT://:0,SSL://localhost:0,SASL_PLAINTEXT://127.0.0.1:0,SASL_SSL://:0"
    with TestBroker(users={"a": "b"}, tls=True, settings={"listeners": text}) as broker:
        assert list(broker.listeners) == ["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
        assert broker.bootstrap == broker.listeners["PLAINTEXT"]
        before = broker.listeners
        broker.create_topic("t")
        for name in broker.listeners:
            who = login("a", "b") if name.startswith("SASL") else {}
            assert topics(settings(broker, name, **who)) == {"t"}
        broker.restart()
        assert broker.listeners == before


def test_what_is_advertised_is_not_what_is_listened_at() -> None:
    """Clients are told the one, and a restart listens at the other, on the same port."""
    told = {"listeners": "PLAINTEXT://127.0.0.2:0,SSL://:0"}
    told["advertised.listeners"] = "PLAINTEXT://localhost:7,SSL://127.0.0.1:0"
    with TestBroker(tls=True, settings=told) as broker:
        assert broker.bootstrap == broker.listeners["PLAINTEXT"] == "localhost:7"
        before = broker.listeners["SSL"]
        assert int(before.rpartition(":")[2]) > 1024
        broker.restart()
        assert broker.listeners["SSL"] == before
        assert broker.bootstrap == "localhost:7"


def test_bearer_tokens() -> None:
    """Librdkafka's own unsecured ones are enough."""
    with TestBroker(mechanisms=["OAUTHBEARER"]) as broker:
        client = settings(broker, "SASL_PLAINTEXT", sasl_mechanism="OAUTHBEARER")
        client["enable.sasl.oauthbearer.unsecure.jwt"] = True
        client["sasl.oauthbearer.config"] = "principal=alice"
        assert topics(client) == set()


def test_an_old_broker() -> None:
    """Before 1.0 tokens stood in no requests; librdkafka still knows how."""
    with TestBroker(users={"alice": "secret"}, emulate="0.11") as broker:
        old = {"api_version_request": "false", "broker_version_fallback": "0.10.0"}
        for password, is_good in (("secret", True), ("x", False)):
            client = settings(broker, "SASL_PLAINTEXT", **login("alice", password, "PLAIN"), **old)
            if is_good:
                assert topics(client) == set()
            else:
                with pytest.raises(PermissionError):
                    topics(client)


def test_on_a_simulated_disk() -> None:
    """Users survive a loss of power there, too."""
    from logstore.testing.power_loss import LOSE_UNSYNCED

    host = SimulatedHost(clock=RunningClock())
    with TestBroker("/data", users={"alice": "secret"}, host=host) as broker:
        broker.crash(LOSE_UNSYNCED)
        broker.start()
        assert topics(settings(broker, "SASL_PLAINTEXT", **login("alice", "secret"))) == set()


def test_settings_that_are_not_enough() -> None:
    """The error names what is missing, and the broker has let go of everything."""
    with pytest.raises(ConfigError, match=r"ssl\.keystore\.location"):
        TestBroker(settings={"listeners": "SSL://:0"}).start()
    with pytest.raises(ConfigError, match="GSSAPI"):
        TestBroker(settings={"listeners": "SASL_PLAINTEXT://:0"}).start()


def test_who_asks_for_none_of_it_pays_nothing() -> None:
    """A plain broker loads none of these modules."""
    code = (
        "import sys\n"
        "from logstore.compat import TestBroker\n"
        "with TestBroker() as broker: broker.create_topic('t')\n"
        "print(sorted(m for m in sys.modules if m.startswith('logstore.compat.') and ("
        "'security' in m or 'tls' in m or 'certificates' in m) or 'cryptography' in m))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    plain = "logstore.compat.kafka.security"
    assert done.stdout.strip() == str([plain, f"{plain}.listener", f"{plain}.principal"])
