"""Kafka's transactions over RocketMQ's layout: held until the commit, then put as a whole."""

from __future__ import annotations

import pytest

from logstore.compat.bridge.bridge import Bridge
from logstore.segments.kafka.record import Record
from logstore.testing.crash_points import every_power_loss
from logstore.testing.power_loss import KEEP_EVERYTHING, LOSE_UNSYNCED, PowerLoss
from logstore.testing.simulated_host import SimulatedHost
from tests.compat.bridge.bridges import fetched, open_bridge, partition_of, produce, pulled
from tests.compat.kafka.transactions.producer import (
    TransactionalClient,
    committed_values,
    group_offset,
)

NOW_MS = 1_700_000_000_000
SPEAKS = (1, 2)
#: small, so that a run has few operations
SETTINGS = {"transaction.state.log.num.partitions": "1", "log.index.size.max.bytes": "4096"}
#: of the losses in the middle of a commit, so many-th are followed by a second one
EACH = 18
#: how the producer ends its transactions, by their numbers
IS_COMMIT = (False, True, True)
#: the third is what the end of the process leaves
LOSSES = {"unsynced": LOSE_UNSYNCED, "random": PowerLoss.random(5), "killed": KEEP_EVERYTHING}
#: Of what older clients speak, the mixed loss stands for all in the fast run.
POWER_LOSSES = [
    pytest.param(
        speaks,
        loss,
        id=f"{speaks}-{name}",
        marks=[pytest.mark.slow] if speaks == 1 and name != "random" else [],
    )
    for speaks in SPEAKS
    for name, loss in LOSSES.items()
]


def opened(host: SimulatedHost, **settings: str) -> Bridge:
    """Return a bridge over queues that has a topic of two."""
    bridge = open_bridge("rocketmq", host, **{**SETTINGS, **settings})
    if "t" not in bridge.kafka.topics:
        bridge.kafka.create_topic("t", 2)
    return bridge


def client_of(bridge: Bridge, speaks: int, name: str = "payments") -> TransactionalClient:
    """Return a transactional producer that has begun."""
    client = TransactionalClient(bridge.kafka, speaks, name)
    while client.init():  # 51 while an open transaction is aborted
        pass
    return client


def values(bridge: Bridge, index: int = 0) -> list[bytes]:
    """Return what both sides' readers see of a queue; it must be the same."""
    found = committed_values(bridge.kafka, "t", index)
    if index == 0:
        assert [message.body for message in pulled(bridge, "t")] == found
        assert [record.value for record in fetched(bridge, "t")] == found
    return found


@pytest.mark.parametrize("flush", ["ASYNC_FLUSH", "SYNC_FLUSH"])
@pytest.mark.parametrize("speaks", SPEAKS)
def test_what_is_committed_is_seen_then_and_not_before(speaks: int, flush: str) -> None:
    """Of an open transaction nothing is in the queue; its records come behind those that did."""
    bridge = opened(SimulatedHost(seed=1), flushDiskType=flush)
    client = client_of(bridge, speaks)
    assert client.send("t", 0, b"a", b"b") == 0
    assert produce(bridge, "t", [Record(0, NOW_MS, None, b"plain")]) == 0
    assert client.send("t", 0, b"c") == client.send("t", 1, b"d") == 0
    assert client.send_offset("t", 0, 5) == 0
    partition = partition_of(bridge, "t")
    assert partition.last_stable_offset == partition.end_offset == 1
    assert values(bridge) == [b"plain"]
    assert group_offset(bridge.kafka, "t") == (0, -1)
    assert client.end(is_commit=True) == 0
    assert values(bridge) == [b"plain", b"a", b"b", b"c"]
    assert values(bridge, 1) == [b"d"]
    assert partition.last_stable_offset == partition.end_offset == 4
    assert group_offset(bridge.kafka, "t") == (0, 5)
    bridge.abandon()


@pytest.mark.parametrize("speaks", SPEAKS)
@pytest.mark.parametrize("stop", ["close", "abandon", None])
def test_an_open_transaction_outlives_a_stop(speaks: int, stop: str | None) -> None:
    """What was aborted is forgotten, what is open goes on after a stop and is committed whole."""
    host = SimulatedHost(seed=1)
    bridge = opened(host)
    client = client_of(bridge, speaks)
    for value, is_commit in ((b"lost", False), (b"kept", True)):
        assert client.send("t", 0, value) == client.end(is_commit=is_commit) == 0
    assert client.send("t", 0, b"before") == 0
    if stop is not None:
        getattr(bridge, stop)()
        bridge = opened(host)
        again = TransactionalClient(bridge.kafka, speaks)
        again.producer_id, again.epoch = client.producer_id, client.epoch
        again.sequences, client = client.sequences, again
    assert values(bridge) == [b"kept"]
    assert client.send("t", 0, b"after") == client.end(is_commit=True) == 0
    assert values(bridge) == [b"kept", b"before", b"after"]
    bridge.close()


def a_life(host: SimulatedHost, speaks: int) -> None:
    """Hold transactions over two queues and a group; note every answer to an end."""
    bridge = opened(host)
    host.fs.journal.note("topic", 1)
    client = TransactionalClient(bridge.kafka, speaks)
    assert client.init() == 0
    for number, is_commit in enumerate(IS_COMMIT):
        assert client.send("t", 0, b"%d" % number, b"%d" % number) == 0
        assert client.send("t", 1, b"%d" % number, b"%d" % number) == 0
        produce(bridge, "t", [Record(0, NOW_MS, None, b"plain")])
        assert client.send_offset("t", 0, number) == 0
        host.fs.journal.note("asked", number)
        assert client.end(is_commit=is_commit) == 0
        host.fs.journal.note("promised", number)


def check(host: SimulatedHost, asked: list[int], promised: list[int]) -> None:
    """What was promised holds; what was only asked holds everywhere or nowhere."""
    bridge = opened(host)
    client = client_of(bridge, 2)
    of_queues = [[v for v in values(bridge, index) if v != b"plain"] for index in (0, 1)]
    assert of_queues[0] == of_queues[1]
    found = of_queues[0]
    assert found == [b"%d" % int(one) for one in sorted(set(found)) for _ in range(2)]
    for number in promised:
        assert (b"%d" % number in found) is IS_COMMIT[number]
    assert set(found) <= {b"%d" % number for number in asked if IS_COMMIT[number]}
    expected = max((int(value) for value in found), default=-1)
    assert group_offset(bridge.kafka, "t", is_stable=True) == (0, expected)
    assert client.send("t", 0, b"after") == client.end(is_commit=True) == 0
    assert values(bridge)[-1] == b"after"
    assert values(bridge).count(b"after") == 1
    bridge.abandon()


@pytest.mark.timeout(900)
@pytest.mark.parametrize(("speaks", "loss"), POWER_LOSSES)
def test_every_single_power_loss(speaks: int, loss: PowerLoss) -> None:
    """At every third operation, others for each loss: all or nothing, once, on both queues."""
    count = 0
    turn = list(LOSSES.values()).index(loss)
    for point in every_power_loss(
        lambda host: a_life(host, speaks), losses=[loss], random_losses=0
    ):
        journal = point.host.fs.journal
        if not journal.notes("topic") or point.operation_count % len(LOSSES) != turn:
            continue
        try:
            check(point.host, journal.notes("asked", int), journal.notes("promised", int))
        except AssertionError as error:
            raise AssertionError(str(point)) from error
        count += 1
    assert count > 50


@pytest.mark.timeout(900)
def test_every_power_loss_during_a_recovery() -> None:
    """A commit that a first power loss cut short is finished once, wherever the second one cuts."""
    count = 0
    for first in every_power_loss(
        lambda host: a_life(host, 2), losses=[PowerLoss.random(9)], random_losses=0
    ):
        asked, promised = (first.host.fs.journal.notes(name, int) for name in ("asked", "promised"))
        is_under_way = asked[-1:] == [1] and promised[-1:] != [1]
        if not is_under_way or first.operation_count % EACH:
            continue
        for second in every_power_loss(
            opened, losses=[PowerLoss.random(10)], random_losses=0, make_host=first.host.fork
        ):
            try:
                check(second.host, asked, promised)
            except AssertionError as error:
                raise AssertionError(f"{first}; then {second}") from error
            count += 1
    assert count > 100
