"""
Settings of a broker that have no effect here, and that a broker lists all the same (Kafka 4.3).

They come after :data:`BROKER_CONFIG_KEYS`: one line each of name, type, default (``-`` for Kafka's
null, ``""`` for an empty text) and, where there are such, the least value and the largest. With
those of TLS and SASL, most of which do have an effect, they make up the 340 that DescribeConfigs
tells of a node. Sources: ``AbstractKafkaConfig``, ``RemoteLogManagerConfig``, ``QuorumConfig``,
``MetadataLogConfig``, ``BrokerSecurityConfigs``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from logstore.segments.kafka.broker_config import ACCEPTED_FAMILIES
from logstore.segments.kafka.config_keys import ConfigKey, ConfigType, Effect, config_key
from logstore.segments.kafka.security_config_keys import SECURITY_CONFIG_KEYS

#: how the table begins the names of classes
_PACKAGES = {
    "COMMON": "org.apache.kafka.common",
    "REMOTE": "org.apache.kafka.server.log.remote.metadata.storage",
}
_TABLE = """
add.partitions.to.txn.retry.backoff.max.ms int 100 0
add.partitions.to.txn.retry.backoff.ms int 20 1
client.quota.callback.class class -
config.providers list ""
controller.quorum.append.linger.ms int 25 0
controller.quorum.auto.join.enable boolean false
controller.quorum.election.backoff.max.ms int 1000 0
controller.quorum.election.timeout.ms int 1000 0
controller.quorum.fetch.max.bytes int 1048576 1
controller.quorum.fetch.snapshot.max.bytes int 1048576 1
controller.quorum.fetch.timeout.ms int 2000 0
controller.quorum.request.timeout.ms int 2000 0
controller.quorum.retry.backoff.ms int 20 0
controller.socket.timeout.ms int 30000
cordoned.log.dirs list ""
early.start.listeners list -
follower.fetch.last.tiered.offset.enable boolean false
initial.broker.registration.timeout.ms int 60000
kafka.metrics.polling.interval.secs int 10 1
kafka.metrics.reporters list ""
metadata.log.max.record.bytes.between.snapshots long 20971520 1
metadata.log.max.snapshot.interval.ms long 3600000 0
metadata.log.segment.bytes int 1073741824 8388608
metadata.log.segment.ms long 604800000
metadata.max.idle.interval.ms int 500 0
metadata.max.retention.bytes long 104857600
metadata.max.retention.ms long 604800000
metrics.num.samples int 2 1
metrics.recording.level string INFO
metrics.sample.window.ms long 30000 1
num.replica.alter.log.dirs.threads int -
principal.builder.class class COMMON.security.authenticator.DefaultKafkaPrincipalBuilder
remote.fetch.max.wait.ms int 500 1
remote.list.offsets.request.timeout.ms long 30000 1
remote.log.index.file.cache.total.size.bytes long 1073741824 1
remote.log.manager.copier.thread.pool.size int 10 1
remote.log.manager.copy.max.bytes.per.second long 9223372036854775807 1
remote.log.manager.copy.quota.window.num int 11 1
remote.log.manager.copy.quota.window.size.seconds int 1 1
remote.log.manager.expiration.thread.pool.size int 10 1
remote.log.manager.fetch.max.bytes.per.second long 9223372036854775807 1
remote.log.manager.fetch.quota.window.num int 11 1
remote.log.manager.fetch.quota.window.size.seconds int 1 1
remote.log.manager.follower.thread.pool.size int 2 1
remote.log.manager.task.interval.ms long 30000 1
remote.log.manager.thread.pool.size int 2 1
remote.log.metadata.custom.metadata.max.bytes int 128 0
remote.log.metadata.manager.class.name string REMOTE.TopicBasedRemoteLogMetadataManager
remote.log.metadata.manager.class.path string -
remote.log.metadata.manager.impl.prefix string rlmm.config.
remote.log.metadata.manager.listener.name string -
remote.log.reader.max.pending.tasks int 100 1
remote.log.reader.threads int 10 1
remote.log.storage.manager.class.name string -
remote.log.storage.manager.class.path string -
remote.log.storage.manager.impl.prefix string rsm.config.
remote.log.storage.system.enable boolean false
sasl.client.callback.handler.class class -
sasl.kerberos.kinit.cmd string /usr/bin/kinit
sasl.kerberos.min.time.before.relogin long 60000
sasl.kerberos.principal.to.local.rules list DEFAULT
sasl.kerberos.service.name string -
sasl.kerberos.ticket.renew.jitter double 0.05
sasl.kerberos.ticket.renew.window.factor double 0.8
sasl.login.callback.handler.class class -
sasl.login.class class -
sasl.login.connect.timeout.ms int -
sasl.login.read.timeout.ms int -
sasl.login.refresh.buffer.seconds short 300
sasl.login.refresh.min.period.seconds short 60
sasl.login.refresh.window.factor double 0.8
sasl.login.refresh.window.jitter double 0.05
sasl.login.retry.backoff.max.ms long 10000
sasl.login.retry.backoff.ms long 100
sasl.mechanism.controller.protocol string GSSAPI
sasl.mechanism.inter.broker.protocol string GSSAPI
sasl.oauthbearer.assertion.algorithm string RS256
sasl.oauthbearer.assertion.claim.aud string -
sasl.oauthbearer.assertion.claim.exp.seconds int 300 0 86400
sasl.oauthbearer.assertion.claim.iss string -
sasl.oauthbearer.assertion.claim.jti.include boolean false
sasl.oauthbearer.assertion.claim.nbf.seconds int 60 0 3600
sasl.oauthbearer.assertion.claim.sub string -
sasl.oauthbearer.assertion.file string -
sasl.oauthbearer.assertion.private.key.file string -
sasl.oauthbearer.assertion.private.key.passphrase password -
sasl.oauthbearer.assertion.template.file string -
sasl.oauthbearer.client.credentials.client.id string -
sasl.oauthbearer.client.credentials.client.secret password -
sasl.oauthbearer.clock.skew.seconds int 30
sasl.oauthbearer.expected.audience list ""
sasl.oauthbearer.expected.issuer string -
sasl.oauthbearer.jwks.endpoint.refresh.ms long 3600000
sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms long 10000
sasl.oauthbearer.jwks.endpoint.retry.backoff.ms long 100
sasl.oauthbearer.jwks.endpoint.url string -
sasl.oauthbearer.jwt.retriever.class class COMMON.security.oauthbearer.DefaultJwtRetriever
sasl.oauthbearer.jwt.validator.class class COMMON.security.oauthbearer.DefaultJwtValidator
sasl.oauthbearer.scope string -
sasl.oauthbearer.scope.claim.name string scope
sasl.oauthbearer.sub.claim.name string sub
sasl.oauthbearer.token.endpoint.url string -
security.providers string -
share.coordinator.append.linger.ms int -1 -1
share.coordinator.cached.buffer.max.bytes int 1048588 524288
share.coordinator.load.buffer.size int 5242880 1
socket.connection.setup.timeout.max.ms long 30000
socket.connection.setup.timeout.ms long 10000
ssl.allow.dn.changes boolean false
ssl.allow.san.changes boolean false
ssl.endpoint.identification.algorithm string https
ssl.engine.factory.class class -
ssl.keymanager.algorithm string SunX509
ssl.protocol string TLSv1.3
ssl.provider string -
ssl.secure.random.implementation string -
ssl.trustmanager.algorithm string PKIX
"""


def _with_package(text: str) -> str:
    for short, package in _PACKAGES.items():
        if text.startswith(f"{short}."):
            return package + text.removeprefix(short)
    return text


def _keys() -> Iterator[ConfigKey]:
    """Yield what the table says; what a setting is about is told of its whole family."""
    for line in _TABLE.split("\n")[1:-1]:
        name, kind, text, *limits = line.split(" ")
        family = next(start for start in ACCEPTED_FAMILIES if name.startswith(start))
        default = {"-": None, '""': ""}.get(text, _with_package(text))
        about = f"Without effect here: {ACCEPTED_FAMILIES[family]}."
        yield config_key(
            name,
            ConfigType[kind.upper()],
            default,
            about,
            *map(int, limits),
            effect=Effect.ACCEPTED,
        )


#: Every setting that is listed without being in the tables of what a broker is, by name.
LISTED_CONFIG_KEYS: Mapping[str, ConfigKey] = {
    **SECURITY_CONFIG_KEYS,
    **{key.name: key for key in _keys()},
}
