"""A topic that was deleted and made anew, and lost its queues: what 5.5.0 and ours serve of it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from logstore.tools.dev.maven import PeerUnavailable
from logstore.tools.dev.rocketmq_peer import CALM, RocketMQPeer
from tests.interop.conftest import missing
from tests.interop.eventually import eventually
from tests.interop.our_rocketmq import OurRocketMQ
from tests.interop.rocketmq_programs import create_topic
from tests.interop.rocketmq_wire import (
    GET_MAX_OFFSET,
    PULL_MESSAGE,
    SEND_MESSAGE_V2,
    SUCCESS,
    Wire,
    pull_fields,
    pulled,
    send_fields,
)

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(300)]

TOPIC = "remade"
SETTINGS: dict[str, object] = {**CALM, "mappedFileSizeCommitLog": 100_000}
DELETE_TOPIC = 215
SECONDS_MAX = 30

Broker = OurRocketMQ | RocketMQPeer


def send(broker: Broker, *bodies: bytes) -> None:
    """Send to queue 0, and wait until all of it can be read."""
    wire = Wire(broker.broker_address)
    for number, body in enumerate(bodies):
        fields = send_fields(TOPIC, 0, f"UNIQ_KEY\x01{body.decode()}\x02")
        answer = wire.ask(SEND_MESSAGE_V2, fields, body)
        assert (answer.code, answer.fields["queueOffset"]) == (SUCCESS, str(number))
    wire.close()
    eventually(lambda: max_offset(broker) == len(bodies), SECONDS_MAX, what="all can be read")


def max_offset(broker: Broker) -> int:
    """Return the queue offset behind the last message."""
    wire = Wire(broker.broker_address)
    answer = wire.ask(GET_MAX_OFFSET, {"topic": TOPIC, "queueId": 0})
    wire.close()
    return int(answer.fields["offset"])


def read(broker: Broker) -> list[bytes]:
    """Return the bodies of queue 0, in order."""
    wire = Wire(broker.broker_address)
    found: list[bytes] = []
    while (answer := wire.ask(PULL_MESSAGE, pull_fields(TOPIC, 0, len(found)))).code == SUCCESS:
        found += [body for _, body in pulled(answer.body)]
    wire.close()
    return found


def test_queues_are_built_from_a_log_that_has_both_topics(tmp_path: Path) -> None:
    """5.5.0 serves the deleted messages, and of the new ones the first; we serve the new ones."""
    real = RocketMQPeer("5", tmp_path / "real", SETTINGS)
    try:
        real.start()
    except PeerUnavailable as error:
        missing(str(error))
    try:
        create_topic(real, TOPIC, 1)
        send(real, b"old0", b"old1", b"old2")
        wire = Wire(real.broker_address)
        assert wire.ask(DELETE_TOPIC, {"topic": TOPIC}).code == SUCCESS
        wire.close()
        create_topic(real, TOPIC, 1)
        send(real, b"new0", b"new1")
        assert read(real) == [b"new0", b"new1"]
        real.stop_broker(kill=True)
        shutil.rmtree(real.data / "consumequeue")
        (real.data / "checkpoint").unlink()
        shutil.copytree(real.data, tmp_path / "ours")
        real.start()
        assert read(real) == [b"old0", b"old1", b"old2", b"new0"]
    finally:
        real.stop(kill=True)
    with OurRocketMQ(tmp_path, SETTINGS, tmp_path / "ours") as ours:
        assert read(ours) == [b"new0", b"new1"]
        assert max_offset(ours) == 2
