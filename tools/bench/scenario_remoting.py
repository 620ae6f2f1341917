"""What Java's client does less often, from a raw client: deferred messages, pops, filters."""

from __future__ import annotations

import contextlib
import json
import statistics
import time
from collections import deque
from collections.abc import Callable, Generator, Mapping

import attrs

from logstore.tools.bench.cells import CLIENT_BUSY, Cell, Meter, fresh_topic_name
from logstore.tools.bench.client import Connection
from logstore.tools.bench.figures import Bar, Metric
from logstore.tools.bench.remoting_frames import (
    UPDATE_GROUP,
    ack_frames,
    checked_reply,
    commit_frame,
    exchange_all,
    half_frame,
    pop_frame,
    pull_frame,
    request,
    send_frame,
)
from logstore.tools.bench.rocketmq_targets import RocketMQTarget
from logstore.tools.bench.targets import Target
from logstore.tools.dev.remoting_request import UPDATE_BROKER_CONFIG, read_answer
from logstore.tools.dev.rocketmq_jars import VERSION_4

QUEUES = 4
IN_FLIGHT = 16
STORED = 30_000
#: one message in so many matches
TAG_SHARE, SQL_SHARE = 50, 100
_BODY = b"x" * 128
_NO_MESSAGE = 19
_CHECKED_EVERY = 64
_CPU_US = Metric("cpu_us", "us CPU/message")


@contextlib.contextmanager
def _topic_on(target: Target, stem: str, queues: int) -> Generator[tuple[Connection, str]]:
    """Yield a connection to the broker and a topic of its own, which goes away at the end."""
    assert isinstance(target, RocketMQTarget), "cells of RocketMQ run against its brokers"
    instance, topic = target.instance, fresh_topic_name(stem)
    instance.create_topic(topic, queues)
    with Connection(instance.broker) as connection:
        yield connection, topic
    instance.delete_topic(topic)


def _rate(
    connection: Connection, make: Callable[[int], bytes], seconds: float
) -> tuple[int, float]:
    """Send for so long with some in flight; return how many were answered, and the time."""
    started = time.perf_counter()
    stop_at = started + seconds
    sent = IN_FLIGHT
    connection.socket.sendall(b"".join(map(make, range(sent))))
    answered = 0
    while answered < sent:
        frame = connection.receive()
        answered += 1
        if answered % _CHECKED_EVERY == 1:
            checked_reply(frame)
        if time.perf_counter() < stop_at:
            connection.socket.sendall(make(sent))
            sent += 1
    return answered, time.perf_counter() - started


def _fill(connection: Connection, make: Callable[[int], bytes], count: int) -> None:
    outstanding: deque[int] = deque()
    for number in range(count):
        connection.socket.sendall(make(number))
        outstanding.append(number)
        if len(outstanding) > IN_FLIGHT:
            checked_reply(connection.receive())
            outstanding.popleft()
    for _ in outstanding:
        checked_reply(connection.receive())


@attrs.frozen
class DeferredSends:
    """Sends of messages that are not for now; those that `is_new` only releases since 5 know."""

    properties: Mapping[str, str]
    is_new: bool = False

    def __call__(self, target: Target, seconds: float) -> Mapping[str, float]:
        """Send for so long."""
        if self.is_new and target.name == VERSION_4:
            return {}
        with _topic_on(target, "deferred", QUEUES) as (connection, topic):

            def make(number: int) -> bytes:
                return send_frame(topic, number % QUEUES, _BODY, self.properties)

            _rate(connection, make, seconds / 5)
            meter = Meter(target)
            count, elapsed = _rate(connection, make, seconds)
            costs = meter.costs(count)
        return {"messages_per_s": count / elapsed, **costs}


def transact(target: Target, seconds: float) -> Mapping[str, float]:
    """Send half messages and commit them, one after the other."""
    times_us: list[float] = []
    with _topic_on(target, "half", 1) as (connection, topic):
        stop_at = time.perf_counter() + seconds
        while (started := time.perf_counter()) < stop_at:
            half = checked_reply(connection.exchange(half_frame(topic, _BODY)))
            checked_reply(connection.exchange(commit_frame(topic, half)))
            times_us.append((time.perf_counter() - started) * 1e6)
    return {"p50_us": statistics.median(times_us)}


def pop(target: Target, seconds: float) -> Mapping[str, float]:
    """Pop 32 messages at a time and acknowledge each, all 32 acknowledgements at once."""
    if target.name == VERSION_4:
        return {}
    group = fresh_topic_name("popper")
    with _topic_on(target, "pop", QUEUES) as (connection, topic):
        about = json.dumps({"groupName": group, "consumeEnable": True, "retryQueueNums": 1})
        checked_reply(connection.exchange(request(UPDATE_GROUP, {}, about.encode())))
        _fill(connection, lambda n: send_frame(topic, n % QUEUES, _BODY, {"TAGS": "A"}), STORED)
        meter = Meter(target)
        count, started = 0, time.perf_counter()
        stop_at = started + seconds
        while time.perf_counter() < stop_at:
            popped = read_answer(connection.exchange(pop_frame(topic, group)))
            if popped.code == _NO_MESSAGE:
                break
            acks = ack_frames(topic, group, popped)
            checked_reply(exchange_all(connection, acks))
            count += len(acks)
        elapsed = time.perf_counter() - started
        costs = meter.costs(count)
    return {"messages_per_s": count / elapsed, **costs}


def pull_filtered(target: Target, seconds: float) -> Mapping[str, float]:
    """Pull with a filter that few of the messages pass: by tag, and by SQL."""
    figures: dict[str, float] = {}
    with _topic_on(target, "filter", 1) as (connection, topic):

        def make(number: int) -> bytes:
            tag = "A" if number % TAG_SHARE == 0 else "B"
            return send_frame(topic, 0, _BODY, {"TAGS": tag, "a": str(number % SQL_SHARE)})

        switch = request(UPDATE_BROKER_CONFIG, {}, b"enablePropertyFilter=true\n")
        checked_reply(connection.exchange(switch))
        _fill(connection, make, STORED)
        for name, kind, expression in (("tag", "TAG", "A"), ("sql", "SQL92", "a = '7'")):
            times_us: list[float] = []
            stop_at = time.perf_counter() + seconds / 2
            while time.perf_counter() < stop_at:
                offset = len(times_us) * 1600 % (STORED // 2)
                frame = pull_frame(topic, offset, kind, expression)
                started = time.perf_counter()
                reply = connection.exchange(frame)
                times_us.append((time.perf_counter() - started) * 1e6)
                if len(times_us) == 1:
                    checked_reply(reply)
            figures[f"{name}_us"] = statistics.median(times_us)
    return figures


def _deferred(name: str, run: DeferredSends) -> Cell:
    at_least = Bar("ratio", ">=", 1)
    metrics = (Metric("messages_per_s", "messages/s", at_least), _CPU_US, CLIENT_BUSY)
    return Cell("deferred", f"{name}, {IN_FLIGHT} in flight", metrics, run)


CELLS: list[Cell] = [
    # Nothing of it is to come back while something else is measured.
    _deferred("delay level", DeferredSends({"DELAY": "18"})),
    _deferred("a time of its own", DeferredSends({"TIMER_DELAY_SEC": "86400"}, is_new=True)),
    Cell(
        "deferred",
        "half message and commit",
        (Metric("p50_us", "us p50", Bar("ratio", "<=", 1)),),
        transact,
    ),
    Cell(
        "pop",
        "32 x 128 B, each acknowledged",
        (Metric("messages_per_s", "messages/s", Bar("ratio", ">=", 1)), _CPU_US, CLIENT_BUSY),
        pop,
    ),
    Cell(
        "filter",
        f"1 in {TAG_SHARE} by tag, 1 in {SQL_SHARE} by SQL",
        (
            Metric("tag_us", "us p50 by tag", Bar("ratio", "<=", 1)),
            Metric("sql_us", "us p50 by SQL", Bar("ratio", "<=", 1)),
        ),
        pull_filtered,
    ),
]
