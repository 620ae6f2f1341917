"""Tables of topics, groups and offsets when the disk refuses a change, or the power goes."""

from __future__ import annotations

import errno
from collections.abc import Callable

import pytest

from logstore.compat.rocketmq.wire.codes import RequestCode as Code
from logstore.compat.rocketmq.wire.codes import ResponseCode
from logstore.segments.rocketmq.tables.subscription_groups import SubscriptionGroupConfig
from logstore.segments.rocketmq.tables.topics import TopicConfig
from logstore.testing.manual_clock import ManualClock
from logstore.testing.simulated_host import SimulatedHost
from tests.compat.rocketmq.broker_peer import TOPIC, Peer, a_broker


def test_a_topic_that_the_disk_refuses_is_not_there() -> None:
    """It would be until the next start, and what was sent to it would be lost with it."""
    host = SimulatedHost(clock=ManualClock())
    broker = a_broker(host)
    host.fs.faults.fail_next("write", errno.ENOSPC, path="/store/config/topics.json*")
    config = TopicConfig("refused", 4, 4, 6)
    with pytest.raises(OSError, match="ENOSPC"):
        broker.topics.put(config)
    assert broker.topics.get("refused") is None
    broker.topics.put(config)
    assert broker.topics.get("refused") == config


@pytest.mark.parametrize("pool", ["true", "false"])
def test_what_was_committed_goes_with_its_topic(pool: str) -> None:
    """At once: a group would begin behind the first messages of a new topic of that name."""
    host = SimulatedHost(clock=ManualClock())
    settings = {"transientStorePoolEnable": pool, "flushDiskType": "ASYNC_FLUSH"}
    broker = a_broker(host, settings)
    peer = Peer(broker)
    peer.produce()
    broker.store.consumer_offsets.commit("g", TOPIC, 0, 1)
    broker.store.consumer_offsets.persist()
    assert peer.ask(Code.DELETE_TOPIC_IN_BROKER, {"topic": TOPIC}).code == ResponseCode.SUCCESS
    end = broker.store.commit_log.wrote_where
    broker.abandon()
    host.power_loss()
    store = a_broker(host, settings).store
    assert store.consumer_offsets.query("g", TOPIC, 0) == -1
    assert store.commit_log.max_physical_offset >= end, "the log first: a table speaks of it"


def test_a_topic_whose_removal_the_disk_refuses_is_still_there() -> None:
    """It would come back at the next start, without what groups have committed in it."""
    host = SimulatedHost(clock=ManualClock())
    broker = a_broker(host)
    config = TopicConfig("stays", 4, 4, 6)
    broker.topics.put(config)
    host.fs.faults.fail_next("write", errno.ENOSPC, path="/store/config/topics.json*")
    with pytest.raises(OSError, match="ENOSPC"):
        broker.topics.remove("stays")
    assert broker.topics.get("stays") == config
    assert broker.topics.remove("stays")
    assert broker.topics.get("stays") is None


def test_a_group_that_the_disk_refuses_is_as_it_was() -> None:
    """Neither a new one, nor a change, nor a removal holds until the next start only."""
    host = SimulatedHost(clock=ManualClock())
    broker = a_broker(host)
    groups, path = broker.groups, "/store/config/subscriptionGroup.json*"
    first = SubscriptionGroupConfig("g")
    changed = SubscriptionGroupConfig("g", retry_times_max=3)

    def refused(change: Callable[[], object]) -> None:
        host.fs.faults.fail_next("write", errno.ENOSPC, path=path)
        with pytest.raises(OSError, match="ENOSPC"):
            change()

    refused(lambda: groups.put(first))
    assert groups.table.get("g") is None
    groups.put(first)
    refused(lambda: groups.put(changed))
    refused(lambda: groups.remove("g"))
    assert groups.table.get("g") == first
    assert a_broker(host.fork()).groups.table.get("g") == first
    groups.put(changed)
    assert groups.table.get("g") == changed
    assert groups.remove("g")
    assert groups.table.get("g") is None
