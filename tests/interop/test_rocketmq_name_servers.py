"""Brokers and name servers of both makes find each other: theirs with ours, ours with theirs."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from logstore.tools.dev.free_ports import free_port
from logstore.tools.dev.rocketmq_peer import RocketMQPeer
from tests.tools.serving import Serving
from tests.tools.test_serve_rocketmq import BOTH_FREE, ask, send

SECONDS_MAX = 60
RELEASES = ("5", "4")

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]


def brokers_at(name_server: str) -> list[str]:
    """Return the names of the brokers that serve the topic for topics to be made."""
    answer = ask(name_server, 105, {"topic": "TBW102"})
    if answer.code:
        return []
    return sorted(broker["brokerName"] for broker in json.loads(answer.body)["brokerDatas"])


def wait_for(question: Callable[[], bool]) -> None:
    """Return once it holds: real brokers register when they like."""
    deadline = time.monotonic() + SECONDS_MAX
    while not question():
        assert time.monotonic() < deadline, "it did not come true"
        time.sleep(0.1)


@pytest.mark.parametrize("release", RELEASES)
def test_our_broker_at_a_real_name_server(release: str, tmp_path: Path) -> None:
    """It is listed beside the real one, new topics are routed, and a clean stop takes it away."""
    with RocketMQPeer(release, tmp_path / "theirs") as theirs:
        arguments = (*BOTH_FREE, "-n", theirs.bootstrap, "--set", "brokerName=ours")
        with Serving(*arguments, port=None) as ours:
            assert brokers_at(theirs.bootstrap) == ["broker-a", "ours"]
            listed = theirs.mqadmin("clusterList", "-n", theirs.bootstrap)
            assert ours.ready["broker"] in listed
            theirs.mqadmin("updateTopic", "-b", ours.ready["broker"], "-t", "made", "-r", "3",
                           "-w", "3")  # fmt: skip
            wait_for(lambda: ask(theirs.bootstrap, 105, {"topic": "made"}).code == 0)
            route = json.loads(ask(theirs.bootstrap, 105, {"topic": "made"}).body)
            assert [(one["brokerName"], one["readQueueNums"]) for one in route["queueDatas"]] == [
                ("ours", 3)
            ]
            assert ours.stop() == 0
        wait_for(lambda: brokers_at(theirs.bootstrap) == ["broker-a"])


@pytest.mark.parametrize("release", RELEASES)
def test_a_real_broker_at_our_name_server(release: str, tmp_path: Path) -> None:
    """It is listed beside ours, the real tool reads our answers, and a stop takes it away."""
    with Serving(*BOTH_FREE, "--set", "brokerName=ours") as ours:
        port = free_port()
        assert port is not None, "no port is free"
        # Its own name server must list it, too: that is how the peer knows that it is up.
        named = {"namesrvAddr": f"127.0.0.1:{port};{ours.bootstrap}"}
        theirs = RocketMQPeer(release, tmp_path / "theirs", named)
        theirs.port = port
        with theirs:
            wait_for(lambda: brokers_at(ours.bootstrap) == ["broker-a", "ours"])
            listed = theirs.mqadmin("clusterList", "-n", ours.bootstrap)
            assert theirs.broker_address in listed
            assert ours.ready["broker"] in listed
            topics = theirs.mqadmin("topicList", "-n", ours.bootstrap).split()
            assert {"TBW102", "SELF_TEST_TOPIC", "ours", "broker-a"} <= set(topics)
            theirs.mqadmin("updateTopic", "-b", theirs.broker_address, "-t", "made", "-r", "3",
                           "-w", "3")  # fmt: skip
            wait_for(lambda: ask(ours.bootstrap, 105, {"topic": "made"}).code == 0)
            shown = theirs.mqadmin("topicRoute", "-n", ours.bootstrap, "-t", "made")
            assert '"brokerName":"broker-a"' in shown.replace(" ", "")
            theirs.mqadmin("wipeWritePerm", "-n", ours.bootstrap, "-b", "broker-a")
            route = json.loads(ask(ours.bootstrap, 105, {"topic": "made"}).body)
            assert [one["perm"] for one in route["queueDatas"]] == [4]
            theirs.stop_broker()
            wait_for(lambda: brokers_at(ours.bootstrap) == ["ours"])
        assert send(ours.bootstrap, b"still served").code == 0
