"""A data directory worth damaging: idempotent and transactional batches in many small segments."""

from __future__ import annotations

import shutil
from pathlib import Path
from random import Random

from confluent_kafka import Producer

from logstore.tools.dev.kafka_peer import KafkaPeer
from tests.interop.clients import settings
from tests.interop.conftest import new_topic

TOPIC = "damaged"
PARTITIONS = 20
SEGMENT_INDEX_BYTES = 1024
TOPIC_CONFIG = {
    "internal.segment.bytes": "1800",
    "index.interval.bytes": "200",
    "segment.index.bytes": str(SEGMENT_INDEX_BYTES),
}
#: what both brokers run with; checkpoints are written while there is something to kill
BROKER: dict[str, object] = {
    "log.retention.ms": -1,
    "offsets.topic.num.partitions": 1,
    "transaction.state.log.num.partitions": 1,
    "share.coordinator.state.topic.num.partitions": 1,
    "log.flush.offset.checkpoint.interval.ms": 300,
    "auto.create.topics.enable": "false",
}
#: of half of the partitions: their producers have been silent for long
LONG_AGO_MS = 1_700_000_000_000
ROUNDS = 3


def fill(bootstrap: str, seed: int) -> None:
    """Three rounds of plain batches and one transaction each, over all partitions."""
    chance = Random(f"fill {seed}")
    new_topic(bootstrap, TOPIC, PARTITIONS, TOPIC_CONFIG)
    calm = settings(bootstrap) | {"enable.idempotence": True, "linger.ms": 2000}
    plain, acting = Producer(calm), Producer(calm | {"transactional.id": "t"})
    acting.init_transactions(30)
    for turn in range(ROUNDS):
        for _ in range(chance.randint(4, 6)):
            send(plain, chance)
        acting.begin_transaction()
        send(acting, chance)
        (acting.commit_transaction if turn == 1 else acting.abort_transaction)(30)
    for _ in range(3):
        send(plain, chance)


def send(producer: Producer, chance: Random) -> None:
    """Send one batch to each partition."""
    for partition in range(PARTITIONS):
        for _ in range(chance.randint(1, 3)):
            text = " ".join(str(chance.random()) for _ in range(chance.randint(1, 9)))
            time_ms = LONG_AGO_MS + chance.randrange(10**6) if partition % 2 else 0  # 0: now
            producer.produce(TOPIC, text.encode(), partition=partition, timestamp=time_ms)
    producer.flush(30)


def make_bases(kafka: KafkaPeer, directory: Path, seed: int) -> dict[str, Path]:
    """Return copies of what a real broker leaves: once it was killed, once stopped cleanly."""
    bases = {name: directory / name for name in ("killed", "stopped")}
    kafka.start()
    fill(kafka.bootstrap, seed)
    kafka.stop(kill=True)
    shutil.copytree(kafka.data, bases["killed"])
    kafka.start()
    kafka.stop()
    shutil.copytree(kafka.data, bases["stopped"])
    return bases
