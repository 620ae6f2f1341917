"""In which order settings are shown: as a real broker shows them."""

from __future__ import annotations

import pytest

from tests.compat.kafka.config_requests import BROKER, GROUP, METRICS, SET, TOPIC, alter, describe
from tests.compat.kafka.conversation import Conversation

#: as a real broker of release 4.3.1 told them
OF_TOPIC = """
    compression.type remote.log.delete.on.disable leader.replication.throttled.replicas
    remote.storage.enable min.insync.replicas segment.jitter.ms remote.log.copy.disable
    local.retention.ms cleanup.policy flush.ms follower.replication.throttled.replicas
    compression.lz4.level segment.bytes retention.ms compression.gzip.level flush.messages
    compression.zstd.level max.compaction.lag.ms file.delete.delay.ms max.message.bytes
    min.compaction.lag.ms message.timestamp.type local.retention.bytes preallocate
    index.interval.bytes min.cleanable.dirty.ratio unclean.leader.election.enable
    retention.bytes delete.retention.ms message.timestamp.after.max.ms
    message.timestamp.before.max.ms segment.ms segment.index.bytes
"""
OF_GROUP = """
    consumer.session.timeout.ms consumer.assignment.interval.ms share.auto.offset.reset
    share.renew.acknowledge.enable streams.initial.rebalance.delay.ms share.session.timeout.ms
    streams.assignment.interval.ms share.heartbeat.interval.ms streams.heartbeat.interval.ms
    share.delivery.count.limit consumer.heartbeat.interval.ms share.record.lock.duration.ms
    share.assignment.interval.ms share.isolation.level streams.session.timeout.ms
    share.partition.max.record.locks streams.num.standby.replicas
"""
#: the first and the last ones
OF_BROKER = (
    """
    log.cleaner.min.compaction.lag.ms offsets.topic.num.partitions
    sasl.oauthbearer.jwks.endpoint.refresh.ms remote.log.metadata.manager.listener.name
    log.flush.interval.messages controller.socket.timeout.ms log.flush.interval.ms
    principal.builder.class controller.quorum.request.timeout.ms min.insync.replicas
    sasl.oauthbearer.expected.audience remote.log.manager.thread.pool.size
    group.consumer.max.session.timeout.ms num.recovery.threads.per.data.dir ssl.keystore.type
    sasl.oauthbearer.assertion.private.key.file share.coordinator.state.topic.replication.factor
    controller.quorum.bootstrap.servers sasl.mechanism.inter.broker.protocol
    metadata.log.segment.bytes fetch.purgatory.purge.interval.requests
    group.streams.num.standby.replicas group.share.record.lock.duration.ms
    ssl.endpoint.identification.algorithm
    """,
    """
    group.coordinator.append.linger.ms ssl.keystore.location
    remote.list.offsets.request.timeout.ms num.replica.alter.log.dirs.threads
    sasl.enabled.mechanisms sasl.oauthbearer.jwt.retriever.class
    group.share.max.session.timeout.ms group.min.session.timeout.ms metadata.log.dir
    log.cleaner.io.buffer.load.factor transaction.max.timeout.ms
    group.streams.heartbeat.interval.ms process.roles group.max.size broker.id
    max.request.partition.size.limit offsets.topic.compression.codec
    sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms delegation.token.max.lifetime.ms
    replication.quota.window.num group.streams.min.heartbeat.interval.ms advertised.listeners
    group.coordinator.cached.buffer.max.bytes queued.max.request.bytes
    """,
)
#: what these cannot be 1 of
VALUES = {
    "compression.type": "producer",
    "log.cleanup.policy": "delete",
    "log.preallocate": "false",
    "log.segment.bytes": "10000000",
    "unclean.leader.election.enable": "false",
    "background.threads": "10",
    "num.io.threads": "8",
}
OF_CLUSTER = """
    compression.type log.retention.ms message.max.bytes num.io.threads log.flush.interval.ms
    min.insync.replicas log.roll.ms log.cleaner.threads unclean.leader.election.enable
    log.index.interval.bytes log.segment.bytes log.cleanup.policy log.preallocate
    background.threads
"""


def order(conversation: Conversation, kind: int, name: str) -> list[str]:
    """Return the names of a resource's settings, as they are shown."""
    return list(describe(conversation, kind, name)["configs"])


@pytest.mark.parametrize("own", [{}, {"retention.ms": "10", "cleanup.policy": "compact"}])
def test_of_a_topic(own: dict[str, str]) -> None:
    """Its own settings stand among the others."""
    conversation = Conversation()
    conversation.create("a")
    alter(conversation, TOPIC, "a", *((name, SET, text) for name, text in own.items()))
    assert order(conversation, TOPIC, "a") == OF_TOPIC.split()


def test_of_a_group_and_a_subscription() -> None:
    """Whether they are there or not."""
    conversation = Conversation()
    assert order(conversation, GROUP, "g") == OF_GROUP.split()
    assert order(conversation, METRICS, "m") == ["interval.ms", "match", "metrics"]


def test_of_a_broker() -> None:
    """What Kafka does not know is shown first."""
    conversation = Conversation()
    first, last = (names.split() for names in OF_BROKER)
    shown = order(conversation, BROKER, "1")
    assert shown[: len(first)] == first
    assert shown[-len(last) :] == last
    alter(conversation, BROKER, "1", ("my.own", SET, "5"), ("log.cleaner.threads", SET, "1"))
    assert order(conversation, BROKER, "1") == ["my.own", *shown]


def test_of_the_cluster() -> None:
    """What was changed for every broker, however it was."""
    conversation = Conversation()
    names = OF_CLUSTER.split()
    changes = [(name, SET, VALUES.get(name, "1")) for name in sorted(names)]
    assert alter(conversation, BROKER, "", *changes) == 0
    assert order(conversation, BROKER, "") == names
