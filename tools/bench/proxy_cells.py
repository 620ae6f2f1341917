"""All that is measured of RocketMQ's proxies, with the bars that ours must meet."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from logstore.tools.bench.cells import Cell
from logstore.tools.bench.figures import Bar, Metric
from logstore.tools.bench.proxy_targets import ProxyTarget
from logstore.tools.bench.rocketmq_cells import QUEUES, topic_on
from logstore.tools.bench.rocketmq_load import shared_load, shared_proxy_load
from logstore.tools.bench.targets import Target

THREADS = (1, 16, 64)
_SIZE_BYTES = 128
#: what lies ready to be consumed for each second of it: more than anybody consumes
_READY_PER_SECOND = 20_000


def _endpoints(target: Target) -> str:
    assert isinstance(target, ProxyTarget), "cells of proxies run against them"
    return target.endpoints


@attrs.frozen
class Sending:
    """Sends of 128 B, each of which waits for its answer, by so many threads."""

    threads: int

    def __call__(self, target: Target, seconds: float) -> Mapping[str, float]:
        """Send for so long; the rate counts acknowledged messages."""
        with topic_on(target, "proxy", QUEUES) as (_, topic):
            load, endpoints = shared_proxy_load(), _endpoints(target)
            words = (self.threads,)
            load.measure("send", endpoints, topic, _SIZE_BYTES, seconds / 2, *words)
            found = load.measure("send", endpoints, topic, _SIZE_BYTES, seconds, *words)
            return {
                "messages_per_s": found["messages"] / found["seconds"],
                "p50_ms": found["p50_us"] / 1000,
                "p99_ms": found["p99_us"] / 1000,
            }


def consume(target: Target, seconds: float) -> Mapping[str, float]:
    """Consume what lies ready, with a push consumer, which acknowledges each message by itself."""
    with topic_on(target, "proxy", QUEUES) as (name_server, topic):
        filled = 0.0
        while filled < _READY_PER_SECOND * max(seconds, 1):
            words = (_SIZE_BYTES, 0.1, 1, 64)
            filled += shared_load().measure("batch", name_server, topic, *words)["messages"]
        load = shared_proxy_load()
        found = load.measure("consume", _endpoints(target), topic, _SIZE_BYTES, seconds)
        return {"messages_per_s": found["messages"] / found["seconds"]}


def warm(target: Target, seconds: float) -> None:
    """Load a target with a little of everything: a JVM's first seconds are no steady state."""
    for work in (Sending(16), consume, Sending(64)):
        work(target, 3 * seconds)


_RATE = Metric("messages_per_s", "messages/s", Bar("ratio", ">=", 1))

CELLS: list[Cell] = [
    *(
        Cell(
            "send",
            f"128 B, {threads} {'thread' if threads == 1 else 'threads'}",
            (_RATE, Metric("p50_ms", "ms p50"), Metric("p99_ms", "ms p99")),
            Sending(threads),
        )
        for threads in THREADS
    ),
    Cell("consume", "128 B, push consumer", (_RATE,), consume),
]

#: Names in the order of the first cell of each.
SCENARIOS: list[str] = list(dict.fromkeys(cell.scenario for cell in CELLS))
