"""Brokers and name servers of both makes find each other: theirs with ours, ours with theirs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from logstore.tools.dev.free_ports import free_port
from logstore.tools.dev.rocketmq_peer import CALM, RocketMQPeer
from tests.interop.eventually import eventually
from tests.interop.rocketmq_programs import Sections, admin_session
from tests.tools.serving import Serving
from tests.tools.test_serve_rocketmq import BOTH_FREE, ask, send

SECONDS_MAX = 60
RELEASES = ("5", pytest.param("4", marks=pytest.mark.slow))

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]


def brokers_at(name_server: str) -> list[str]:
    """Return the names of the brokers that serve the topic for topics to be made."""
    answer = ask(name_server, 105, {"topic": "TBW102"})
    if answer.code:
        return []
    return sorted(broker["brokerName"] for broker in json.loads(answer.body)["brokerDatas"])


def has_route(name_server: str, topic: str) -> bool:
    """Tell whether the name server knows who serves a topic."""
    return bool(ask(name_server, 105, {"topic": topic}).code == 0)


def make_topic(release: str, home: Path, broker: str, *more: Sequence[str]) -> Sections:
    """Have topic "made" made by mqadmin, and what else it is asked for; return what was printed."""
    made = ("updateTopic", "-b", broker, "-t", "made", "-r", "3", "-w", "3")
    return admin_session(release, home, *more, made)


@pytest.mark.parametrize("release", RELEASES)
def test_our_broker_at_a_real_name_server(release: str, tmp_path: Path) -> None:
    """It is listed beside the real one, new topics are routed, and a clean stop takes it away."""
    with RocketMQPeer(release, tmp_path / "theirs", CALM) as theirs:
        arguments = (*BOTH_FREE, "-n", theirs.bootstrap, "--set", "brokerName=ours")
        with Serving(*arguments, port=None) as ours:
            assert brokers_at(theirs.bootstrap) == ["broker-a", "ours"]
            said = make_topic(
                *(release, tmp_path, ours.ready["broker"]), ("clusterList", "-n", theirs.bootstrap)
            )
            assert ours.ready["broker"] in "".join(said["clusterList"])
            eventually(lambda: has_route(theirs.bootstrap, "made"), what="a route")
            route = json.loads(ask(theirs.bootstrap, 105, {"topic": "made"}).body)
            assert [(one["brokerName"], one["readQueueNums"]) for one in route["queueDatas"]] == [
                ("ours", 3)
            ]
            assert ours.stop() == 0
        eventually(lambda: brokers_at(theirs.bootstrap) == ["broker-a"], what="one broker")


@pytest.mark.parametrize("release", RELEASES)
def test_a_real_broker_at_our_name_server(release: str, tmp_path: Path) -> None:
    """It is listed beside ours, the real tool reads our answers, and a stop takes it away."""
    with Serving(*BOTH_FREE, "--set", "brokerName=ours") as ours:
        port = free_port()
        assert port is not None, "no port is free"
        # Its own name server must list it, too: that is how the peer knows that it is up.
        named = {**CALM, "namesrvAddr": f"127.0.0.1:{port};{ours.bootstrap}"}
        theirs = RocketMQPeer(release, tmp_path / "theirs", named)
        theirs.port = port
        with theirs:
            both = ["broker-a", "ours"]
            eventually(lambda: brokers_at(ours.bootstrap) == both, SECONDS_MAX, what="two brokers")
            at_ours = ("-n", ours.bootstrap)
            said = make_topic(
                *(release, tmp_path, theirs.broker_address),
                *(("clusterList", *at_ours), ("topicList", *at_ours)),
            )
            listed = "".join(said["clusterList"])
            assert theirs.broker_address in listed
            assert ours.ready["broker"] in listed
            assert {"TBW102", "SELF_TEST_TOPIC", "ours", "broker-a"} <= set(said["topicList"])
            eventually(lambda: has_route(ours.bootstrap, "made"), what="a route")
            said = admin_session(
                *(release, tmp_path, ("topicRoute", *at_ours, "-t", "made")),
                ("wipeWritePerm", *at_ours, "-b", "broker-a"),
            )
            assert '"brokerName":"broker-a"' in "".join(said["topicRoute"]).replace(" ", "")
            route = json.loads(ask(ours.bootstrap, 105, {"topic": "made"}).body)
            assert [one["perm"] for one in route["queueDatas"]] == [4]
            theirs.stop_broker()
            eventually(lambda: brokers_at(ours.bootstrap) == ["ours"], what="ours alone")
        assert send(ours.bootstrap, b"still served").code == 0
