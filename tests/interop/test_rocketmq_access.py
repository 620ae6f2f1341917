"""RocketMQ with users and TLS: ours answers everybody as the real broker and proxy do."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from logstore.compat import TestBroker
from logstore.tools.dev.rocketmq_peer import BROKER_JVM, CALM, RocketMQPeer
from logstore.tools.dev.rocketmq_proxy_peer import RocketMQProxyPeer
from tests.interop.our_rocketmq import OurRocketMQ
from tests.interop.rocketmq_access_session import ACCESS, AccessSession, whole_session
from tests.interop.rocketmq_grpc_access_session import grpc_session
from tests.interop.rocketmq_programs import Broker, Sections
from tests.interop.rocketmq_secured_programs import (
    first_bytes,
    java_client,
    make_users,
    use_mqadmin_as,
)

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]

SETTINGS = {**CALM, **ACCESS}
#: with TLS, unlike most tests' real brokers
_JVM = BROKER_JVM.replace("-Dtls.server.mode=disabled", "")
_PROXY = "org.apache.rocketmq.proxy.auth"
#: the real proxy has settings of its own, and asks its broker about users
PROXY_SETTINGS: dict[str, object] = {
    "enableAclRpcHookForClusterMode": True,
    "authenticationEnabled": True,
    "authenticationMetadataProvider": f"{_PROXY}.ProxyAuthenticationMetadataProvider",
    "authorizationEnabled": True,
    "authorizationMetadataProvider": f"{_PROXY}.ProxyAuthorizationMetadataProvider",
    "innerClientAuthenticationCredentials": ACCESS["innerClientAuthenticationCredentials"],
}


@contextmanager
def started(which: str, directory: Path) -> Generator[RocketMQPeer | OurRocketMQ]:
    """Start one of both; it is killed at the end."""
    directory.mkdir()
    broker: RocketMQPeer | OurRocketMQ
    if which == "real":
        broker = RocketMQPeer("5", directory, SETTINGS, jvm=_JVM)
    else:
        broker = OurRocketMQ(directory, SETTINGS)
    broker.start()
    try:
        yield broker
    finally:
        broker.stop(kill=True)


def seen(broker: Broker, home: Path) -> Sections:
    """Return what all of them see: raw requests last, they take users away."""
    found: Sections = {"name server": first_bytes(broker.bootstrap)}
    found["broker"] = first_bytes(broker.broker_address)
    found |= make_users(broker, home)
    for user in (("writer", "pw"), ("admin", "admin-pw"), ("admin", "wrong")):
        said = use_mqadmin_as(user, broker, home)
        found |= {f"{name} by {user}": lines for name, lines in said.items()}
    found |= java_client(broker, home)
    found["requests"] = whole_session(broker.broker_address)
    return found


@pytest.mark.slow
def test_everybody_is_answered_the_same(tmp_path: Path) -> None:
    """Raw requests, mqadmin and the Java client, with good and bad signatures, plain and by TLS."""
    with started("real", tmp_path / "real") as real:
        expected = seen(real, tmp_path / "java-real")
    with started("ours", tmp_path / "ours") as ours:
        found = seen(ours, tmp_path / "java-ours")
    assert "stderr" not in expected, expected["stderr"]
    assert list(found) == list(expected)
    for name, lines in expected.items():
        assert found[name] == lines, name
    assert expected["received"] == ["good", "good by TLS"]
    assert len(expected["requests"]) > 300


def make_proxy_users(address: str) -> None:
    """Make topic and users of a proxy's clients, by raw requests."""
    session = AccessSession(address)
    session.proxy_users()
    assert [line for line in session.lines if ": 0 " not in line] == []


@pytest.mark.slow
def test_clients_of_the_proxy_are_answered_the_same(tmp_path: Path) -> None:
    """Headers that sign, badly or well, and requests for what the rules allow or not."""
    with started("real", tmp_path / "real") as real:
        make_proxy_users(real.broker_address)
        with RocketMQProxyPeer(real.bootstrap, tmp_path / "proxy", PROXY_SETTINGS) as proxy:
            expected = grpc_session(proxy.endpoints)
    settings = {name: str(value) for name, value in SETTINGS.items()}
    with TestBroker(layout="rocketmq", proxy=True, settings=settings) as broker:
        make_proxy_users(f"127.0.0.1:{broker.rocketmq.advertised_port}")
        found = grpc_session(broker.endpoints)
    assert found == expected
    assert len(found) > 50
