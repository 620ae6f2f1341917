"""
The order in which Kafka shows the settings of something: that of a Java map.

They are walked bucket by bucket, and within a bucket as they were put in, which is the order in
which Kafka defines them. What has no definition is shown first.

Source: ``ConfigHelperUtils.createResponseConfig``, ``AbstractConfig.nonInternalValues``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from logstore.compat.kafka.configs.entries import ConfigEntry

#: of those that share a bucket these are defined before others, though their names come later
_DEFINED_EARLY = (
    "flush.messages",
    "max.compaction.lag.ms",
    "retention.bytes",
    "segment.bytes",
    "retention.ms",
    "broker.id",
    "compression.lz4.level",
    "early.start.listeners",
    "group.consumer.max.session.timeout.ms",
    "group.consumer.max.size",
    "group.share.max.assignment.interval.ms",
    "group.share.max.size",
    "log.cleaner.enable",
    "log.cleaner.min.cleanable.ratio",
    "log.message.timestamp.before.max.ms",
    "log.roll.hours",
    "max.connections",
    "max.request.partition.size.limit",
    "metadata.log.dir",
    "metadata.log.max.snapshot.interval.ms",
    "metadata.log.segment.bytes",
    "fetch.purgatory.purge.interval.requests",
    "group.streams.num.standby.replicas",
    "num.io.threads",
    "num.recovery.threads.per.data.dir",
    "offsets.topic.compression.codec",
    "process.roles",
    "producer.purgatory.purge.interval.requests",
    "remote.fetch.max.wait.ms",
    "remote.log.manager.copy.quota.window.size.seconds",
    "remote.log.manager.expiration.thread.pool.size",
    "remote.log.manager.fetch.max.bytes.per.second",
    "remote.log.metadata.manager.class.path",
    "remote.log.metadata.manager.impl.prefix",
    "remote.log.metadata.manager.listener.name",
    "remote.log.storage.manager.class.name",
    "replica.fetch.backoff.ms",
    "replica.fetch.min.bytes",
    "replica.fetch.response.max.bytes",
    "group.max.session.timeout.ms",
    "sasl.mechanism.controller.protocol",
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
    "sasl.oauthbearer.scope",
    "share.coordinator.threads",
    "share.fetch.purgatory.purge.interval.requests",
    "socket.connection.setup.timeout.ms",
    "socket.receive.buffer.bytes",
    "ssl.keymanager.algorithm",
    "ssl.keystore.key",
    "ssl.keystore.type",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms",
    "transaction.partition.verification.enable",
    "transaction.state.log.min.isr",
)
_RANKS = {name: rank for rank, name in enumerate(_DEFINED_EARLY)}


def in_shown_order(entries: Iterable[ConfigEntry]) -> list[ConfigEntry]:
    """Return settings that Kafka defines as it shows them."""
    from logstore.compat.kafka.groups.modern.hash_order import members_in_order  # rarely needed

    by_name = {entry.name: entry for entry in entries}
    names = sorted(by_name, key=lambda name: (_RANKS.get(name, len(_RANKS)), name))
    return [by_name[name] for name in members_in_order(names)]


def in_given_order(entries: Iterable[ConfigEntry], given: Iterable[str]) -> list[ConfigEntry]:
    """Return settings that Kafka does not define as it shows them, in a map of all `given` ones."""
    from logstore.compat.kafka.groups.modern.hash_order import members_in_order  # rarely needed

    by_name = {entry.name: entry for entry in entries}
    return [by_name[name] for name in members_in_order(sorted(given)) if name in by_name]


def in_cluster_order(entries: Iterable[ConfigEntry]) -> list[ConfigEntry]:
    """Return what was changed for every broker as Kafka shows it, which has it in Scala's map."""
    from logstore.compat.kafka.groups.modern.hash_order import members_in_scala_order

    by_name = {entry.name: entry for entry in entries}
    return [by_name[name] for name in members_in_scala_order(by_name)]
