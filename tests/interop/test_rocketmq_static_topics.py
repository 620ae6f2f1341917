"""Static topics on two real brokers, on two of ours, and on one of each: all answer alike."""

from __future__ import annotations

from pathlib import Path

import pytest

from logstore.tools.dev.rocketmq_peer import CALM, RocketMQPeer
from tests.interop.our_rocketmq import OurRocketMQ
from tests.interop.static_topic_session import Place, StaticTopicSession

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(600)]


def place(name: str, broker: RocketMQPeer | OurRocketMQ) -> Place:
    """Return where a broker is."""
    return Place(name, broker.broker_address, broker.data)


def noted(topic: str, first: Place, second: Place) -> list[str]:
    """Return what two brokers answer."""
    session = StaticTopicSession(topic, first, second)
    try:
        return session.run()
    finally:
        session.close()


def test_static_topics_are_the_same_on_all_brokers(tmp_path: Path) -> None:
    """Every answer is that of two real brokers, whoever of the two is one of ours."""
    with RocketMQPeer("5", tmp_path / "a", {**CALM, "brokerName": "broker-a"}) as a:
        at = a.bootstrap
        with (
            RocketMQPeer(
                "5", tmp_path / "b", {**CALM, "brokerName": "broker-b"}, name_server=at
            ) as b,
            OurRocketMQ(tmp_path / "c", {"brokerName": "broker-c"}, name_server=at) as c,
            OurRocketMQ(tmp_path / "d", {"brokerName": "broker-d"}, name_server=at) as d,
        ):
            real, other = place("broker-a", a), place("broker-b", b)
            ours, our_other = place("broker-c", c), place("broker-d", d)
            wanted = noted("static_tt", real, other)
            for topic, first, second in (
                ("static_oo", ours, our_other),
                ("static_to", real, our_other),
                ("static_ot", ours, other),
            ):
                found = zip(wanted, noted(topic, first, second), strict=True)
                assert not [pair for pair in found if pair[0] != pair[1]], topic
