"""Lite topics of RocketMQ 5.5: ours answers every question as the real broker does."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import pytest

from logstore.compat import TestBroker
from logstore.tools.dev.rocketmq_peer import CALM, RocketMQPeer
from logstore.tools.dev.rocketmq_proxy_peer import RocketMQProxyPeer
from tests.interop.java_programs import grpc_program
from tests.interop.rocketmq_lite_proxy_session import LiteSession
from tests.interop.rocketmq_lite_session import (
    SYSTEM_ERROR,
    UPDATE_GROUP,
    UPDATE_TOPIC,
    Session,
)
from tests.interop.rocketmq_programs import HERE, Sections, run_program
from tests.interop.rocketmq_sessions import started
from tests.interop.rocketmq_wire import Wire

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]

AnswerT = TypeVar("AnswerT")
SETTINGS: dict[str, object] = {"enableLmq": "true", "enableMultiDispatch": "true"}
PROXY_SETTINGS = {"brokerName": "broker-a", "enableLmq": "true", "enableMultiDispatch": "true"}
TYPES = {"parent": "LITE", "normal": "NORMAL"}
BOUND = {"lite.bind.topic": "parent"}
GROUPS: dict[str, dict[str, str]] = {
    "lite_readers": BOUND,
    "few": {**BOUND, "lite.sub.client.quota": "1"},
    "alone": {**BOUND, "lite.sub.model": "Exclusive"},
    "others": {},
}


def asked(which: str, directory: Path) -> dict[str, Any]:
    """Return what one broker answers."""
    directory.mkdir()
    broker = started(which, directory, SETTINGS)
    try:
        return Session(broker.broker_address).run()
    finally:
        broker.stop(kill=True)


def test_every_answer_is_the_same(tmp_path: Path) -> None:
    """Sending, subscribing, popping, acknowledging, what is told of it all, and every refusal."""
    with ThreadPoolExecutor(2) as pool:  # most of it is waiting
        real, ours = pool.map(lambda which: asked(which, tmp_path / which), ("real", "ours"))
    assert list(ours) == list(real)
    for name, answer in real.items():
        code, remark, *_ = answer
        if (code, remark) == (SYSTEM_ERROR, None):  # Java stumbled, and says over what
            assert (name, ours[name][0]) == (name, SYSTEM_ERROR)
        else:
            assert (name, ours[name]) == (name, answer)
    assert len(real) > 200


def prepare(address: str) -> None:
    """Make topics and groups."""
    wire = Wire(address)
    for topic, kind in TYPES.items():
        fields = {
            "topic": topic, "defaultTopic": "TBW102", "readQueueNums": 4, "writeQueueNums": 4,
            "perm": 6, "topicFilterType": "SINGLE_TAG", "topicSysFlag": 0, "order": "false",
            "attributes": f"+message.type={kind}",
        }  # fmt: skip
        assert wire.ask(UPDATE_TOPIC, fields).code == 0
    for group, attributes in GROUPS.items():
        signed = {f"+{name}": value for name, value in attributes.items()}
        body = json.dumps({"groupName": group, "attributes": signed}).encode()
        assert wire.ask(UPDATE_GROUP, {}, body).code == 0
    wire.close()


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Return where the real proxy is found."""
    directory = tmp_path_factory.mktemp("real")
    with RocketMQPeer("5", directory / "broker", {**PROXY_SETTINGS, **CALM}) as broker:
        prepare(broker.broker_address)
        with RocketMQProxyPeer(broker.bootstrap, directory / "proxy") as proxy:
            yield proxy.endpoints


@pytest.fixture(scope="module")
def ours() -> Iterator[str]:
    """Return where our proxy is found."""
    with TestBroker(layout="rocketmq", proxy=True, settings=PROXY_SETTINGS) as broker:
        prepare(f"127.0.0.1:{broker.rocketmq.advertised_port}")
        yield broker.endpoints


def of_both(session: Callable[[str], AnswerT], real: str, ours: str) -> tuple[AnswerT, AnswerT]:
    """Return what both say, asked at the same time: most of it is waiting."""
    with ThreadPoolExecutor(2) as pool:
        expected, found = pool.map(session, (real, ours))
    return expected, found


@pytest.mark.slow
def test_the_proxy_answers_the_same(real: str, ours: str) -> None:
    """Of producers, of consumers that say what they read, and of those who are put out."""
    expected, found = of_both(lambda endpoints: LiteSession(endpoints).run(), real, ours)
    assert list(found) == list(expected)
    for name, answer in expected.items():
        assert (name, found[name]) == (name, answer)
    assert len(found) > 50


def java_session(endpoints: str) -> Sections:
    """Run the program of the official Java client."""
    program = HERE / "rocketmq_java_grpc" / "LiteScenarios.java"
    return run_program(grpc_program(program, endpoints))


@pytest.mark.slow
def test_the_official_java_client(real: str, ours: str) -> None:
    """It prints the same of both, and no failure."""
    expected, found = of_both(java_session, real, ours)
    assert set(expected) == {"pushed", "from there", "alone", "refused"}, expected.get("stderr")
    assert [line for lines in expected.values() for line in lines if line.startswith("!!")] == []
    assert found == expected
