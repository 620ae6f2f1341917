"""Transactions with librdkafka: one producer, which commits one after the other."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

import attrs

from logstore.tools.bench.cells import Cell, Meter, fresh_topic_name, topic_on
from logstore.tools.bench.figures import Bar, Metric, percentile
from logstore.tools.bench.frames import BenchError, text_values
from logstore.tools.bench.rdkafka import MISSING
from logstore.tools.bench.targets import Target

if TYPE_CHECKING:
    from confluent_kafka import Producer

PARTITIONS = 6
_SECONDS_MAX = 60


@attrs.frozen
class Transactions:
    """Each with so many records of 100 bytes, spread over the partitions of a topic."""

    record_count: int

    def __call__(self, target: Target, seconds: float) -> Mapping[str, float]:
        """Begin, produce and commit for so long; the times are from begin to the end of commit."""
        values = text_values(100, self.record_count)
        with topic_on(target, "transactions", PARTITIONS) as (_, topic):
            producer = _producer(target)
            self._run(producer, topic, values, seconds / 10)
            meter = Meter(target)
            latencies = self._run(producer, topic, values, seconds)
            costs = meter.costs(len(latencies))
            producer.flush(_SECONDS_MAX)
        return {
            "p50_ms": percentile(latencies, 0.5),
            "p99_ms": percentile(latencies, 0.99),
            **costs,
        }

    def _run(
        self, producer: Producer, topic: str, values: list[bytes], seconds: float
    ) -> list[float]:
        latencies: list[float] = []
        stop_at = time.perf_counter() + seconds
        while (started := time.perf_counter()) < stop_at:
            producer.begin_transaction()
            for number, value in enumerate(values):
                producer.produce(topic, value, partition=number % PARTITIONS)
            producer.commit_transaction(_SECONDS_MAX)
            latencies.append((time.perf_counter() - started) * 1000)
        return sorted(latencies)


def _producer(target: Target) -> Producer:
    """Return a producer whose transactions may begin."""
    try:
        from confluent_kafka import Producer
    except ImportError as error:
        raise BenchError(MISSING) from error
    producer = Producer(
        {
            "bootstrap.servers": target.main.bootstrap,
            "transactional.id": fresh_topic_name("writer"),
            "linger.ms": 0,
            "log_level": 2,  # what fails is raised here, not logged
        }
    )
    producer.init_transactions(_SECONDS_MAX)
    return producer


def _cell(record_count: int) -> Cell:
    return Cell(
        "transactions",
        f"{record_count} x 100 B, {PARTITIONS} partitions",
        (
            Metric("p50_ms", "ms p50", Bar("ratio", "<=", 1)),
            Metric("p99_ms", "ms p99", Bar("ratio", "<=", 1)),
            Metric("cpu_us", "us CPU/transaction"),
        ),
        Transactions(record_count),
    )


CELLS = [_cell(1), _cell(60)]
