"""kafkajs, a client that knows only the old versions of the protocol."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.interop.conftest import Broker
from tests.interop.foreign_packages import node_modules

pytestmark = [pytest.mark.interop, pytest.mark.either_layout]

KAFKAJS = "kafkajs@2.2.4"
SCRIPT = Path(__file__).with_name("kafkajs_round_trip.js")


@pytest.fixture(scope="session")
def node_path() -> Path:
    """A node_modules directory with kafkajs in it, installed once per user."""
    return node_modules(KAFKAJS)


def test_kafkajs(broker: Broker, topic_name: str, node_path: Path) -> None:
    """Create, produce plain and idempotent and compressed, consume in a group, describe, delete."""
    done = subprocess.run(
        ["node", str(SCRIPT), broker.bootstrap, topic_name],
        env={**os.environ, "NODE_PATH": str(node_path), "KAFKAJS_NO_PARTITIONER_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    expected: list[list[object]] = []
    for partition in (0, 1):
        for offset in range(10):
            number = offset % 5 * 2 + partition
            key = None if number % 3 == 0 else f"k{number}"
            value = None if number == 7 else f"v{number}"
            expected.append([partition, offset, key, value, str(number), ["a", "b"]])
    assert found["records"] == expected
    assert found["created"] is True
    assert found["ends"] == found["committed"] == [[0, 10], [1, 10]]
    assert found["state"] == "Empty"
    assert found["brokers"] == 1
