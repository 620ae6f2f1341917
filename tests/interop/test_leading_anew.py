"""Leader epochs over starts, clean ones and after a kill: the same as a real broker's."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import Producer

from logstore.tools.dev.kafka_peer import KafkaPeer
from tests.interop.clients import settings
from tests.interop.conftest import SETTINGS, new_topic, start_real
from tests.interop.our_broker import OurBroker

pytestmark = pytest.mark.interop

TOPIC = "epochs"


def epochs_of_lives(broker: OurBroker | KafkaPeer) -> list[str]:
    """Append in each of four lives of a started broker; return its epochs after clean ones."""
    new_topic(broker.bootstrap, TOPIC)
    found: list[str] = []
    for kill in (False, True, False, False):
        producer = Producer(settings(broker.bootstrap))
        producer.produce(TOPIC, b"value", partition=0)
        assert producer.flush(60) == 0
        broker.stop(kill=kill)
        if not kill:
            found.append((broker.data / f"{TOPIC}-0/leader-epoch-checkpoint").read_text())
        broker.start()
    broker.stop()
    return found


@pytest.mark.slow
def test_epochs_after_starts_are_those_of_a_real_broker(tmp_path: Path) -> None:
    """Two elections a start, whether the stop before it was clean or not."""
    expected = epochs_of_lives(start_real(tmp_path / "real"))
    found = epochs_of_lives(OurBroker(tmp_path / "ours", SETTINGS).start())
    assert found == expected
    assert found[-1].splitlines()[2:] == ["0 0", "2 1", "4 2", "6 3"]
