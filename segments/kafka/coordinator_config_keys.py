"""
Settings of a broker's coordinators: consumer, share and streams groups, offsets, transactions.

Sources: ``GroupCoordinatorConfig``, ``ShareGroupConfig``, ``ShareCoordinatorConfig``,
``TransactionLogConfig``, ``TransactionStateManagerConfig`` (Kafka 4.3).
"""

from __future__ import annotations

from functools import partial

from logstore.segments.kafka.config_keys import INT_MAX, ConfigType, Effect, config_key

_key = config_key
_idle = partial(config_key, effect=Effect.ACCEPTED)

_BOOLEAN, _STRING, _INT = ConfigType.BOOLEAN, ConfigType.STRING, ConfigType.INT
_LONG, _SHORT, _LIST = ConfigType.LONG, ConfigType.SHORT, ConfigType.LIST

GROUP_KEYS = (
    _key("group.min.session.timeout.ms", _INT, 6000, "Shortest session timeout of a member."),
    _key("group.max.session.timeout.ms", _INT, 1800000, "Longest session timeout of a member."),
    _key("group.initial.rebalance.delay.ms", _INT, 3000,
         "How long a new group waits for more members."),
    _key("group.max.size", _INT, INT_MAX, "Members of a classic group.", 1),
    _key("group.coordinator.rebalance.protocols", _LIST, "classic,consumer,streams",
         "Kinds of groups that are served.",
         choices=("classic", "consumer", "streams", "share")),
    _idle("group.coordinator.threads", _INT, 4, "Threads of the group coordinator.", 1),
    _idle("group.coordinator.background.threads", _INT, 2, "Threads that compute assignments.", 1),
    _idle("group.coordinator.append.linger.ms", _INT, -1,
          "How long offsets are gathered into one append; -1 adapts.", -1),
    _idle("group.coordinator.cached.buffer.max.bytes", _INT, 1048588,
          "Size of the buffers that are used again.", 524288),
    _key("group.consumer.session.timeout.ms", _INT, 45000, "Session timeout of a member.", 1),
    _key("group.consumer.min.session.timeout.ms", _INT, 45000, "Shortest that a group may set.", 1),
    _key("group.consumer.max.session.timeout.ms", _INT, 60000, "Longest that a group may set.", 1),
    _key("group.consumer.heartbeat.interval.ms", _INT, 5000, "Time between heartbeats.", 1),
    _key("group.consumer.min.heartbeat.interval.ms", _INT, 5000,
         "Shortest that a group may set.", 1),
    _key("group.consumer.max.heartbeat.interval.ms", _INT, 15000,
         "Longest that a group may set.", 1),
    _key("group.consumer.max.size", _INT, INT_MAX, "Members of a consumer group.", 1),
    _key("group.consumer.assignors", _LIST, "uniform,range", "Ways to assign partitions."),
    _key("group.consumer.migration.policy", _STRING, "bidirectional",
         "Whether groups may change between the classic and the consumer protocol."),
    _idle("group.consumer.assignment.interval.ms", _INT, 1000, "Time between assignments.", 0),
    _idle("group.consumer.min.assignment.interval.ms", _INT, 0,
          "Shortest that a group may set.", 0),
    _idle("group.consumer.max.assignment.interval.ms", _INT, 15000,
          "Longest that a group may set.", 0),
    _key("group.consumer.regex.refresh.interval.ms", _INT, 600000,
         "How often regular expressions are matched again.", 10000),
)  # fmt: skip

OFFSET_KEYS = (
    _key("offset.metadata.max.bytes", _INT, 4096, "Length of the text beside an offset."),
    _key("offsets.retention.minutes", _INT, 10080,
         "How long the offsets of an empty group are kept.", 1),
    _key("offsets.retention.check.interval.ms", _LONG, 600000,
         "How often old offsets are looked for.", 1),
    _key("offsets.topic.num.partitions", _INT, 50, "Partitions of __consumer_offsets.", 1),
    _key("offsets.topic.replication.factor", _SHORT, 3, "Replicas of __consumer_offsets.", 1),
    _key("offsets.topic.segment.bytes", _INT, 104857600,
         "Size of the segments of __consumer_offsets.", 1),
    _key("offsets.topic.compression.codec", _INT, 0, "Codec of __consumer_offsets, by number."),
    _idle("offsets.commit.timeout.ms", _INT, 5000,
          "How long a commit waits for its replicas.", 1),
    _idle("offsets.load.buffer.size", _INT, 5242880, "Bytes read at a time when loading.", 1),
)  # fmt: skip

SHARE_KEYS = (
    _key("group.share.session.timeout.ms", _INT, 45000, "Session timeout of a member.", 1),
    _key("group.share.min.session.timeout.ms", _INT, 45000, "Shortest that a group may set.", 1),
    _key("group.share.max.session.timeout.ms", _INT, 60000, "Longest that a group may set.", 1),
    _key("group.share.heartbeat.interval.ms", _INT, 5000, "Time between heartbeats.", 1),
    _key("group.share.min.heartbeat.interval.ms", _INT, 5000, "Shortest that a group may set.", 1),
    _key("group.share.max.heartbeat.interval.ms", _INT, 15000, "Longest that a group may set.", 1),
    _key("group.share.max.size", _INT, 200, "Members of a share group.", 1, 1000),
    _idle("group.share.max.groups", _SHORT, 10, "Share groups at a time; until 4.0.", 1, 100),
    _key("group.share.max.share.sessions", _INT, 2000, "Share sessions that are kept.", 1),
    _key("group.share.delivery.count.limit", _INT, 5, "How often a record is delivered.", 2, 10),
    _key("group.share.record.lock.duration.ms", _INT, 30000,
         "How long a delivered record is locked.", 1000, 3600000),
    _key("group.share.min.record.lock.duration.ms", _INT, 15000,
         "Shortest that a group may set.", 1000, 30000),
    _key("group.share.max.record.lock.duration.ms", _INT, 60000,
         "Longest that a group may set.", 30000, 3600000),
    _key("group.share.partition.max.record.locks", _INT, 2000,
         "Locked records of a partition.", 100, 10000),
    _idle("group.share.assignors", _LIST, "simple", "Ways to assign partitions."),
    _idle("share.coordinator.state.topic.num.partitions", _INT, 50,
          "Partitions of __share_group_state.", 1),
    _idle("share.coordinator.state.topic.replication.factor", _SHORT, 3,
          "Replicas of __share_group_state.", 1),
    _idle("share.coordinator.state.topic.min.isr", _SHORT, 2,
          "In-sync replicas of __share_group_state.", 1),
    _idle("share.coordinator.state.topic.segment.bytes", _INT, 104857600,
          "Size of the segments of __share_group_state.", 1),
    _idle("share.coordinator.state.topic.compression.codec", _INT, 0,
          "Codec of __share_group_state, by number."),
    _idle("share.coordinator.threads", _INT, 1, "Threads of the share coordinator.", 1),
    _idle("share.coordinator.write.timeout.ms", _INT, 5000,
          "How long a write waits for its replicas.", 1),
    _idle("share.fetch.purgatory.purge.interval.requests", _INT, 1000,
          "How often done share fetches are swept from the waiting ones."),
)  # fmt: skip

TRANSACTION_KEYS = (
    _key("transaction.max.timeout.ms", _INT, 900000, "Longest timeout of a transaction.", 1),
    _key("transactional.id.expiration.ms", _INT, 604800000,
         "How long the id of a silent producer is kept.", 1),
    _key("transaction.abort.timed.out.transaction.cleanup.interval.ms", _INT, 10000,
         "How often transactions past their timeout are aborted.", 1),
    _key("transaction.remove.expired.transaction.cleanup.interval.ms", _INT, 3600000,
         "How often old transactional ids are removed.", 1),
    _key("transaction.partition.verification.enable", _BOOLEAN, "true",
         "Whether a partition asks the coordinator before it takes transactional records."),
    _idle("transaction.two.phase.commit.enable", _BOOLEAN, "false",
          "Whether outside coordinators may hold transactions open."),
    _key("producer.id.expiration.ms", _INT, 86400000,
         "How long a partition remembers a silent producer.", 1),
    _key("producer.id.expiration.check.interval.ms", _INT, 600000,
         "How often silent producers are looked for.", 1),
    _key("transaction.state.log.num.partitions", _INT, 50, "Partitions of __transaction_state.", 1),
    _key("transaction.state.log.replication.factor", _SHORT, 3,
         "Replicas of __transaction_state.", 1),
    _key("transaction.state.log.min.isr", _INT, 2, "In-sync replicas of __transaction_state.", 1),
    _key("transaction.state.log.segment.bytes", _INT, 104857600,
         "Size of the segments of __transaction_state.", 1),
    _idle("transaction.state.log.load.buffer.size", _INT, 5242880,
          "Bytes read at a time when loading.", 1),
)  # fmt: skip
