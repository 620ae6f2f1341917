"""Foreign client libraries produce and consume."""

from __future__ import annotations

import pytest

from tests.interop.clients import CLIENTS, CODECS, Client, read_all
from tests.interop.conftest import Broker, CreateTopic
from tests.interop.samples import Sample, numbered

pytestmark = [pytest.mark.interop, pytest.mark.either_layout]


@pytest.mark.parametrize("codec", CODECS)
def test_every_client_reads_what_a_client_wrote(
    broker: Broker, client: Client, codec: str, create_topic: CreateTopic
) -> None:
    """Nulls, empties, headers, all bytes and a megabyte come back unchanged, in every codec."""
    topic = create_topic(broker.bootstrap)
    sent = client.samples()
    offsets = client.produce(broker.bootstrap, topic, sent, codec)
    assert offsets == list(range(len(sent)))
    for reader in CLIENTS:
        assert read_all(reader, broker.bootstrap, topic, len(sent)) == sent, reader.name


def test_producers_take_turns(broker: Broker, create_topic: CreateTopic) -> None:
    """Offsets go on where another client's stopped, across codecs and batch sizes."""
    topic = create_topic(broker.bootstrap)
    expected: list[Sample] = []
    for turn, codec in enumerate(CODECS):
        for client in CLIENTS:
            sent = numbered(30, f"{client.name}-{codec}")
            start = len(expected)
            offsets = client.produce(broker.bootstrap, topic, sent, codec)
            assert offsets == list(range(start, start + len(sent))), (turn, client.name)
            expected += sent
    assert read_all(CLIENTS[0], broker.bootstrap, topic, len(expected)) == expected


def test_a_topic_appears_when_somebody_writes(broker: Broker, topic_name: str) -> None:
    """With auto.create.topics.enable a producer needs no admin."""
    sent = numbered(3)
    assert CLIENTS[1].produce(broker.bootstrap, topic_name, sent) == [0, 1, 2]
    assert read_all(CLIENTS[0], broker.bootstrap, topic_name, 3) == sent
