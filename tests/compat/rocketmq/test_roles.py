"""What the role of a broker means to clients."""

from __future__ import annotations

import pytest

from logstore.compat.rocketmq.broker import Broker
from logstore.compat.rocketmq.wire.codes import RequestCode, ResponseCode
from logstore.segments.rocketmq.settings.java_config import ConfigError
from logstore.testing.manual_clock import ManualClock
from logstore.testing.simulated_host import SimulatedHost
from tests.compat.rocketmq.broker_peer import DIRECTORY, SMALL, TOPIC, Peer, a_broker, sent_fields

SLAVE = {"brokerRole": "SLAVE", "brokerId": "1"}
REMARK = "[REJECTREQUEST]system busy, start flow control for a while"


@pytest.mark.parametrize(
    "code",
    [
        RequestCode.SEND_MESSAGE,
        RequestCode.SEND_MESSAGE_V2,
        RequestCode.SEND_BATCH_MESSAGE,
        RequestCode.CONSUMER_SEND_MSG_BACK,
    ],
)
def test_a_slave_takes_no_messages(code: RequestCode) -> None:
    """As 5.5.0's slave it says that it is busy, and makes no topic."""
    broker = a_broker(settings=SLAVE)
    answer = Peer(broker).ask(code, sent_fields(TOPIC, 0), b"x")
    assert (answer.code, answer.remark, answer.fields) == (ResponseCode.SYSTEM_BUSY, REMARK, None)
    assert broker.store.commit_log.max_physical_offset == 0
    assert broker.topics.get(TOPIC) is None


@pytest.mark.parametrize("code", [RequestCode.PULL_MESSAGE, RequestCode.LITE_PULL_MESSAGE])
def test_consumers_read_from_a_slave(code: RequestCode) -> None:
    """They may where ``slaveReadEnable`` is set, from the moment on that it is."""
    broker = a_broker(settings=SLAVE)
    broker.topics.ensure(TOPIC, 1)
    peer = Peer(broker)
    fields = peer.pull_fields(TOPIC, 0, 0, "g", sysFlag=4)
    answer = peer.ask(code, fields)
    assert (answer.code, answer.remark) == (ResponseCode.SYSTEM_BUSY, REMARK)
    broker.update_settings({"slaveReadEnable": "true"})
    assert peer.ask(code, fields).code == ResponseCode.PULL_NOT_FOUND


def test_a_slave_is_not_active() -> None:
    """It delivers nothing by itself, and says so (``brokerActive``), as a real one does."""
    for settings, is_active in ((SLAVE, "false"), ({}, "true")):
        answer = Peer(a_broker(settings=settings)).ask(RequestCode.GET_BROKER_RUNTIME_INFO)
        assert answer.content["table"]["brokerActive"] == is_active


def test_a_slave_ends_no_transactions() -> None:
    """Nor does it decide about them."""
    answer = Peer(a_broker(settings=SLAVE)).ask(RequestCode.END_TRANSACTION, {})
    assert answer.code == ResponseCode.SLAVE_NOT_AVAILABLE


@pytest.mark.parametrize("broker_id", ["0", "-1"])
def test_a_slave_needs_an_id(broker_id: str) -> None:
    """A slave without an id of its own is not started, and its store not touched."""
    host = SimulatedHost(clock=ManualClock())
    settings = {**SMALL, "brokerRole": "SLAVE", "brokerId": broker_id}
    with pytest.raises(ConfigError, match=r"brokerId=.*above 0"):
        Broker.open(host, DIRECTORY, settings)
    assert not host.fs.exists(DIRECTORY)


def test_a_master_is_number_0() -> None:
    """Whatever id the settings name."""
    assert a_broker(settings={"brokerId": "7"}).settings.broker_id == 0
