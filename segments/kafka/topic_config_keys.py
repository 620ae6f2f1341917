"""
All settings of a topic (Kafka 4.3), and the broker settings that give their defaults.

Source: ``LogConfig``, ``TopicConfig``, ``ServerTopicConfigSynonyms``.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import NamedTuple

from logstore.segments.kafka.config_keys import (
    LONG_MAX,
    ConfigKey,
    ConfigType,
    Effect,
    Scope,
    config_key,
)

SEGMENT_BYTES_MIN = 1024 * 1024
_HOUR_MS = 60 * 60 * 1000
_MINUTE_MS = 60 * 1000


_key = partial(config_key, scope=Scope.TOPIC)
_INT, _LONG, _BOOLEAN = ConfigType.INT, ConfigType.LONG, ConfigType.BOOLEAN
_STRING, _LIST, _ACCEPTED = ConfigType.STRING, ConfigType.LIST, Effect.ACCEPTED

_KEYS = (
    _key("segment.bytes", _INT, 1073741824, "Size of a segment's data file.", SEGMENT_BYTES_MIN),
    _key("segment.ms", _LONG, 604800000, "Time that one segment's records may span.", 1),
    _key("segment.jitter.ms", _LONG, 0, "Random time by which segment.ms is shortened.", 0),
    _key("segment.index.bytes", _INT, 10485760, "Largest size of an index file.", 4),
    _key("flush.messages", _LONG, LONG_MAX, "Sync to disk after so many records.", 1),
    _key("flush.ms", _LONG, LONG_MAX, "Sync to disk once data waited so long.", 0),
    _key("retention.bytes", _LONG, -1, "Size above which a partition's oldest segments go."),
    _key("retention.ms", _LONG, 604800000, "Age above which segments go; -1 for never.", -1),
    _key("max.message.bytes", _INT, 1048588,
         "Largest batch that is taken, compressed and with its 12-byte prefix.", 0),
    _key("index.interval.bytes", _INT, 4096,
         "How many bytes of data come between two index entries.", 0),
    _key("delete.retention.ms", _LONG, 86400000,
         "How long a compacted log keeps a tombstone after its first cleaning.", 0),
    _key("min.compaction.lag.ms", _LONG, 0,
         "How long a record at least stays out of compaction.", 0),
    _key("max.compaction.lag.ms", _LONG, LONG_MAX,
         "After how long a record must have become open to compaction.", 1),
    _key("file.delete.delay.ms", _LONG, 60000,
         "How long files that were taken out of the log stay on disk.", 0),
    _key("min.cleanable.dirty.ratio", ConfigType.DOUBLE, 0.5,
         "Share of uncleaned bytes from which on a log is compacted.", 0, 1),
    _key("cleanup.policy", _LIST, "delete",
         "Whether old segments are deleted, compacted by key, or both.",
         choices=("compact", "delete")),
    _key("unclean.leader.election.enable", _BOOLEAN, "false",
         "Whether a replica that is behind may become leader."),
    _key("min.insync.replicas", _INT, 1, "In-sync replicas without which acks=all fails.", 1),
    _key("compression.type", _STRING, "producer",
         "Codec that batches are stored with; producer keeps each batch's own.",
         choices=("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")),
    _key("compression.gzip.level", _INT, -1, "Level of gzip; -1 is zlib's own default.", -1, 9,
         excluded=(0,)),
    _key("compression.lz4.level", _INT, 9, "Level of lz4; 9 is the fast compressor.", 1, 17),
    _key("compression.zstd.level", _INT, 3, "Level of zstd.", -131072, 22),
    _key("preallocate", _BOOLEAN, "false", "Whether a new data file gets its full size at once."),
    _key("message.timestamp.type", _STRING, "CreateTime",
         "Whose clock gives the timestamps: the producer's or the broker's.",
         choices=("CreateTime", "LogAppendTime")),
    _key("message.timestamp.before.max.ms", _LONG, LONG_MAX,
         "How far behind the broker's clock a producer's timestamp may be.", 0),
    _key("message.timestamp.after.max.ms", _LONG, 3600000,
         "How far ahead of the broker's clock a producer's timestamp may be.", 0),
    _key("leader.replication.throttled.replicas", _LIST, "",
         "Replicas whose serving is throttled: partition:broker pairs, or *.", effect=_ACCEPTED,
         names_replicas=True),
    _key("follower.replication.throttled.replicas", _LIST, "",
         "Replicas whose fetching is throttled: partition:broker pairs, or *.", effect=_ACCEPTED,
         names_replicas=True),
    _key("remote.storage.enable", _BOOLEAN, "false", "Whether the topic is tiered.",
         effect=_ACCEPTED),
    _key("local.retention.ms", _LONG, -2,
         "Age of the local part of a tiered log; -2 follows retention.ms.", -2, effect=_ACCEPTED),
    _key("local.retention.bytes", _LONG, -2,
         "Size of the local part of a tiered log; -2 follows retention.bytes.", -2,
         effect=_ACCEPTED),
    _key("remote.log.copy.disable", _BOOLEAN, "false",
         "Whether a tiered topic stops copying to remote storage.", effect=_ACCEPTED),
    _key("remote.log.delete.on.disable", _BOOLEAN, "false",
         "Whether remote data goes when tiering is turned off.", effect=_ACCEPTED),
    _key("internal.segment.bytes", _INT, None,
         "Segment size without the lower limit of segment.bytes, for tests.", 1),
)  # fmt: skip

#: Every topic setting by name.
#: in the order in which Kafka looks at them: what is wrong first is told
TOPIC_CONFIG_KEYS: Mapping[str, ConfigKey] = {key.name: key for key in _KEYS}


class Synonym(NamedTuple):
    """A broker setting that is a topic setting's default; its value counts times `factor`."""

    name: str
    factor: int = 1


def _synonyms(*names: str | tuple[str, int]) -> tuple[Synonym, ...]:
    return tuple(Synonym(name) if isinstance(name, str) else Synonym(*name) for name in names)


#: Broker settings by topic setting; the first one that is given counts.
TOPIC_CONFIG_SYNONYMS: Mapping[str, tuple[Synonym, ...]] = {
    "cleanup.policy": _synonyms("log.cleanup.policy"),
    "compression.gzip.level": _synonyms("compression.gzip.level"),
    "compression.lz4.level": _synonyms("compression.lz4.level"),
    "compression.type": _synonyms("compression.type"),
    "compression.zstd.level": _synonyms("compression.zstd.level"),
    "delete.retention.ms": _synonyms("log.cleaner.delete.retention.ms"),
    "file.delete.delay.ms": _synonyms("log.segment.delete.delay.ms"),
    "flush.messages": _synonyms("log.flush.interval.messages"),
    "flush.ms": _synonyms("log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
    "index.interval.bytes": _synonyms("log.index.interval.bytes"),
    "local.retention.bytes": _synonyms("log.local.retention.bytes"),
    "local.retention.ms": _synonyms("log.local.retention.ms"),
    "max.compaction.lag.ms": _synonyms("log.cleaner.max.compaction.lag.ms"),
    "max.message.bytes": _synonyms("message.max.bytes"),
    "message.timestamp.after.max.ms": _synonyms("log.message.timestamp.after.max.ms"),
    "message.timestamp.before.max.ms": _synonyms("log.message.timestamp.before.max.ms"),
    "message.timestamp.type": _synonyms("log.message.timestamp.type"),
    "min.cleanable.dirty.ratio": _synonyms("log.cleaner.min.cleanable.ratio"),
    "min.compaction.lag.ms": _synonyms("log.cleaner.min.compaction.lag.ms"),
    "min.insync.replicas": _synonyms("min.insync.replicas"),
    "preallocate": _synonyms("log.preallocate"),
    "retention.bytes": _synonyms("log.retention.bytes"),
    "retention.ms": _synonyms(
        "log.retention.ms",
        ("log.retention.minutes", _MINUTE_MS),
        ("log.retention.hours", _HOUR_MS),
    ),
    "segment.bytes": _synonyms("log.segment.bytes"),
    "segment.index.bytes": _synonyms("log.index.size.max.bytes"),
    "segment.jitter.ms": _synonyms("log.roll.jitter.ms", ("log.roll.jitter.hours", _HOUR_MS)),
    "segment.ms": _synonyms("log.roll.ms", ("log.roll.hours", _HOUR_MS)),
    "unclean.leader.election.enable": _synonyms("unclean.leader.election.enable"),
}
