"""Clients at listeners with TLS and SASL: the real Kafka's, and ours with the same settings."""

from __future__ import annotations

import asyncio
import functools
import importlib
import os
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.helpers import create_ssl_context
from kafka import KafkaProducer
from kafka.net.sasl.oauth import AbstractTokenProvider

from tests.interop.clients import settings
from tests.interop.conftest import RunTool, new_topic
from tests.interop.eventually import eventually
from tests.interop.raw_wire import METADATA, request
from tests.interop.sasl_wire import unsecured_token
from tests.interop.security_stage import (
    MECHANISMS,
    PASSWORDS,
    PROTOCOLS,
    Secured,
    both_secured,
    scram_users,
)
from tests.interop.test_kafkajs import node_path as node_path

pytestmark = pytest.mark.interop

kafka_admin: Any = importlib.import_module("confluent_kafka.admin")  # carries few types

_KAFKAJS = Path(__file__).with_name("kafkajs_login.js")
SCRAM_AND_PLAIN = MECHANISMS[:3]
REFUSED = "refused"
#: user and password, and whether they are let in
LOGINS = (
    ("alice", PASSWORDS["alice"], True),
    ('b,o=b "x"', "pass word", True),
    ("alice", "wrong", False),
    ("nobody", "x", False),
)


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Secured]]:
    """Both brokers."""
    with both_secured(tmp_path_factory.mktemp("secured")) as found:
        for one in found:
            new_topic(one.listeners["PLAIN"], "t")
        yield found


@pytest.fixture(params=[0, 1], ids=["real", "ours"])
def secured(stage: list[Secured], request: pytest.FixtureRequest) -> Secured:
    """First the real one, which proves the test, then ours."""
    found: Secured = stage[request.param]
    return found


def token_now(*_: Any) -> str:
    """Return a bearer token that is good for an hour."""
    now = int(time.time())
    return unsecured_token({"sub": "alice", "iat": now, "exp": now + 3600})


def send(client: dict[str, Any], value: bytes = b"x", topic: str = "t") -> int | str:
    """Produce a record by librdkafka; return its offset, or REFUSED if it may not come in."""
    errors: list[confluent_kafka.KafkaError] = []
    told: list[int] = []

    def delivered(error: confluent_kafka.KafkaError | None, message: Any) -> None:
        if error is None:
            told.append(message.offset())

    more = {"error_cb": errors.append, "message.max.bytes": 10_000_000}
    producer = confluent_kafka.Producer(client | more)
    producer.produce(topic, value, callback=delivered)
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        producer.poll(0.05)
        if told:
            return told[0]
        if any(is_refusal(error) for error in errors):
            producer.purge()
            return REFUSED
    raise AssertionError(f"neither sent nor refused: {errors}")


def is_refusal(error: confluent_kafka.KafkaError) -> bool:
    """Tell whether somebody may not come in, or does not want to."""
    if error.code() in (error._AUTHENTICATION, error._SSL):
        return True
    return "alert" in error.str()  # what TLS says to a client whose certificate is not taken


@pytest.mark.parametrize("listener", ["SASL", "BOTH"])
@pytest.mark.parametrize("mechanism", SCRAM_AND_PLAIN)
def test_librdkafka(secured: Secured, listener: str, mechanism: str) -> None:
    """Whoever knows the password of a user is let in, by every mechanism, with TLS and without."""
    for user, password, is_good in LOGINS:
        client = secured.client(
            listener, sasl_mechanism=mechanism, sasl_username=user, sasl_password=password
        )
        assert isinstance(send(client), int) == is_good, (user, password)


def test_librdkafka_with_tokens(secured: Secured) -> None:
    """Its own unsecured tokens are accepted, and those that have run out are not."""
    client = secured.client("BOTH", sasl_mechanism="OAUTHBEARER")
    client["enable.sasl.oauthbearer.unsecure.jwt"] = True
    assert isinstance(
        send(client | {"sasl.oauthbearer.config": "principal=alice lifeSeconds=60"}), int
    )
    now = int(time.time())
    late = unsecured_token({"sub": "alice", "iat": now - 9, "exp": now - 5})
    del client["enable.sasl.oauthbearer.unsecure.jwt"]
    assert send(client | {"oauth_cb": lambda _: (late, time.time() + 60)}) == REFUSED


class Tokens(AbstractTokenProvider):
    """What kafka-python asks for bearer tokens."""

    def token(self) -> Any:
        """Return one."""
        return token_now()


def kafka_python(secured: Secured, listener: str, **more: Any) -> int | str:
    """Produce a record by kafka-python."""
    try:
        producer = KafkaProducer(
            bootstrap_servers=secured.listeners[listener],
            security_protocol=PROTOCOLS[listener],
            ssl_cafile=str(secured.certificates.ca),
            bootstrap_timeout_ms=2000,  # pyright: ignore[reportCallIssue] # its stubs lack it
            **more,
        )
    except Exception as error:  # noqa: BLE001 - it has several for this
        return type(error).__name__
    try:
        return int(producer.send("t", b"x").get(timeout=20).offset)
    except Exception as error:  # noqa: BLE001 - likewise
        return type(error).__name__
    finally:
        producer.close(timeout=0)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_kafka_python(stage: list[Secured], mechanism: str) -> None:
    """It is let in, or not, by both brokers; with SCRAM it does not write a comma as it must."""
    if mechanism == "OAUTHBEARER":
        logins: list[tuple[dict[str, Any], bool]] = [
            ({"sasl_oauth_token_provider": Tokens()}, True)
        ]
    else:
        logins = [
            ({"sasl_plain_username": user, "sasl_plain_password": password}, is_good)
            for user, password, is_good in LOGINS
            if mechanism == "PLAIN" or user.isalpha()
        ]
    for login, is_good in logins:
        found = [kafka_python(one, "BOTH", sasl_mechanism=mechanism, **login) for one in stage]
        assert [isinstance(one, int) for one in found] == [is_good, is_good], found
        assert is_good or found[0] == found[1]


async def aiokafka(secured: Secured, listener: str, **more: Any) -> int | str:
    """Produce a record by aiokafka."""
    producer = AIOKafkaProducer(
        bootstrap_servers=secured.listeners[listener],
        security_protocol=PROTOCOLS[listener],
        ssl_context=create_ssl_context(cafile=str(secured.certificates.ca)),
        **more,
    )
    try:
        await producer.start()
        return int((await producer.send_and_wait("t", b"x")).offset)
    except Exception as error:  # noqa: BLE001 - it has several for this
        return type(error).__name__
    finally:
        await producer.stop()


@pytest.mark.parametrize("mechanism", SCRAM_AND_PLAIN)
def test_aiokafka(stage: list[Secured], mechanism: str) -> None:
    """The same of the client for asyncio."""
    for user, password, is_good in LOGINS:
        found = [
            asyncio.run(
                aiokafka(
                    one, "BOTH", sasl_mechanism=mechanism, sasl_plain_username=user,
                    sasl_plain_password=password,
                )
            )
            for one in stage
        ]  # fmt: skip
        assert [isinstance(one, int) for one in found] == [is_good, is_good], (user, found)
        if not is_good:
            assert found[0] == found[1]


def test_kafkajs(stage: list[Secured], node_path: Path) -> None:
    """It is let in by each mechanism, or told the same by both brokers."""
    logins = [
        f"{mechanism}:alice:{password}"
        for mechanism in ("plain", "scram-sha-256", "scram-sha-512")
        for password in (PASSWORDS["alice"], "wrong")
    ]
    found: list[list[str]] = []
    for one in stage:
        done = subprocess.run(
            ["node", str(_KAFKAJS), one.listeners["BOTH"], str(one.certificates.ca), *logins],
            env={**os.environ, "NODE_PATH": str(node_path)},
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )
        found.append(done.stdout.splitlines())
    assert found[0] == found[1]
    assert found[1][::2] == ["in"] * 3
    assert "in" not in found[1][1::2]


def test_tls_alone(secured: Secured) -> None:
    """A certificate of the right authority is enough for the client, and asked for by nobody."""
    assert isinstance(send(secured.client("TLS")), int)
    assert isinstance(kafka_python(secured, "TLS"), int)
    other = secured.client("TLS") | {"ssl.ca.location": str(secured.certificates.stranger)}
    assert send(other) == REFUSED
    with pytest.raises(AssertionError, match="neither"):
        wait_briefly(secured.client("TLS") | {"security.protocol": "PLAINTEXT"})


def wait_briefly(client: dict[str, Any]) -> None:
    """Raise AssertionError unless the broker answers; it does not if it is spoken to in plain."""
    producer = confluent_kafka.Producer(client)
    try:
        producer.list_topics(timeout=1)
    except confluent_kafka.KafkaException:
        raise AssertionError("neither sent nor refused") from None


def test_certificates_of_clients(secured: Secured) -> None:
    """Where they are required, one of the right authority is let in, and no other and none."""
    certificates = secured.certificates
    found = {}
    for name in ("alice", "stranger", ""):
        path = str(getattr(certificates, name)) if name else ""
        own = {"ssl.certificate.location": path, "ssl.key.location": path} if path else {}
        found[name] = is_let_in(secured, own)
    assert found == {"alice": True, "stranger": False, "": False}


def is_let_in(secured: Secured, own: dict[str, Any]) -> bool:
    """Tell whether a client with that certificate gets an answer."""
    path = own.get("ssl.certificate.location")
    context = ssl.create_default_context(cafile=str(secured.certificates.ca))
    if path is not None:
        context.load_cert_chain(str(path))
        assert isinstance(send(secured.client("MUTUAL") | own), int) == ("alice" in str(path))
    host, _, port = secured.listeners["MUTUAL"].rpartition(":")
    try:
        with (
            socket.create_connection((host, int(port)), 10) as plain,
            context.wrap_socket(plain, server_hostname=host) as wire,
        ):
            payload = request(METADATA, 1, bytes(4))
            wire.sendall(len(payload).to_bytes(4, "big") + payload)
            return bool(wire.recv(4))
    except (ssl.SSLError, ConnectionError):
        return False


@pytest.mark.parametrize("listener", [pytest.param("TLS", marks=pytest.mark.slow), "BOTH"])
def test_much_goes_through(secured: Secured, listener: str) -> None:
    """Thirty megabytes in records of three sizes come back as they were sent, all at once."""
    topic = f"much-{listener.lower()}"
    new_topic(secured.listeners["PLAIN"], topic, config={"max.message.bytes": "10000000"})
    client = secured.client(listener, "alice" if listener == "BOTH" else "")
    producer = confluent_kafka.Producer(client | {"message.max.bytes": 10_000_000})
    values = [bytes([number % 251]) * size for number, size in enumerate(
        [100] * 2000 + [30_000] * 300 + [900_000] * 20
    )]  # fmt: skip
    for value in values:
        producer.produce(topic, value)
        producer.poll(0)
    assert producer.flush(60) == 0
    consumer = confluent_kafka.Consumer(
        client
        | {"group.id": "g", "auto.offset.reset": "earliest", "fetch.message.max.bytes": 9_000_000}
    )
    consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
    found: list[bytes] = []
    deadline = time.monotonic() + 60
    while len(found) < len(values) and time.monotonic() < deadline:
        for message in consumer.consume(500, 1):
            assert message.error() is None
            content = message.value()
            assert isinstance(content, bytes)
            found.append(content)
    consumer.close()
    assert found == values


def test_every_listener_tells_its_own_address(secured: Secured) -> None:
    """A client is told to come back the way that it came."""
    for name, user in (("PLAIN", ""), ("TLS", ""), ("SASL", "alice"), ("BOTH", "alice")):
        admin = kafka_admin.AdminClient(secured.client(name, user))
        (node,) = admin.describe_cluster().result(30).nodes
        assert f"{node.host}:{node.port}" == secured.listeners[name]
        (broker,) = admin.list_topics(timeout=30).brokers.values()
        assert f"{broker.host}:{broker.port}" == secured.listeners[name]


def scram_changes(bootstrap: str) -> list[object]:
    """Give and take credentials, right and wrong ones; return what is said to each."""
    admin = kafka_admin.AdminClient(settings(bootstrap))
    said: list[object] = []

    def change(*asked: Any) -> None:
        for user, done in admin.alter_user_scram_credentials([*asked]).items():
            try:
                done.result(30)
                said.append((user, "done"))
            except confluent_kafka.KafkaException as error:
                said.append((user, error.args[0].code(), error.args[0].str()))

    kind = kafka_admin.ScramMechanism.SCRAM_SHA_256
    upsert = functools.partial(_upsertion, kind)
    remove = functools.partial(kafka_admin.UserScramCredentialDeletion, mechanism=kind)
    change(upsert("carol", 8192))
    change(upsert("carol", 4096), remove("nobody"))
    change(upsert("dave", 4095), upsert("erin", 16385))
    change(upsert("frank", 4096), remove("frank"))
    change(
        kafka_admin.UserScramCredentialDeletion("carol", kafka_admin.ScramMechanism.SCRAM_SHA_512)
    )
    eventually(lambda: "carol" in scram_users(admin), what="carol")
    for user, done in admin.describe_user_scram_credentials(["carol", "nobody"]).items():
        try:
            infos = done.result(30).scram_credential_infos
            said.append((user, [(str(one.mechanism), one.iterations) for one in infos]))
        except confluent_kafka.KafkaException as error:
            said.append((user, error.args[0].code(), error.args[0].str()))
    change(remove("carol"))
    eventually(lambda: "carol" not in scram_users(admin), what="no carol")
    return sorted(said, key=str)


def _upsertion(kind: Any, user: str, iterations: int) -> Any:
    info = kafka_admin.ScramCredentialInfo(kind, iterations)
    return kafka_admin.UserScramCredentialUpsertion(user, info, b"pw")


def test_scram_credentials(stage: list[Secured]) -> None:
    """They are given, described and taken away; what is wrong with a request is said alike."""
    real, ours = (scram_changes(one.listeners["PLAIN"]) for one in stage)
    assert ours == real


def test_java_tools(secured: Secured, kafka_tool: RunTool, tmp_path: Path) -> None:
    """Kafka's own client comes in by each mechanism with TLS, and says why it is refused."""
    for mechanism, password, is_good in (
        ("PLAIN", "alice-secret", True),
        ("SCRAM-SHA-512", "alice-secret", True),
        ("SCRAM-SHA-256", "wrong", False),
    ):
        module = "plain.Plain" if mechanism == "PLAIN" else "scram.Scram"
        config = tmp_path / "client.properties"
        config.write_text(
            f"security.protocol=SASL_SSL\nsasl.mechanism={mechanism}\n"
            "ssl.truststore.type=PEM\n"
            f"ssl.truststore.location={secured.certificates.ca}\n"
            f"sasl.jaas.config=org.apache.kafka.common.security.{module}LoginModule required "
            f'username="alice" password="{password}";\n'
        )
        done = kafka_tool(
            "TopicCommand", "--bootstrap-server", secured.listeners["BOTH"],
            "--command-config", str(config), "--list", check=False,
        )  # fmt: skip
        assert ("t" in done.stdout.splitlines()) == is_good
        told = f"invalid credentials with SASL mechanism {mechanism}"
        assert (told in done.stdout + done.stderr) != is_good


def test_sessions_go_on(secured: Secured) -> None:
    """A client that authenticates anew in time is served on, over the same connection."""
    client = secured.client("SHORT", "alice")
    offsets: list[int | None] = []
    producer = confluent_kafka.Producer(client)
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        producer.produce("t", b"x", callback=lambda _, message: offsets.append(message.offset()))
        assert producer.flush(10) == 0
        producer.poll(0.25)  # its thread goes on, and authenticates anew when it is time
    assert offsets == [*range(offsets[0] or 0, (offsets[0] or 0) + len(offsets))]
    assert len(offsets) >= 10
