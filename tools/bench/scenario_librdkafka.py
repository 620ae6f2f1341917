"""Produce with librdkafka, in every combination of size, acks, partitions and compression."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from functools import cache

import attrs

from logstore.tools.bench.cells import CLIENT_BUSY, Cell, Meter, topic_on
from logstore.tools.bench.client import Connection, end_offsets
from logstore.tools.bench.figures import Bar, Metric
from logstore.tools.bench.frames import BenchError, text_values
from logstore.tools.bench.rdkafka import NativeProducer, Values
from logstore.tools.bench.targets import Target

#: Different values in memory: enough that no compressor's window sees one twice.
VALUES_BYTES = 4_000_000

SIZES = {"100 B": 100, "1 KiB": 1024, "10 KiB": 10_240}
ACKS = {"acks=1": 1, "acks=all": -1}
PARTITIONS = {"1 partition": 1, "6 partitions": 6}
CODECS = ("none", "lz4", "zstd")


@attrs.frozen
class Mix:
    """One combination."""

    record_bytes: int
    acks: int
    partition_count: int
    codec: str

    def __call__(self, target: Target, seconds: float) -> Mapping[str, float]:
        """Produce for so long; the rate counts acknowledged records, and the log must hold them."""
        values = _values(self.record_bytes)
        settings = {"acks": self.acks, "compression.codec": self.codec}
        with topic_on(target, "librdkafka", self.partition_count) as (connection, topic):
            before = _record_count(connection, topic, self.partition_count)
            with NativeProducer(target.main.bootstrap, topic, settings) as producer:
                warmed = producer.produce(values, seconds=seconds / 10)
                meter = Meter(target)
                produced = producer.produce(values, seconds=seconds)
                costs = meter.costs(produced.records)
            stored = _record_count(connection, topic, self.partition_count) - before
            if stored != warmed.records + produced.records:
                raise BenchError(
                    f"{warmed.records + produced.records} records were acknowledged, the log has "
                    f"{stored}"
                )
            rate = produced.records / produced.seconds
            return {
                "records_per_s": rate,
                "mb_per_s": rate * self.record_bytes / 1e6,
                **costs,
            }


@cache
def _values(record_bytes: int) -> Values:
    return Values(text_values(record_bytes, VALUES_BYTES // record_bytes))


def _record_count(connection: Connection, topic: str, partition_count: int) -> int:
    return sum(end_offsets(connection, topic, partition_count) or [])


def _cell(size: str, acks: str, partitions: str, codec: str) -> Cell:
    return Cell(
        "librdkafka",
        f"{size}, {acks}, {partitions}, {codec}",
        (
            Metric("records_per_s", "records/s", Bar("ratio", ">=", 1)),
            Metric("cpu_us", "us CPU/record", Bar("ratio", "<=", 2 / 3)),
            Metric("mb_per_s", "MB/s", is_shown=False),
            CLIENT_BUSY,
        ),
        Mix(SIZES[size], ACKS[acks], PARTITIONS[partitions], codec),
    )


CELLS = [_cell(*mix) for mix in itertools.product(SIZES, ACKS, PARTITIONS, CODECS)]
