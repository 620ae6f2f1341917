"""Kafka's own LocalTieredStorage: from its test jar, run inside of a real broker."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path

from logstore.tools.dev.kafka_peer import VERSION_4
from tests.interop.conftest import missing

CLASS = "org.apache.kafka.server.log.remote.storage.LocalTieredStorage"


@cache
def jar() -> Path:
    """Return the jar that has the class; Maven fetches it once."""
    name = f"kafka-storage-{VERSION_4}-test.jar"
    home = Path.home() / ".m2/repository/org/apache/kafka/kafka-storage" / VERSION_4
    if not (home / name).exists():
        artifact = f"org.apache.kafka:kafka-storage:{VERSION_4}:jar:test"
        command = [
            "mvn",
            "-q",
            "-B",
            "dependency:get",
            f"-Dartifact={artifact}",
            "-Dtransitive=false",
        ]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        except FileNotFoundError:
            missing("no `mvn` on the PATH; install Apache Maven")
        if done.returncode or not (home / name).exists():
            missing(f"{artifact} cannot be fetched: {done.stdout[-500:]}")
    return home / name


def settings(directory: Path) -> dict[str, object]:
    """Return what a broker must be told to store segments below `directory`."""
    return {
        "remote.log.storage.system.enable": "true",
        "remote.log.storage.manager.class.name": CLASS,
        "remote.log.storage.manager.class.path": str(jar()),
        "rsm.config.dir": str(directory),
        "remote.log.metadata.manager.listener.name": "PLAINTEXT",
        "rlmm.config.remote.log.metadata.topic.replication.factor": 1,
        "rlmm.config.remote.log.metadata.topic.num.partitions": 1,
        "remote.log.manager.task.interval.ms": 300,
        "log.initial.task.delay.ms": 300,
    }


TOPIC_SETTINGS = {
    "remote.storage.enable": "true",
    "internal.segment.bytes": "9000",
    "index.interval.bytes": "300",
}
