"""Kafka Connect: a worker of a distributed cluster, whose source writes exactly once."""

from __future__ import annotations

from pathlib import Path

import pytest

from logstore.tools.dev.maven import PeerUnavailable
from tests.interop.clients import CLIENTS, read_all
from tests.interop.conftest import Broker, CreateTopic, missing
from tests.interop.connect_worker import ConnectWorker
from tests.interop.eventually import eventually

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.either_layout]

LIBRDKAFKA = CLIENTS[0]


def lines(first: int, count: int) -> list[str]:
    """Return lines that say their numbers."""
    return [f"line {number}" for number in range(first, first + count)]


def append(file: Path, added: list[str]) -> None:
    """Write these behind what is in the file."""
    with file.open("a") as opened:
        opened.writelines(f"{line}\n" for line in added)


def test_a_killed_worker_copies_on_exactly_once(
    broker: Broker, create_topic: CreateTopic, tmp_path: Path
) -> None:
    """
    A file becomes a topic in transactions, and the topic a file again.

    The worker that comes after a killed one finds configs and offsets in the topics of Connect, and
    fences the tasks of the other: every line is there once, in order. Offsets that are deleted by
    way of the worker have the file read again.
    """
    topic, source, sink = create_topic(broker.bootstrap), tmp_path / "in.txt", tmp_path / "out.txt"

    def stored(count: int) -> list[str]:
        found = read_all(LIBRDKAFKA, broker.bootstrap, topic, count)
        return [(sample.value or b"").decode() for sample in found]

    def is_copied(wanted: list[str]) -> bool:
        return sink.exists() and set(wanted) <= set(sink.read_text().splitlines())

    append(source, lines(0, 1000))
    worker = ConnectWorker(broker.bootstrap, f"{topic}-connect", tmp_path)
    try:
        worker.start()
        worker.told("PUT", "/connectors/source/config", source_config(source, topic))
        worker.told("PUT", "/connectors/sink/config", sink_config(sink, topic))
        eventually(lambda: is_copied(lines(0, 1000)), what="a copy of the first lines")
        worker.kill()
        append(source, lines(1000, 500))
        worker.start()
        eventually(lambda: is_copied(lines(0, 1500)), what="a copy of all lines")
        assert stored(1500) == lines(0, 1500)

        worker.told("PUT", "/connectors/source/stop")
        worker.await_state("source", "STOPPED", tasks=0)
        worker.told("DELETE", "/connectors/source/offsets")
        assert worker.told("GET", "/connectors/source/offsets") == {"offsets": []}
        worker.told("PUT", "/connectors/source/resume")
        assert stored(3000) == lines(0, 1500) * 2
        worker.told("DELETE", "/connectors/sink")
        worker.told("DELETE", "/connectors/source")
    except PeerUnavailable as reason:
        missing(str(reason))
    finally:
        worker.kill()


def source_config(file: Path, topic: str) -> dict[str, str]:
    """Return the settings of a connector that writes the lines of a file in transactions."""
    return {
        "connector.class": "org.apache.kafka.connect.file.FileStreamSourceConnector",
        "tasks.max": "1",
        "file": str(file),
        "topic": topic,
        "exactly.once.support": "required",
        "transaction.boundary": "interval",
        "transaction.boundary.interval.ms": "100",
    }


def sink_config(file: Path, topic: str) -> dict[str, str]:
    """Return the settings of a connector that writes committed records to a file."""
    return {
        "connector.class": "org.apache.kafka.connect.file.FileStreamSinkConnector",
        "tasks.max": "1",
        "file": str(file),
        "topics": topic,
        "consumer.override.isolation.level": "read_committed",
        "consumer.override.session.timeout.ms": "1000",
        "consumer.override.heartbeat.interval.ms": "100",
    }
