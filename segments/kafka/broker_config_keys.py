"""
Settings of a broker: the node, its log directories, network, replication and quotas (Kafka 4.3).

Groups and transactions are in :mod:`logstore.segments.kafka.coordinator_config_keys`. Sources:
``ServerConfigs``, ``ServerLogConfigs``, ``CleanerConfig``, ``SocketServerConfigs``,
``ReplicationConfigs``, ``QuotaConfig``, ``KRaftConfigs``.
"""

from __future__ import annotations

from functools import partial

from logstore.segments.kafka.config_keys import (
    INT_MAX,
    LONG_MAX,
    ConfigType,
    Effect,
    config_key,
)
from logstore.segments.kafka.topic_config_keys import SEGMENT_BYTES_MIN

_key = config_key
_idle = partial(config_key, effect=Effect.ACCEPTED)

_BOOLEAN, _STRING, _INT = ConfigType.BOOLEAN, ConfigType.STRING, ConfigType.INT
_LONG, _DOUBLE, _LIST = ConfigType.LONG, ConfigType.DOUBLE, ConfigType.LIST
_CLASS = ConfigType.CLASS

NODE_KEYS = (
    _key("node.id", _INT, 1, "Number of this node.", 0),
    _key("broker.id", _INT, -1, "The same, by its older name."),
    _key("broker.rack", _STRING, None, "Rack of this broker, told to clients."),
    _idle("process.roles", _LIST, "broker,controller", "What this process is.",
          choices=("broker", "controller")),
    _idle("controller.listener.names", _LIST, "CONTROLLER", "Listeners of the controller."),
    _idle("controller.quorum.voters", _LIST, "", "Who votes in the metadata quorum."),
    _idle("controller.quorum.bootstrap.servers", _LIST, "", "Where to find the metadata quorum."),
    _idle("metadata.log.dir", _STRING, None, "Directory of the metadata log."),
    _key("auto.create.topics.enable", _BOOLEAN, "true",
         "Whether a topic that is asked for comes into being."),
    _key("delete.topic.enable", _BOOLEAN, "true", "Whether topics can be deleted."),
    _key("num.partitions", _INT, 1, "Partitions of a topic that does not say how many.", 1),
    _key("default.replication.factor", _INT, 1, "Replicas of a topic that does not say."),
    _idle("background.threads", _INT, 10, "Threads for housekeeping.", 1),
    _idle("broker.heartbeat.interval.ms", _INT, 2000, "Time between a broker's signs of life."),
    _idle("broker.session.timeout.ms", _INT, 9000, "Silence after which a broker is fenced."),
    _idle("controlled.shutdown.enable", _BOOLEAN, "true",
          "Whether leadership moves away before a stop."),
    _key("authorizer.class.name", _STRING, "", "Class that decides who may do what."),
    _idle("create.topic.policy.class.name", _CLASS, None, "Class that vetoes new topics."),
    _idle("alter.config.policy.class.name", _CLASS, None, "Class that vetoes changed settings."),
    _idle("metric.reporters", _LIST, "org.apache.kafka.common.metrics.JmxReporter",
          "Classes that receive metrics."),
)  # fmt: skip

LOG_KEYS = (
    _key("log.dir", _LIST, "/tmp/kafka-logs", "Log directory if log.dirs is not given."),  # noqa: S108
    _key("log.dirs", _LIST, None, "Log directories."),
    _key("log.cleanup.policy", _LIST, "delete", "Default of cleanup.policy.",
         choices=("compact", "delete")),
    _key("log.segment.bytes", _INT, 1073741824, "Default of segment.bytes.", SEGMENT_BYTES_MIN),
    _key("log.roll.ms", _LONG, None, "Default of segment.ms."),
    _key("log.roll.hours", _INT, 168, "The same in hours, if log.roll.ms is not given.", 1),
    _key("log.roll.jitter.ms", _LONG, None, "Default of segment.jitter.ms."),
    _key("log.roll.jitter.hours", _INT, 0, "The same in hours.", 0),
    _key("log.retention.ms", _LONG, None, "Default of retention.ms."),
    _key("log.retention.minutes", _INT, None, "The same in minutes."),
    _key("log.retention.hours", _INT, 168, "The same in hours, if neither is given."),
    _key("log.retention.bytes", _LONG, -1, "Default of retention.bytes."),
    _key("log.retention.check.interval.ms", _LONG, 300000,
         "How often old segments are looked for.", 1),
    _key("log.initial.task.delay.ms", _LONG, 30000, "When the first such look is taken.", 0),
    _key("log.index.size.max.bytes", _INT, 10485760, "Default of segment.index.bytes.", 4),
    _key("log.index.interval.bytes", _INT, 4096, "Default of index.interval.bytes.", 0),
    _key("log.flush.interval.messages", _LONG, LONG_MAX, "Default of flush.messages.", 1),
    _key("log.flush.interval.ms", _LONG, None, "Default of flush.ms."),
    _key("log.flush.scheduler.interval.ms", _LONG, LONG_MAX,
         "How often logs to flush are looked for; default of log.flush.interval.ms."),
    _key("log.flush.offset.checkpoint.interval.ms", _INT, 60000,
         "How often recovery points are written.", 0),
    _key("log.flush.start.offset.checkpoint.interval.ms", _INT, 60000,
         "How often log start offsets are written.", 0),
    _key("log.segment.delete.delay.ms", _LONG, 60000, "Default of file.delete.delay.ms.", 0),
    _key("log.preallocate", _BOOLEAN, "false", "Default of preallocate."),
    _key("log.message.timestamp.type", _STRING, "CreateTime", "Default of message.timestamp.type.",
         choices=("CreateTime", "LogAppendTime")),
    _key("log.message.timestamp.before.max.ms", _LONG, LONG_MAX,
         "Default of message.timestamp.before.max.ms.", 0),
    _key("log.message.timestamp.after.max.ms", _LONG, 3600000,
         "Default of message.timestamp.after.max.ms.", 0),
    _key("message.max.bytes", _INT, 1048588, "Default of max.message.bytes.", 0),
    _key("compression.type", _STRING, "producer", "Default of compression.type of topics.",
         choices=("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")),
    _key("compression.gzip.level", _INT, -1, "Default of the topics' gzip level.", -1, 9,
         excluded=(0,)),
    _key("compression.lz4.level", _INT, 9, "Default of the topics' lz4 level.", 1, 17),
    _key("compression.zstd.level", _INT, 3, "Default of the topics' zstd level.", -131072, 22),
    _key("min.insync.replicas", _INT, 1, "Default of min.insync.replicas of topics.", 1),
    _key("unclean.leader.election.enable", _BOOLEAN, "false",
         "Default of unclean.leader.election.enable of topics."),
    _idle("log.local.retention.ms", _LONG, -2, "Default of local.retention.ms.", -2),
    _idle("log.local.retention.bytes", _LONG, -2, "Default of local.retention.bytes.", -2),
    _idle("log.dir.failure.timeout.ms", _LONG, 30000,
          "How long to report a broken log directory before giving up.", 1),
    _key("num.recovery.threads.per.data.dir", _INT, 2,
         "How many logs of a directory are recovered at a time.", 1),
    _key("log.cleaner.enable", _BOOLEAN, "true", "Whether compaction runs."),
    _idle("log.cleaner.threads", _INT, 1, "Threads that compact.", 0),
    _key("log.cleaner.dedupe.buffer.size", _LONG, 134217728,
         "Memory for the keys of the logs that are being compacted."),
    _idle("log.cleaner.io.buffer.size", _INT, 524288, "Memory for reading and writing them.", 0),
    _key("log.cleaner.io.buffer.load.factor", _DOUBLE, 0.9,
         "How full the memory for keys may become."),
    _idle("log.cleaner.io.max.bytes.per.second", _DOUBLE, "1.7976931348623157E308",
          "Bytes that compaction reads and writes at most."),
    _key("log.cleaner.backoff.ms", _LONG, 15000, "Pause when there is nothing to compact.", 0),
    _key("log.cleaner.min.cleanable.ratio", _DOUBLE, 0.5,
         "Default of min.cleanable.dirty.ratio.", 0, 1),
    _key("log.cleaner.delete.retention.ms", _LONG, 86400000, "Default of delete.retention.ms.", 0),
    _key("log.cleaner.min.compaction.lag.ms", _LONG, 0, "Default of min.compaction.lag.ms.", 0),
    _key("log.cleaner.max.compaction.lag.ms", _LONG, LONG_MAX,
         "Default of max.compaction.lag.ms.", 1),
)  # fmt: skip

NETWORK_KEYS = (
    _key("listeners", _LIST, "PLAINTEXT://:9092", "Addresses to listen at."),
    _key("advertised.listeners", _LIST, None, "Addresses that clients are told."),
    _key("listener.security.protocol.map", _STRING,
         "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT",
         "Security protocol of each listener."),
    _idle("inter.broker.listener.name", _STRING, None, "Listener that other brokers use."),
    _idle("security.inter.broker.protocol", _STRING, "PLAINTEXT", "Protocol between brokers.",
          choices=("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")),
    _idle("num.network.threads", _INT, 3, "Threads that read and write sockets.", 1),
    _idle("num.io.threads", _INT, 8, "Threads that serve requests.", 1),
    _idle("queued.max.requests", _INT, 500, "Requests that may wait.", 1),
    _idle("queued.max.request.bytes", _LONG, -1, "Bytes of requests that may wait."),
    _key("socket.request.max.bytes", _INT, 104857600, "Size of the largest request.", 1),
    _idle("socket.send.buffer.bytes", _INT, 102400, "Send buffer of sockets; -1 for the system's."),
    _idle("socket.receive.buffer.bytes", _INT, 102400,
          "Receive buffer of sockets; -1 for the system's."),
    _idle("socket.listen.backlog.size", _INT, 50, "Connections that may wait to be accepted.", 1),
    _key("connections.max.idle.ms", _LONG, 600000, "Silence after which a connection is closed."),
    _key("connection.failed.authentication.delay.ms", _INT, 100,
         "Pause before a connection is closed that failed to authenticate.", 0),
    _key("max.connections", _INT, INT_MAX, "Connections at a time.", 0),
    _key("max.connections.per.ip", _INT, INT_MAX, "Connections from one address.", 0),
    _key("max.connections.per.ip.overrides", _STRING, "", "The same for certain addresses."),
    _key("max.connection.creation.rate", _INT, INT_MAX, "New connections a second.", 0),
    _idle("request.timeout.ms", _INT, 30000, "How long to wait for another broker's response."),
    _key("fetch.max.bytes", _INT, 57671680, "Bytes that one fetch is answered with at most.", 1024),
    _key("max.incremental.fetch.session.cache.slots", _INT, 1000,
         "Fetch sessions that are kept.", 0),
    _key("max.request.partition.size.limit", _INT, 2000,
         "Partitions in one answer to DescribeTopicPartitions.", 1),
    _idle("fetch.purgatory.purge.interval.requests", _INT, 1000,
          "How often done fetches are swept from the waiting ones."),
    _idle("producer.purgatory.purge.interval.requests", _INT, 1000,
          "How often done produce requests are swept."),
    _idle("delete.records.purgatory.purge.interval.requests", _INT, 1,
          "How often done DeleteRecords are swept."),
    _idle("telemetry.max.bytes", _INT, 1048576, "Size of the metrics that a client may push.", 1),
)  # fmt: skip

REPLICATION_KEYS = (
    _key("replica.high.watermark.checkpoint.interval.ms", _LONG, 5000,
         "How often high watermarks are written."),
    _idle("replica.lag.time.max.ms", _LONG, 30000,
          "How far in time a replica may be behind and count as in sync."),
    _idle("replica.fetch.max.bytes", _INT, 1048576, "Bytes that a replica fetches a partition.", 0),
    _idle("replica.fetch.response.max.bytes", _INT, 10485760, "Bytes that it fetches at all.", 0),
    _idle("replica.fetch.wait.max.ms", _INT, 500, "How long its fetch may wait."),
    _idle("replica.fetch.min.bytes", _INT, 1, "For how many bytes it waits."),
    _idle("replica.fetch.backoff.ms", _INT, 1000, "Its pause after an error.", 0),
    _idle("replica.socket.timeout.ms", _INT, 30000, "How long its socket waits."),
    _idle("replica.socket.receive.buffer.bytes", _INT, 65536, "Receive buffer of its socket."),
    _key("replica.selector.class", _STRING, None, "Class that picks the replica to read from."),
    _idle("num.replica.fetchers", _INT, 1, "Threads that fetch from one other broker.", 1),
    _key("auto.leader.rebalance.enable", _BOOLEAN, "true",
          "Whether preferred leaders get their partitions back."),
    _key("leader.imbalance.check.interval.seconds", _LONG, 300, "How often that is looked at.", 1),
    _idle("leader.imbalance.per.broker.percentage", _INT, 10,
          "Imbalance from which it is done; until 4.0."),
)  # fmt: skip

TOKEN_KEYS = (
    _key("delegation.token.secret.key", ConfigType.PASSWORD, None,
         "What the secrets of delegation tokens are made with; there are none without it."),
    _key("delegation.token.max.lifetime.ms", _LONG, 604800000, "How long a token may last.", 1),
    _key("delegation.token.expiry.time.ms", _LONG, 86400000,
         "How long it lasts without being renewed.", 1),
    _key("delegation.token.expiry.check.interval.ms", _LONG, 3600000,
         "How often tokens that have ended are removed.", 1),
)  # fmt: skip

QUOTA_KEYS = tuple(
    key
    for family, whose, declare in (
        ("quota", "clients", _key),
        ("replication.quota", "replication", _idle),
        ("alter.log.dirs.replication.quota", "moves between log directories", _idle),
        ("controller.quota", "changes of topics", _key),
    )
    for key in (
        declare(f"{family}.window.num", _INT, 11, f"Samples kept for quotas of {whose}.", 1),
        declare(f"{family}.window.size.seconds", _INT, 1, "Seconds that one sample covers.", 1),
    )
)
