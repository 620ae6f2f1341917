"""Access control: with the same rules alice is answered by our broker what the real one answers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, Producer
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)
from kafka import KafkaProducer
from kafka.errors import TopicAuthorizationFailedError

from logstore.compat.kafka.registry import APIS
from logstore.compat.kafka.security.guards import OPEN
from logstore.tools.dev.free_ports import free_port
from logstore.tools.dev.kafka_peer import KafkaPeer
from logstore.tools.dev.maven import PeerUnavailable
from tests.interop.access_requests import REQUESTS, RIGHTS
from tests.interop.access_session import AccessSession
from tests.interop.access_wire import (
    AUTHORIZER,
    Asker,
    OurSpeaker,
    RealSpeaker,
    open_ours,
    sasl_settings,
)
from tests.interop.clients import settings
from tests.interop.conftest import VERSION, RunTool, missing, new_topic, start_real
from tests.interop.eventually import eventually
from tests.interop.our_broker import OurBroker

pytestmark = pytest.mark.interop

SETTINGS: dict[str, object] = {
    "group.initial.rebalance.delay.ms": 0,
    "group.share.max.session.timeout.ms": 600_000,
    "group.share.session.timeout.ms": 600_000,
    "group.streams.assignment.interval.ms": 0,
    "group.streams.initial.rebalance.delay.ms": 0,
    "group.streams.max.session.timeout.ms": 600_000,
    "group.streams.session.timeout.ms": 600_000,
    "log.retention.ms": -1,
    "num.partitions": 1,
    "offsets.topic.num.partitions": 1,
    "share.coordinator.state.topic.num.partitions": 1,
    "transaction.state.log.num.partitions": 1,
}
TOPIC_RULE = AclBinding(
    ResourceType.TOPIC, "t", ResourcePatternType.LITERAL, "User:ANONYMOUS", "*",
    AclOperation.ALL, AclPermissionType.DENY,
)  # fmt: skip
SECONDS_MAX = 30
#: any name; the library's types do not know of it
NONE: Any = None


@pytest.fixture(scope="module")
def named(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaPeer]:
    """A real broker that knows its clients by name at one port, and lets all in at another."""
    directory = tmp_path_factory.mktemp("named")
    port = free_port(1, 2)
    if port is None:
        missing("no three neighbouring ports are free")
    settings = SETTINGS | AUTHORIZER | sasl_settings(port)
    peer = KafkaPeer(VERSION, directory, port, settings)
    try:
        yield peer.start()
    except PeerUnavailable as reason:
        missing(str(reason))
    finally:
        peer.stop(kill=True)


def test_every_api_answers_the_same(named: KafkaPeer, tmp_path: Path) -> None:
    """Codes, what they are about and the operations told: for every API, with any rights."""
    expected = AccessSession(lambda user: Asker(RealSpeaker(named, user))).run()
    broker = open_ours(tmp_path / "ours", SETTINGS | AUTHORIZER)
    try:
        found = AccessSession(lambda user: Asker(OurSpeaker(broker, user))).run()
    finally:
        broker.close()
    assert len(expected) == len(RIGHTS) * len(REQUESTS)
    assert found == expected
    refused = {code for answer in expected.values() for code in codes(answer)}
    assert {29, 30, 31, 53, 0} <= refused


def codes(found: Any) -> Iterator[int]:
    """Yield every error code of an answer."""
    if isinstance(found, list):
        for one in found:
            yield from codes(one)
    elif isinstance(found, dict):
        for key, value in found.items():
            if key.endswith("error_code"):
                yield value
            yield from codes(value)


def test_every_api_is_asked() -> None:
    """Whatever is served with a guard is among the requests; what is not yet served may be."""
    asked = {one.api for one in REQUESTS}
    served = {api.name for api in APIS.values() if api.key not in OPEN}
    assert served <= asked | {"AlterClientQuotas"}


TOOL_RUNS = (
    ("--add", "--allow-principal", "User:alice", "--operation", "Read", "--topic", "t"),
    ("--add", "--deny-principal", "User:bob", "--deny-host", "10.0.0.1", "--operation", "All",
     "--topic", "p", "--resource-pattern-type", "prefixed"),
    ("--add", "--allow-principal", "User:*", "--producer", "--topic", "q", "--transactional-id",
     "x", "--idempotent"),
    ("--add", "--allow-principal", "User:carol", "--consumer", "--topic", "q", "--group", "g"),
    ("--add", "--allow-principal", "nobody", "--operation", "Read", "--topic", "t"),
    ("--list",),
    ("--list", "--topic", "pq", "--resource-pattern-type", "match"),
    ("--list", "--principal", "User:carol"),
    ("--remove", "--force", "--allow-principal", "User:carol", "--consumer", "--topic", "q",
     "--group", "g"),
    ("--remove", "--force", "--topic", "p", "--resource-pattern-type", "prefixed"),
    ("--list",),
)  # fmt: skip


def said(bootstrap: str, kafka_tool: RunTool) -> list[tuple[int, list[str]]]:
    """Return what the tool for rules prints; the order of rules is not told."""
    runs = [
        kafka_tool("AclCommand", "--bootstrap-server", bootstrap, *words, check=False)
        for words in TOOL_RUNS
    ]
    return [(run.status, sorted(run.stdout.splitlines())) for run in runs]


def test_kafka_acls(named: KafkaPeer, kafka_tool: RunTool, tmp_path: Path) -> None:
    """The tool adds, lists and removes rules at ours as at the real broker."""
    expected = said(named.bootstrap, kafka_tool)
    broker = OurBroker(tmp_path / "ours", AUTHORIZER).start()
    try:
        assert said(broker.bootstrap, kafka_tool) == expected
    finally:
        broker.stop()
    assert any("User:carol" in line for line in expected[5][1])


@pytest.mark.slow
def test_rules_change_hands(tmp_path: Path) -> None:
    """What the real broker keeps ours goes on with, and the real one with what ours has changed."""
    real = start_real(tmp_path / "real", settings=AUTHORIZER)
    admin = AdminClient(settings(real.bootstrap))
    rules = [rule("a"), rule("b", pattern=ResourcePatternType.PREFIXED)]
    create(admin, *rules)
    assert held(admin) == {str(one) for one in rules}
    real.stop()

    ours = OurBroker(tmp_path / "ours", AUTHORIZER, data=real.data).start()
    admin = AdminClient(settings(ours.bootstrap))
    assert held(admin) == {str(one) for one in rules}
    create(admin, rule("c"))
    delete(admin, rule("a"))
    ours.stop()

    real.start()
    try:
        admin = AdminClient(settings(real.bootstrap))
        left = {str(rule("b", pattern=ResourcePatternType.PREFIXED)), str(rule("c"))}
        eventually(lambda: held(admin) == left)
        delete(admin, rule("c"))
        eventually(lambda: held(admin) == left - {str(rule("c"))})
    finally:
        real.stop(kill=True)


def rule(name: str, pattern: ResourcePatternType = ResourcePatternType.LITERAL) -> AclBinding:
    """Return a rule about topics of a name, or with a beginning."""
    return AclBinding(
        ResourceType.TOPIC, name, pattern, "User:alice", "*",
        AclOperation.READ, AclPermissionType.ALLOW,
    )  # fmt: skip


def create(admin: AdminClient, *rules: AclBinding) -> None:
    """Create rules."""
    for future in admin.create_acls(list(rules)).values():
        future.result(SECONDS_MAX)


def delete(admin: AdminClient, one: Any) -> None:
    """Delete one rule."""
    wanted = AclBindingFilter(
        one.restype, one.name, one.resource_pattern_type, one.principal, one.host,
        one.operation, one.permission_type,
    )  # fmt: skip
    for future in admin.delete_acls([wanted]).values():
        assert len(future.result(SECONDS_MAX)) == 1


def held(admin: AdminClient) -> set[str]:
    """Return all rules."""
    every = AclBindingFilter(
        ResourceType.ANY, NONE, ResourcePatternType.ANY, NONE, NONE,
        AclOperation.ANY, AclPermissionType.ANY,
    )  # fmt: skip
    return {str(one) for one in admin.describe_acls(every).result(SECONDS_MAX)}


@pytest.mark.parametrize("which", ["real", "ours"])
def test_clients_are_refused(which: str, tmp_path: Path) -> None:
    """Producers and consumers of librdkafka and kafka-python are told, until the rule is gone."""
    everybody = AUTHORIZER | {"allow.everyone.if.no.acl.found": "true", "super.users": "User:admin"}
    broker: KafkaPeer | OurBroker
    if which == "real":
        broker = start_real(tmp_path, settings=everybody)
    else:
        broker = OurBroker(tmp_path, everybody).start()
    try:
        admin = AdminClient(settings(broker.bootstrap))
        new_topic(broker.bootstrap, "t")
        assert produce(broker.bootstrap) is None
        create(admin, TOPIC_RULE)
        eventually(lambda: produce(broker.bootstrap) == KafkaError.TOPIC_AUTHORIZATION_FAILED)
        assert consumed(broker.bootstrap) == KafkaError.TOPIC_AUTHORIZATION_FAILED
        producer = KafkaProducer(bootstrap_servers=broker.bootstrap, retries=0)
        with pytest.raises(TopicAuthorizationFailedError):
            producer.send("t", b"v").get(SECONDS_MAX)
        producer.close()
        delete(admin, TOPIC_RULE)
        eventually(lambda: produce(broker.bootstrap) is None)
    finally:
        broker.stop(kill=True)


def produce(bootstrap: str) -> int | None:
    """Send one record; return the code of the error."""
    found: list[KafkaError | None] = []
    producer = Producer(settings(bootstrap))
    producer.produce("t", b"v", on_delivery=lambda error, _: found.append(error))
    producer.flush(SECONDS_MAX)
    return None if found[0] is None else found[0].code()


def consumed(bootstrap: str) -> int | None:
    """Read a topic; return the code of the error, if the first thing to be told is one."""
    consumer = Consumer({
        **settings(bootstrap), "group.id": "g", "auto.offset.reset": "earliest",
        "allow.auto.create.topics": True,
    })  # fmt: skip
    consumer.subscribe(["t"])
    try:
        message = eventually(lambda: consumer.poll(1))
        assert message is not None
        error = message.error()
        return None if error is None else error.code()
    finally:
        consumer.close()
