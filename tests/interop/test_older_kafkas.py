"""Directories of older releases: we serve one, and its own broker takes back what we wrote."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from logstore.tools.dev.kafka_peer import KafkaPeer
from logstore.tools.dev.maven import PeerUnavailable
from tests.interop.clients import CLIENTS, read_all, settings
from tests.interop.conftest import SETTINGS, missing, new_topic
from tests.interop.our_broker import OurBroker
from tests.interop.samples import numbered

pytestmark = [pytest.mark.interop, pytest.mark.slow]

GROUP = "readers"
LIBRDKAFKA = CLIENTS[0]


def started(peer: KafkaPeer) -> KafkaPeer:
    """Return an old broker once it answers."""
    try:
        return peer.start()
    except PeerUnavailable as reason:
        missing(str(reason))


def commit(bootstrap: str, offset: int) -> None:
    """Commit an offset of a group without members."""
    consumer = Consumer(settings(bootstrap) | {"group.id": GROUP})
    consumer.commit(offsets=[TopicPartition("t", 0, offset)], asynchronous=False)
    consumer.close()


def committed(bootstrap: str) -> int:
    """Return what the group has committed."""
    consumer = Consumer(settings(bootstrap) | {"group.id": GROUP})
    (found,) = consumer.committed([TopicPartition("t", 0)], 30)
    consumer.close()
    return int(found.offset)


@pytest.mark.parametrize("version", ["3.3.2", "3.7.2"])
def test_it_is_taken_back(version: str, tmp_path: Path) -> None:
    """Each goes on with what the other wrote and committed."""
    real = started(KafkaPeer(version, tmp_path / "real", settings=SETTINGS))
    samples = numbered(20)
    try:
        new_topic(real.bootstrap, "t")
        LIBRDKAFKA.produce(real.bootstrap, "t", samples)
        commit(real.bootstrap, 5)
    finally:
        real.stop()

    with OurBroker(tmp_path / "ours", SETTINGS, real.data) as ours:
        assert committed(ours.bootstrap) == 5
        commit(ours.bootstrap, 15)
        LIBRDKAFKA.produce(ours.bootstrap, "t", samples)

    started(real)
    try:
        assert committed(real.bootstrap) == 15
        assert len(read_all(LIBRDKAFKA, real.bootstrap, "t", 40)) == 40
        assert "Error loading offsets" not in real.log.read_text()
    finally:
        real.stop()
