"""Power losses and crashes in the middle of transactions: what was promised is found afterwards."""

from __future__ import annotations

import pytest

from logstore.compat.kafka.broker import Broker
from logstore.testing.crash_points import every_power_loss
from logstore.testing.power_loss import LOSE_UNSYNCED, PowerLoss
from logstore.testing.simulated_host import SimulatedHost
from tests.compat.kafka.peer import a_broker
from tests.compat.kafka.transactions.producer import (
    TransactionalClient,
    committed_values,
    group_offset,
)

#: small, so that a run has few operations; every append is flushed before it is acknowledged
SETTINGS: dict[str, object] = {
    "offsets_topic_num_partitions": 1,
    "transaction_state_log_num_partitions": 1,
    "log_flush_interval_messages": 1,
    "log_index_size_max_bytes": 4096,
}
LOSSES = {1: LOSE_UNSYNCED, 2: PowerLoss.random(5)}


#: how the producer ends its transactions, by their numbers
IS_COMMIT = (False, True)


def a_life(host: SimulatedHost, speaks: int) -> None:
    """Hold two transactions over two partitions and a group; note every answer to an end."""
    broker = a_broker(host, **SETTINGS)
    broker.create_topic("t", 2)
    host.fs.journal.note("topic", 1)
    client = TransactionalClient(broker, speaks)
    assert client.init() == 0
    for number, is_commit in enumerate(IS_COMMIT):
        value = b"%d" % number
        assert client.send("t", 0, value) == client.send("t", 1, value) == 0
        assert client.send_offset("t", 0, number) == 0
        host.fs.journal.note("asked", number)
        assert client.end(is_commit=is_commit) == 0
        host.fs.journal.note("promised", number)


def check(broker: Broker, asked: list[int], promised: list[int]) -> None:
    """What was promised holds; what was only asked holds everywhere or nowhere."""
    client = TransactionalClient(broker, 2)
    while client.init():  # whatever is open is aborted
        pass
    values = [committed_values(broker, "t", index) for index in (0, 1)]
    assert values[0] == values[1]
    for number in promised:
        assert (b"%d" % number in values[0]) is IS_COMMIT[number]
    possible = {b"%d" % number for number in asked if IS_COMMIT[number]}
    assert set(values[0]) <= possible
    expected = max((int(value) for value in values[0]), default=-1)
    assert group_offset(broker, "t", is_stable=True) == (0, expected)
    for partition in broker.topics["t"].partitions.values():
        assert partition.last_stable_offset == partition.end_offset
    assert client.send("t", 0, b"after") == client.end(is_commit=True) == 0
    assert committed_values(broker, "t")[-1] == b"after"


@pytest.mark.parametrize("speaks", [1, 2])
def test_every_single_power_loss(speaks: int) -> None:
    """At every operation of the disk, without what was not synced or with some: all or nothing."""
    count = 0
    for point in every_power_loss(
        lambda host: a_life(host, speaks), losses=[LOSSES[speaks]], random_losses=0
    ):
        journal = point.host.fs.journal
        if not journal.notes("topic"):
            continue
        broker = a_broker(point.host, **SETTINGS)
        try:
            check(broker, journal.notes("asked", int), journal.notes("promised", int))
        except AssertionError as error:
            raise AssertionError(str(point)) from error
        count += 1
    assert count > 100
