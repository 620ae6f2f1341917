"""Settings that a broker does not have: told once, with the name that was meant, and ignored."""

from __future__ import annotations

import warnings

import pytest

from logstore.compat import StrangeSettingWarning, TestBroker
from logstore.compat.strange_settings import strange_settings

KAFKA, ROCKETMQ = ("kafka",), ("rocketmq",)


@pytest.mark.parametrize(
    ("protocols", "name", "told"),
    [
        (KAFKA, "num.partitionz", " in Kafka; ignored; did you mean num.partitions?"),
        (KAFKA, "retention.ms", " in Kafka; ignored; did you mean log.retention.ms?"),
        (KAFKA, "brokerName", " in Kafka; ignored"),
        (ROCKETMQ, "flushDiskTyp", " in RocketMQ; ignored; did you mean flushDiskType?"),
        (ROCKETMQ, "broker.rack", " in RocketMQ; ignored"),
        (KAFKA + ROCKETMQ, "brokerNam", "; ignored; did you mean brokerName?"),
    ],
)
def test_a_strange_name_is_told_with_the_one_that_was_meant(
    protocols: tuple[str, ...], name: str, told: str
) -> None:
    """Where none is near, and where two brokers share the settings, there is less to tell."""
    assert [one.text for one in strange_settings(protocols, {name: "1"})] == [
        f"{name}: no such setting{told}"
    ]


@pytest.mark.parametrize(
    ("protocols", "settings"),
    [
        (KAFKA, {}),
        (KAFKA, {"zookeeper.connect": "z:1", "listener.name.inside.ssl.keystore.type": "PEM"}),
        (ROCKETMQ, {"brokerName": "b", "kvConfigPath": "of the name server"}),
        (KAFKA + ROCKETMQ, {"num.partitions": "2", "brokerName": "b"}),
    ],
)
def test_what_any_of_them_has_is_not_strange(
    protocols: tuple[str, ...], settings: dict[str, str]
) -> None:
    """Nor what Kafka had once, and what it has for each listener."""
    assert strange_settings(protocols, settings) == []


def test_a_broker_for_tests_warns_where_it_is_made() -> None:
    """A warning of its own kind, so that who wants such settings can have them in silence."""
    with pytest.warns(StrangeSettingWarning, match="did you mean log.retention.ms") as caught:
        broker = TestBroker(settings={"log.retention.mss": 5, "num.partitions": 3})
    assert [one.filename for one in caught] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # starting it says nothing more
        with broker:
            assert broker.bootstrap
        TestBroker(protocols=("kafka", "rocketmq"), settings={"brokerName": "b"})
