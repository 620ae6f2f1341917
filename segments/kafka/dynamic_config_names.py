"""
The broker settings that Kafka 4.3 lets change while it runs, in the order in which it reads them.

What is wrong first is told. Source: ``DynamicBrokerConfig.ALL_DYNAMIC_CONFIGS``,
``AbstractKafkaConfig.CONFIG_DEF``.
"""

from __future__ import annotations

from collections.abc import Mapping

_NAMES = """
remote.log.index.file.cache.total.size.bytes
remote.log.manager.copier.thread.pool.size
remote.log.manager.expiration.thread.pool.size
remote.log.manager.follower.thread.pool.size
remote.log.reader.threads
log.local.retention.ms
log.local.retention.bytes
remote.log.manager.copy.max.bytes.per.second
remote.log.manager.fetch.max.bytes.per.second
remote.fetch.max.wait.ms
remote.list.offsets.request.timeout.ms
message.max.bytes
num.io.threads
background.threads
config.providers
compression.type
compression.gzip.level
compression.lz4.level
compression.zstd.level
listeners
listener.security.protocol.map
max.connections.per.ip
max.connections.per.ip.overrides
max.connections
max.connection.creation.rate
num.network.threads
num.replica.fetchers
unclean.leader.election.enable
follower.fetch.last.tiered.offset.enable
group.coordinator.cached.buffer.max.bytes
group.consumer.assignment.interval.ms
group.share.assignment.interval.ms
group.streams.assignment.interval.ms
log.cleaner.threads
log.cleaner.io.max.bytes.per.second
log.cleaner.dedupe.buffer.size
log.cleaner.io.buffer.size
log.cleaner.io.buffer.load.factor
log.cleaner.backoff.ms
log.cleaner.min.cleanable.ratio
log.cleaner.delete.retention.ms
log.cleaner.min.compaction.lag.ms
log.cleaner.max.compaction.lag.ms
cordoned.log.dirs
log.segment.bytes
log.roll.ms
log.roll.jitter.ms
log.retention.ms
log.retention.bytes
log.cleanup.policy
log.index.size.max.bytes
log.index.interval.bytes
log.flush.interval.messages
log.segment.delete.delay.ms
log.flush.interval.ms
log.preallocate
num.recovery.threads.per.data.dir
min.insync.replicas
log.message.timestamp.type
log.message.timestamp.before.max.ms
log.message.timestamp.after.max.ms
share.coordinator.cached.buffer.max.bytes
transaction.partition.verification.enable
producer.id.expiration.ms
metric.reporters
principal.builder.class
ssl.client.auth
ssl.protocol
ssl.provider
ssl.enabled.protocols
ssl.keystore.type
ssl.keystore.location
ssl.keystore.password
ssl.key.password
ssl.keystore.key
ssl.keystore.certificate.chain
ssl.truststore.type
ssl.truststore.location
ssl.truststore.password
ssl.truststore.certificates
ssl.keymanager.algorithm
ssl.trustmanager.algorithm
ssl.endpoint.identification.algorithm
ssl.secure.random.implementation
ssl.cipher.suites
ssl.engine.factory.class
sasl.mechanism.inter.broker.protocol
sasl.enabled.mechanisms
sasl.kerberos.principal.to.local.rules
sasl.jaas.config
sasl.kerberos.service.name
sasl.kerberos.kinit.cmd
sasl.kerberos.ticket.renew.window.factor
sasl.kerberos.ticket.renew.jitter
sasl.kerberos.min.time.before.relogin
sasl.login.refresh.window.factor
sasl.login.refresh.window.jitter
sasl.login.refresh.min.period.seconds
sasl.login.refresh.buffer.seconds
"""
#: place by name
DYNAMIC_CONFIG_NAMES: Mapping[str, int] = {name: place for place, name in enumerate(_NAMES.split())}
