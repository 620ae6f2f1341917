"""What a broker stores by itself, some time after it was asked: byte by byte that of a real one."""

from __future__ import annotations

import json
import struct
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from logstore.compat.rocketmq.wire.codes import RequestCode
from logstore.tools.dev.rocketmq_peer import CALM, RocketMQPeer
from tests.interop.our_rocketmq import OurRocketMQ
from tests.interop.rocketmq_sessions import start_real
from tests.interop.rocketmq_wire import (
    PULL_MESSAGE,
    SEND_MESSAGE_V2,
    SUCCESS,
    Answer,
    Wire,
    pull_fields,
    send_fields,
)
from tests.interop.stored_messages import differences

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(300)]

TOPIC, GROUP = "own", "g"
SETTINGS: dict[str, object] = {
    **CALM,
    "timerWheelEnable": "true",
    "recallMessageEnable": "true",
    "transactionCheckInterval": 2000,
    "transactionTimeOut": 1000,
    "transactionCheckMax": 2,
}
#: after so long all that was sent has had its consequences, give or take
FOLLOWS_SECONDS, LATE_SECONDS_MAX = 20, 30

Broker = OurRocketMQ | RocketMQPeer


class Asking:
    """A client of one broker."""

    def __init__(self, broker: Broker) -> None:
        self.wire = Wire(broker.broker_address)

    def send(self, body: bytes, properties: str = "", queue_id: int = 0, **more: object) -> Answer:
        """Send a message that is born now."""
        fields = send_fields(TOPIC, queue_id, properties) | {"g": now_ms(), **more}
        answer = self.wire.ask(SEND_MESSAGE_V2, fields, body)
        assert answer.code == SUCCESS, answer
        return answer

    def pop(self, queue_id: int, invisible_ms: int) -> None:
        """Pop all that there is, and acknowledge nothing."""
        fields = {
            "consumerGroup": GROUP, "topic": TOPIC, "queueId": queue_id, "maxMsgNums": 32,
            "invisibleTime": invisible_ms, "pollTime": 0, "bornTime": now_ms(), "initMode": 0,
            "expType": "TAG", "exp": "*",
        }  # fmt: skip
        answer = self.wire.ask(RequestCode.POP_MESSAGE, fields, b"")
        assert answer.code == SUCCESS, answer


def now_ms() -> int:
    """Return the time."""
    return int(time.time() * 1000)


def ask(broker: Broker) -> None:
    """Send all kinds of messages that a broker puts again by itself."""
    client = Asking(broker)
    group = {"groupName": GROUP, "consumeEnable": True, "retryMaxTimes": 16, "retryQueueNums": 1}
    client.wire.ask(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, {}, json.dumps(group).encode())
    client.send(b"plain", "UNIQ_KEY\x01K1\x02TAGS\x01A\x02KEYS\x01k1 k2\x02")
    client.send(b"few", "UNIQ_KEY\x01K2\x02")
    client.send(b"some", "UNIQ_KEY\x01K3\x02a\x01b\x02WAIT\x01true\x02")
    client.send(b"level", "UNIQ_KEY\x01K4\x02DELAY\x011\x02TAGS\x01B\x02")
    client.send(b"seconds", "UNIQ_KEY\x01K5\x02TIMER_DELAY_SEC\x012\x02")
    client.send(b"time", f"UNIQ_KEY\x01K6\x02TIMER_DELIVER_MS\x01{now_ms() + 2500}\x02")
    late = client.send(b"recalled", "UNIQ_KEY\x01K7\x02TIMER_DELAY_MS\x015000\x02")
    handle = {"producerGroup": "p", "topic": TOPIC, "recallHandle": late.fields["recallHandle"]}
    assert client.wire.ask(RequestCode.RECALL_MESSAGE, handle, b"").code == SUCCESS
    for number, more in enumerate(
        ("", "TAGS\x01x\x02KEYS\x01k\x02", "CHECK_IMMUNITY_TIME_IN_SECONDS\x013\x02")
    ):
        half = f"TRAN_MSG\x01true\x02PGROUP\x01p\x02UNIQ_KEY\x01H{number}\x02{more}"
        client.send(b"half", half, 1, f=4)
    client.send(b"old", "TRAN_MSG\x01true\x02PGROUP\x01p\x02UNIQ_KEY\x01H9\x02", 1, f=4, g=1)
    send_back(client)
    time.sleep(6)  # what has a delay is there now
    client.pop(0, 1500)
    client.wire.close()


def send_back(client: Asking) -> None:
    """Send the first message back, to be consumed again later, and to be given up."""
    first = client.wire.ask(PULL_MESSAGE, pull_fields(TOPIC, 0, 0)).body
    (physical_offset,) = struct.unpack_from(">q", first, 28)
    for level, attempts in ((1, 16), (0, 16), (-1, 16), (2, 0)):
        fields = {
            "offset": physical_offset, "group": GROUP, "delayLevel": level, "originMsgId": "X",
            "originTopic": TOPIC, "unitMode": "false", "maxReconsumeTimes": attempts,
        }  # fmt: skip
        answer = client.wire.ask(RequestCode.CONSUMER_SEND_MSG_BACK, fields, b"")
        assert answer.code == SUCCESS, answer


def test_what_follows_is_stored_alike(tmp_path: Path) -> None:
    """Delayed, timed, recalled, popped and never acknowledged, sent back, never decided."""
    real = start_real("5", tmp_path / "real", SETTINGS)
    try:
        with OurRocketMQ(tmp_path / "ours", SETTINGS) as ours, ThreadPoolExecutor(2) as pool:
            list(pool.map(ask, (ours, real)))
            time.sleep(FOLLOWS_SECONDS)
            deadline = time.monotonic() + LATE_SECONDS_MAX
            while (found := differences(ours.data, real.data)) and time.monotonic() < deadline:
                time.sleep(1)
    finally:
        real.stop(kill=True)
    assert "\n".join(found) == ""
