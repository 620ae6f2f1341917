"""Start, memory and recovery; each on an instance of its own that is killed afterwards."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Mapping
from functools import partial

from logstore.tools.bench.cells import Cell
from logstore.tools.bench.client import (
    Connection,
    create_topic,
    delete_topic,
    end_offsets,
    fetched_bytes,
    produce,
    wait_until_ready,
    write_past_first_index_entries,
)
from logstore.tools.bench.figures import Bar, Metric
from logstore.tools.bench.frames import (
    BenchError,
    FetchReply,
    ProduceReplies,
    fetch_frame,
    produce_frame,
    text_values,
)
from logstore.tools.bench.pipeline import drive_fetch, drive_requests
from logstore.tools.bench.processes import resident_mib
from logstore.tools.bench.rdkafka import NativeProducer, Values
from logstore.tools.bench.scenario_produce import KB_10, KB_100, KB_900, ONE_SMALL
from logstore.tools.bench.targets import OURS, Instance, Target

RECOVERED_BYTES = 512 * 1024 * 1024

_TOPIC = "bench"
#: Printed by a Python of its own: milliseconds from the call to a broker that answers Metadata.
_TEST_BROKER = """
import sys
import time
from logstore.tools.dev.kafka_peer import answers
started = time.perf_counter()
from logstore.compat import TestBroker
if sys.argv[1] == "imported":
    started = time.perf_counter()
with TestBroker() as broker:
    while not answers(int(broker.bootstrap.rpartition(":")[2])):
        pass
    print((time.perf_counter() - started) * 1000)
"""


def start(target: Target, seconds: float) -> Mapping[str, float]:
    """Time from starting the process on an empty (Kafka: formatted) directory to the first ack."""
    del seconds
    instance = target.fresh()
    try:
        started = time.perf_counter()
        instance.start()
        with Connection(instance.address) as connection:
            create_topic(connection, _TOPIC, 1)
            produce(connection, _TOPIC, [0], ONE_SMALL.batch())
        return {"ms": (time.perf_counter() - started) * 1000}
    finally:
        target.discard(instance)


def start_in_process(target: Target, seconds: float) -> Mapping[str, float]:
    """Time from the first ``TestBroker()`` of a process, imports done, to an answer from it."""
    del seconds
    return _test_broker("imported") if target.name == OURS else {}


def import_and_start(target: Target, seconds: float) -> Mapping[str, float]:
    """Time from the import of the first ``TestBroker()`` of a process to an answer from it."""
    del seconds
    return _test_broker("cold") if target.name == OURS else {}


def _test_broker(how: str) -> Mapping[str, float]:
    done = subprocess.run(
        [sys.executable, "-c", _TEST_BROKER, how], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise BenchError(f"TestBroker() failed:\n{done.stderr[-2000:]}")
    return {"ms": float(done.stdout)}


def memory(target: Target, seconds: float) -> Mapping[str, float]:
    """Resident memory a second after the start, and after every kind of load."""
    instance = target.fresh()
    try:
        instance.start()
        time.sleep(1)
        idle = resident_mib(instance.pid)
        _load(instance, seconds)
        time.sleep(1)
        return {"idle_mib": idle, "loaded_mib": resident_mib(instance.pid)}
    finally:
        target.discard(instance)


def _load(instance: Instance, seconds: float) -> None:
    """Produce small and huge batches, fetch them, and produce with librdkafka to 6 partitions."""
    with Connection(instance.address) as connection:
        create_topic(connection, _TOPIC, 6)
        write_past_first_index_entries(connection, _TOPIC, 6)
        replies = ProduceReplies.about(_TOPIC, 1)
        for shape in (ONE_SMALL, KB_10, KB_100, KB_900):
            frames = [produce_frame(_TOPIC, [0], shape.batch())]
            drive_requests(connection, frames, replies, in_flight=64, seconds=seconds)
        fetches = [fetch_frame(_TOPIC, 0, 0, bytes_max=1 << 20)]
        drive_fetch(connection, fetches, FetchReply.about(_TOPIC), in_flight=2, seconds=seconds)
        values = Values(text_values(1024, 1000))
        for codec in ("none", "zstd"):
            settings = {"acks": -1, "compression.codec": codec}
            with NativeProducer(instance.bootstrap, _TOPIC, settings) as producer:
                producer.produce(values, seconds=seconds)
        delete_topic(connection, _TOPIC)


def recover(target: Target, seconds: float) -> Mapping[str, float]:
    """
    Write 512 MiB to one partition, kill the broker with SIGKILL, and start it again.

    Ready is: Metadata names the leader, the end offset is what it was, and the last record can be
    fetched.
    """
    del seconds
    batch = KB_100.batch()
    batch_count = -(-RECOVERED_BYTES // len(batch))
    instance = target.fresh()
    try:
        instance.start()
        with Connection(instance.address) as connection:
            create_topic(connection, _TOPIC, 1)
            frames = [produce_frame(_TOPIC, [0], batch)]
            write = partial(drive_requests, connection, frames, ProduceReplies.about(_TOPIC, 1))
            write(in_flight=8, seconds=600, requests_max=batch_count)
            expected = end_offsets(connection, _TOPIC, 1)
        instance.stop(kill=True)
        started = time.perf_counter()
        instance.start()
        with Connection(instance.address) as connection:
            wait_until_ready(connection, _TOPIC, 1)
            found = end_offsets(connection, _TOPIC, 1)
            if found is None or found != expected:
                raise BenchError(f"after the restart the log ends at {found}, not at {expected}")
            if not fetched_bytes(connection, _TOPIC, 0, found[0] - 1):
                raise BenchError("after the restart the last record cannot be fetched")
        return {"seconds": time.perf_counter() - started}
    finally:
        target.discard(instance)


CELLS = [
    Cell(
        "start",
        "process start to first ack",
        (Metric("ms", "ms", Bar("value", "<", 350)),),
        start,
        needs_start=True,
    ),
    Cell(
        "start",
        "TestBroker() until it answers",
        (Metric("ms", "ms", Bar("value", "<", 50)),),
        start_in_process,
        needs_start=True,
    ),
    Cell(
        "start",
        "the first TestBroker() of a process, imports included",
        (Metric("ms", "ms"),),
        import_and_start,
        needs_start=True,
    ),
    Cell(
        "memory",
        "resident",
        (
            Metric("idle_mib", "MiB idle", Bar("value", "<=", 60)),
            Metric("loaded_mib", "MiB after load", Bar("value", "<=", 90)),
        ),
        memory,
        needs_start=True,
    ),
    Cell(
        "recovery",
        "512 MiB, kill -9 to ready",
        (Metric("seconds", "s", Bar("value", "<=", 1)),),
        recover,
        needs_start=True,
    ),
]
