"""RocketMQ's proxy: what its clients are answered, by ours and by the real one."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import pytest

from logstore.compat import TestBroker
from logstore.tools.dev.rocketmq_peer import CALM, RocketMQPeer
from logstore.tools.dev.rocketmq_proxy_peer import RocketMQProxyPeer
from tests.interop.foreign_packages import go_program, node_modules, python_package
from tests.interop.java_programs import grpc_program
from tests.interop.rocketmq_programs import HERE, Sections, admin_session, run_program
from tests.interop.rocketmq_proxy_session import TOPICS, Session

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]

AnswerT = TypeVar("AnswerT")
PYTHON_CLIENT = "rocketmq-python-client==5.1.2"
NODE_CLIENT = "rocketmq-client-nodejs@1.0.8"
SETTINGS = {
    "brokerName": "broker-a",
    "recallMessageEnable": "true",
    "transactionTimeOut": "1000",
    "transactionCheckInterval": "1000",
    "transactionOpMsgMaxSize": "1",
    "transactionCheckMax": "1000",  # a real proxy says only every 20 s whom the broker may ask
}
#: groups whose members consume in order
IN_ORDER = ("in_order", "go_in_order")
JAVA_SCENARIOS = {"received", "in order", "transactions", "refused"}
SCENARIOS = {"sent", "received", "in order", "later", "transactions", "pushed", "refused"}
NODE_SCENARIOS = SCENARIOS - {"sent"}
GO_SCENARIOS = NODE_SCENARIOS - {"pushed"}


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Return where the real proxy is found; its broker has a topic of each kind."""
    directory = tmp_path_factory.mktemp("real")
    with RocketMQPeer("5", directory / "broker", {**SETTINGS, **CALM}) as broker:
        where = ("-n", broker.bootstrap, "-c", "DefaultCluster")
        words = ("updateTopic", *where, "-r", "4", "-w", "4", "-t")
        topics = [(*words, topic, "-a", f"+message.type={topic.upper()}") for topic in TOPICS]
        in_order = ("updateSubGroup", *where, "-o", "true", "-g")
        groups = [(*in_order, group) for group in IN_ORDER]
        admin_session("5", directory, *topics, *groups)
        with RocketMQProxyPeer(broker.bootstrap, directory / "proxy") as proxy:
            yield proxy.endpoints


@pytest.fixture(scope="module")
def ours() -> Iterator[str]:
    """Return where our proxy is found."""
    with TestBroker(layout="rocketmq", proxy=True, settings=SETTINGS) as broker:
        for topic in TOPICS:
            broker.create_topic(topic, 4, message_type=topic.upper())
        broker.call(lambda: put_groups_in_order(broker))
        yield broker.endpoints


def put_groups_in_order(broker: TestBroker) -> None:
    """Make the groups whose members consume in order."""
    groups = broker.rocketmq.groups
    for group in IN_ORDER:
        groups.put(type(groups.require(group))(group, is_consume_message_orderly=True))


def of_both(session: Callable[[str], AnswerT], real: str, ours: str) -> tuple[AnswerT, AnswerT]:
    """Return what both say, asked at the same time: most of it is waiting."""
    with ThreadPoolExecutor(2) as pool:
        expected, found = pool.map(session, (real, ours))
    return expected, found


def test_every_answer_is_the_same(real: str, ours: str) -> None:
    """Codes, texts and fields, but for ids, times and addresses."""
    expected, found = of_both(lambda endpoints: Session(endpoints).run(), real, ours)
    assert list(found) == list(expected)
    for name, answer in expected.items():
        assert found[name] == answer, name
    assert len(found) > 60


def client_session(endpoints: str) -> Sections:
    """Run the program of the official client."""
    program = str(HERE / "rocketmq_grpc_client.py")
    return run_program(
        [sys.executable, program, endpoints], {"PYTHONPATH": str(python_package(PYTHON_CLIENT))}
    )


def java_session(endpoints: str) -> Sections:
    """Run the program of the official Java client."""
    program = HERE / "rocketmq_java_grpc" / "GrpcScenarios.java"
    return run_program(grpc_program(program, endpoints))


def node_session(endpoints: str) -> Sections:
    """Run the program of the official client for Node."""
    program = str(HERE / "rocketmq_grpc_client.js")
    modules = node_modules(NODE_CLIENT)
    return run_program(["node", program, endpoints], {"NODE_PATH": str(modules)})


@pytest.mark.slow
def test_the_official_java_client(real: str, ours: str) -> None:
    """It prints the same of both, and no failure."""
    expected, found = of_both(java_session, real, ours)
    assert set(expected) == JAVA_SCENARIOS, expected.get("stderr")
    assert [line for lines in expected.values() for line in lines if line.startswith("!!")] == []
    assert found == expected


@pytest.mark.slow
def test_the_official_node_client(real: str, ours: str) -> None:
    """It prints the same of both, what it is asked about a transaction included."""
    expected, found = of_both(node_session, real, ours)
    assert set(expected) == NODE_SCENARIOS, expected.get("stderr")
    assert found == expected


@pytest.mark.slow
def test_the_official_go_client(real: str, ours: str, tmp_path: Path) -> None:
    """It prints the same of both, and no failure. It speaks TLS, and cannot be told not to."""
    program = go_program(HERE / "rocketmq_go_grpc", tmp_path)
    expected, found = of_both(
        lambda endpoints: run_program([str(program), endpoints], {"HOME": str(tmp_path)}),
        real, ours,
    )  # fmt: skip
    assert set(expected) == GO_SCENARIOS, expected.get("stderr")
    assert [line for lines in expected.values() for line in lines if line.startswith("!!")] == []
    assert found == expected


def test_the_official_client(real: str, ours: str) -> None:
    """It prints the same of both, and no failure."""
    expected, found = of_both(client_session, real, ours)
    assert set(expected) == SCENARIOS, expected.get("stderr")
    assert [line for lines in expected.values() for line in lines if line.startswith("!!")] == []
    assert found == expected
