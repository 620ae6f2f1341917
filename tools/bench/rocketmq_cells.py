"""All that is measured of RocketMQ brokers, with the bars that ours must meet."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from collections.abc import Generator, Mapping, Sequence

import attrs

from logstore.tools.bench.cells import Cell, Meter, fresh_topic_name
from logstore.tools.bench.figures import Bar, Metric
from logstore.tools.bench.frames import BenchError
from logstore.tools.bench.rocketmq_load import shared_load
from logstore.tools.bench.rocketmq_targets import RocketMQInstance, RocketMQTarget
from logstore.tools.bench.scenario_remoting import CELLS as REMOTING_CELLS
from logstore.tools.bench.targets import OURS, Target

QUEUES = 4
SIZES = {"128 B": 128, "1 KiB": 1024, "10 KiB": 10_240}
THREADS = (1, 16, 64)
IN_FLIGHT = 256
BATCH_MESSAGES = 32
#: what lies ready to be pulled, over and over again
PULLED_MESSAGES = 100_000
#: what a push consumer takes, and how it may
PUSHED_MESSAGES = 100_000
PUSHES = {"any order": "concurrently", "in order": "orderly", "to each consumer": "broadcast"}

CPU_US = Metric("cpu_us", "us CPU/message")
#: Printed by a Python of its own: milliseconds from the call to a listed broker that answers.
_TEST_BROKER = """
import time
from logstore.compat import TestBroker
from logstore.tools.dev.remoting_request import is_broker_up, broker_address, lists_broker
started = time.perf_counter()
with TestBroker(layout="rocketmq") as broker:
    host, _, port = broker.bootstrap.rpartition(":")
    while not lists_broker((host, int(port))):
        pass
    address = broker_address((host, int(port)))
    while address is None or not is_broker_up(address):
        pass
    print((time.perf_counter() - started) * 1000)
"""


@contextlib.contextmanager
def topic_on(target: Target, stem: str, queue_count: int) -> Generator[tuple[str, str]]:
    """Yield the name server and a topic of its own; delete it at the end."""
    instance = _target(target).instance
    topic = fresh_topic_name(stem)
    instance.create_topic(topic, queue_count)
    yield instance.bootstrap, topic
    instance.delete_topic(topic)


def _target(target: Target) -> RocketMQTarget:
    assert isinstance(target, RocketMQTarget), "cells of RocketMQ run against its brokers"
    return target


@attrs.frozen
class Sending:
    """Sends of one kind ("sync", "async", "batch"): `words` are what the kind wants to know."""

    kind: str
    size_bytes: int
    words: Sequence[int]

    def __call__(self, target: Target, seconds: float) -> Mapping[str, float]:
        """Send for so long; the rate counts acknowledged messages."""
        with topic_on(target, self.kind, QUEUES) as (name_server, topic):
            load = shared_load()
            load.measure(self.kind, name_server, topic, self.size_bytes, seconds / 5, *self.words)
            meter = Meter(target)
            found = load.measure(
                self.kind, name_server, topic, self.size_bytes, seconds, *self.words
            )
            return _figures(found) | meter.costs(int(found["messages"]))


def _figures(found: Mapping[str, float]) -> dict[str, float]:
    return {
        "messages_per_s": found["messages"] / found["seconds"],
        "p50_ms": found["p50_us"] / 1000,
        "p99_ms": found["p99_us"] / 1000,
    }


def _fill(name_server: str, topic: str, count: int) -> None:
    """Send so many messages of 128 B, or somewhat more."""
    load, filled = shared_load(), 0.0
    while filled < count:
        filled += load.measure("batch", name_server, topic, 128, 0.3, 1, 256)["messages"]


def pull(target: Target, seconds: float) -> Mapping[str, float]:
    """Pull 32 messages of 128 B at a time with one thread, from one queue over and over again."""
    with topic_on(target, "pull", 1) as (name_server, topic):
        load = shared_load()
        _fill(name_server, topic, PULLED_MESSAGES)
        load.measure("pull", name_server, topic, 128, seconds / 5)
        meter = Meter(target)
        found = load.measure("pull", name_server, topic, 128, seconds)
        return _figures(found) | meter.costs(int(found["messages"]))


@attrs.frozen
class Pushing:
    """A push consumer that takes all of a topic in its own way: "concurrently", "orderly"..."""

    kind: str

    def __call__(self, target: Target, seconds: float) -> Mapping[str, float]:
        """Take messages of 128 B, as many as there are, however long that takes."""
        del seconds
        with topic_on(target, "push", QUEUES) as (name_server, topic):
            _fill(name_server, topic, PUSHED_MESSAGES + 1)  # the first is where the clock starts
            meter = Meter(target)
            found = shared_load().measure("push", name_server, topic, PUSHED_MESSAGES, self.kind)
            rate = found["messages"] / found["seconds"]
            return {"messages_per_s": rate} | meter.costs(PUSHED_MESSAGES)


def listen(target: Target, seconds: float) -> Mapping[str, float]:
    """From a send to the call of the push consumer's listener, 200 messages a second."""
    with topic_on(target, "listen", QUEUES) as (name_server, topic):
        found = shared_load().measure("listen", name_server, topic, 128, max(2, seconds))
        return {"p50_ms": found["p50_us"] / 1000, "p99_ms": found["p99_us"] / 1000}


def start(target: Target, seconds: float) -> Mapping[str, float]:
    """Time from starting name server and broker on an empty directory to the first send's ack."""
    del seconds
    load = shared_load()
    instance = _target(target).fresh_instance()
    try:
        started = time.perf_counter()
        instance.start()
        load.measure("first", instance.bootstrap, "TBW102-made", 128)
        return {"ms": (time.perf_counter() - started) * 1000}
    finally:
        target.discard(instance)


def start_in_process(target: Target, seconds: float) -> Mapping[str, float]:
    """Time from the first ``TestBroker()`` of a process, imports done, to an answer from it."""
    del seconds
    if target.name != OURS:
        return {}
    done = subprocess.run(
        [sys.executable, "-c", _TEST_BROKER], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise BenchError(f"TestBroker() failed:\n{done.stderr[-2000:]}")
    return {"ms": float(done.stdout)}


def memory(target: Target, seconds: float) -> Mapping[str, float]:
    """Memory of all processes a second after the start, and after every kind of load."""
    instance = _target(target).fresh_instance()
    try:
        instance.start()
        time.sleep(1)
        idle = instance.resident_mib()
        _load(instance, seconds)
        time.sleep(1)
        return {
            "idle_mib": idle,
            "loaded_mib": instance.resident_mib(),
            "anonymous_mib": instance.anonymous_mib(),
        }
    finally:
        target.discard(instance)


def _load(instance: RocketMQInstance, seconds: float) -> None:
    """Send small and large messages, batches, pull, and listen."""
    instance.create_topic("memory", QUEUES)
    load = shared_load()
    where = (instance.bootstrap, "memory")
    for kind, size_bytes, words in (
        ("sync", 128, (64,)),
        ("sync", 10_240, (64,)),
        ("async", 1024, (IN_FLIGHT,)),
        ("batch", 128, (8, BATCH_MESSAGES)),
        ("pull", 128, ()),
    ):
        load.measure(kind, *where, size_bytes, seconds, *words)


def warm(target: Target, seconds: float) -> None:
    """Load a target with a little of everything: a JVM's first seconds are no steady state."""
    for work in (
        Sending("sync", 128, (64,)),
        Sending("sync", 10_240, (16,)),
        Sending("async", 1024, (IN_FLIGHT,)),
        Sending("batch", 128, (1, BATCH_MESSAGES)),
        pull,
    ):
        work(target, seconds)


def _sync(size: str, threads: int) -> Cell:
    at_least = 1.3 if (threads, size) == (64, "128 B") else 1
    plural = "thread" if threads == 1 else "threads"
    return Cell(
        "sync",
        f"{size}, {threads} {plural}",
        (
            Metric("messages_per_s", "messages/s", Bar("ratio", ">=", at_least)),
            Metric("p50_ms", "ms p50"),
            Metric("p99_ms", "ms p99", Bar("ratio", "<=", 0.5)),
            CPU_US,
        ),
        Sending("sync", SIZES[size], (threads,)),
    )


def _rate(scenario: str, name: str, at_least: float, run: Sending) -> Cell:
    metrics = (
        Metric("messages_per_s", "messages/s", Bar("ratio", ">=", at_least)),
        Metric("p50_ms", "ms p50", is_shown=False),
        Metric("p99_ms", "ms p99"),
        CPU_US,
    )
    return Cell(scenario, name, metrics, run)


CELLS: list[Cell] = [
    Cell(
        "start",
        "process start to first ack",
        (Metric("ms", "ms", Bar("value", "<", 500)),),
        start,
        needs_start=True,
    ),
    Cell(
        "start",
        "TestBroker() until it answers",
        (Metric("ms", "ms", Bar("value", "<", 60)),),
        start_in_process,
        needs_start=True,
    ),
    Cell(
        "memory",
        "all processes",
        (
            Metric("idle_mib", "MiB resident, idle", Bar("value", "<=", 70)),
            Metric("loaded_mib", "MiB resident after load"),
            Metric("anonymous_mib", "MiB anonymous after load", Bar("value", "<=", 100)),
        ),
        memory,
        needs_start=True,
    ),
    *(_sync(size, threads) for size in SIZES for threads in THREADS),
    *(
        _rate("async", f"{size}, {IN_FLIGHT} in flight", 1.3, Sending("async", count, (IN_FLIGHT,)))
        for size, count in SIZES.items()
    ),
    *(
        _rate(
            "batch",
            f"{BATCH_MESSAGES} x 128 B, {threads} {'thread' if threads == 1 else 'threads'}",
            1,
            Sending("batch", 128, (threads, BATCH_MESSAGES)),
        )
        for threads in (1, 8)
    ),
    Cell(
        "pull",
        "32 x 128 B, 1 thread",
        (
            Metric("messages_per_s", "messages/s", Bar("ratio", ">=", 1)),
            Metric("p99_ms", "ms p99"),
            CPU_US,
        ),
        pull,
    ),
    *(
        Cell(
            "push",
            f"128 B, {name}",
            (Metric("messages_per_s", "messages/s", Bar("ratio", ">=", 1)), CPU_US),
            Pushing(kind),
        )
        for name, kind in PUSHES.items()
    ),
    Cell(
        "listen",
        "send to listener, 128 B",
        (
            Metric("p50_ms", "ms p50", Bar("ratio", "<=", 0.5)),
            Metric("p99_ms", "ms p99", Bar("ratio", "<=", 0.5)),
        ),
        listen,
    ),
    *REMOTING_CELLS,
]

#: Names in the order of the first cell of each.
SCENARIOS: list[str] = list(dict.fromkeys(cell.scenario for cell in CELLS))
