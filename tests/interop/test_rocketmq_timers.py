"""Messages with a time of their own change brokers while they wait in the time wheel."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from logstore.tools.dev.rocketmq_peer import RocketMQPeer
from tests.interop.eventually import eventually
from tests.interop.our_rocketmq import OurRocketMQ
from tests.interop.rocketmq_sessions import start_real
from tests.interop.rocketmq_wire import (
    PULL_MESSAGE,
    SEND_MESSAGE_V2,
    SUCCESS,
    Wire,
    pull_fields,
    pulled,
    send_fields,
)

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(400)]

TOPIC = "timed"
SETTINGS: dict[str, object] = {
    "mappedFileSizeCommitLog": 300_000,
    "mappedFileSizeConsumeQueue": 6000,
    "maxHashSlotNum": 100,
    "maxIndexNum": 400,
    "timerWheelEnable": "true",
    "mappedFileSizeTimerLog": 5200,
}

Broker = OurRocketMQ | RocketMQPeer


def send_timed(broker: Broker, delays_ms: dict[bytes, int]) -> None:
    """Send messages that are to come after a time."""
    wire = Wire(broker.broker_address)
    for body, delay_ms in delays_ms.items():
        properties = f"TIMER_DELAY_MS\x01{delay_ms}\x02UNIQ_KEY\x01{body.decode()}\x02"
        answer = wire.ask(SEND_MESSAGE_V2, send_fields(TOPIC, 0, properties), body)
        assert answer.code == SUCCESS, answer
    wire.close()


def delivered(broker: Broker) -> list[bytes]:
    """Return the bodies in the queue."""
    wire = Wire(broker.broker_address)
    found: list[bytes] = []
    while True:
        answer = wire.ask(PULL_MESSAGE, pull_fields(TOPIC, 0, len(found)))
        if answer.code != SUCCESS:
            wire.close()
            return found
        found += [body for _, body in pulled(answer.body)]


def wait_for(broker: Broker, bodies: set[bytes], seconds: float) -> list[bytes]:
    """Return what has come as soon as all of these have."""
    found: list[bytes] = []

    def have_come() -> bool:
        found[:] = delivered(broker)
        return bodies <= set(found)

    eventually(have_come, seconds, what=f"{len(bodies)} messages")
    return found


def test_timers_change_brokers(tmp_path: Path) -> None:
    """What waits in our wheel the real broker delivers, and the other way round, each once."""
    data = tmp_path / "store"
    ours = OurRocketMQ(tmp_path / "ours", SETTINGS, data).start()
    send_timed(ours, {b"start": 2000, **{b"ours-%d" % one: 45_000 + one for one in range(30)}})
    assert wait_for(ours, {b"start"}, 30) == [b"start"]
    ours.stop()
    real = start_real("5", tmp_path / "real", SETTINGS, data, ours.broker_port)
    try:
        send_timed(real, {b"theirs-%d" % one: 60_000 + one for one in range(30)})
        expected = {b"start", *(b"ours-%d" % one for one in range(30))}
        wait_for(real, expected, 90)
    finally:
        real.stop()
    with OurRocketMQ(tmp_path / "again", SETTINGS, data, ours.broker_port) as again:
        expected |= {b"theirs-%d" % one for one in range(30)}
        counts = Counter(wait_for(again, expected, 90))
    assert set(counts) == expected
    assert set(counts.values()) == {1}
