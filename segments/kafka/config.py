"""
The settings of one topic's logs, parsed and checked.

A :class:`LogConfig` is made from text by Kafka's topic setting names; the broker's own settings
(``log.retention.hours`` ...) become such names by :func:`topic_defaults`.

Source: ``LogConfig``; ranges and defaults are those of 4.3.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import attrs

from logstore.flush import NEVER, FlushPolicy
from logstore.retention import RetentionPolicy
from logstore.roll import RollPolicy
from logstore.segments.kafka.compression import Codec
from logstore.segments.kafka.config_keys import LONG_MAX, ConfigError, UnknownTopicConfigError
from logstore.segments.kafka.topic_config_keys import (
    TOPIC_CONFIG_KEYS,
    TOPIC_CONFIG_SYNONYMS,
    Synonym,
)

__all__ = ["LogConfig", "parse_topic_configs", "topic_defaults"]

_CODECS = {
    "uncompressed": Codec.NONE,
    "gzip": Codec.GZIP,
    "snappy": Codec.SNAPPY,
    "lz4": Codec.LZ4,
    "zstd": Codec.ZSTD,
}
#: what a broker's negative number means to topics
_NEGATIVE = {"retention.ms": "-1", "flush.ms": "0"}


@attrs.frozen(slots=False)  # slots and cached_property do not go together
class LogConfig:
    """
    All settings of a topic, under Kafka's names with underscores.

    `segment_bytes` is ``internal.segment.bytes`` where that is given.
    """

    cleanup_policy: tuple[str, ...] = ("delete",)
    compression_gzip_level: int = -1
    compression_lz4_level: int = 9
    compression_type: str = "producer"
    compression_zstd_level: int = 3
    delete_retention_ms: int = 86400000
    file_delete_delay_ms: int = 60000
    flush_messages: int = LONG_MAX
    flush_ms: int = LONG_MAX
    follower_replication_throttled_replicas: tuple[str, ...] = ()
    index_interval_bytes: int = 4096
    leader_replication_throttled_replicas: tuple[str, ...] = ()
    local_retention_bytes: int = -2
    local_retention_ms: int = -2
    max_compaction_lag_ms: int = LONG_MAX
    max_message_bytes: int = 1048588
    message_timestamp_after_max_ms: int = 3600000
    message_timestamp_before_max_ms: int = LONG_MAX
    message_timestamp_type: str = "CreateTime"
    min_cleanable_dirty_ratio: float = 0.5
    min_compaction_lag_ms: int = 0
    min_insync_replicas: int = 1
    preallocate: bool = False
    remote_log_copy_disable: bool = False
    remote_log_delete_on_disable: bool = False
    remote_storage_enable: bool = False
    retention_bytes: int = -1
    retention_ms: int = 604800000
    segment_bytes: int = 1073741824
    segment_index_bytes: int = 10485760
    segment_jitter_ms: int = 0
    segment_ms: int = 604800000
    unclean_leader_election_enable: bool = False

    @cached_property
    def is_compacted(self) -> bool:
        """Tell whether only the last record of each key is kept."""
        return "compact" in self.cleanup_policy

    @cached_property
    def is_deleting(self) -> bool:
        """Tell whether old segments are deleted by age and size."""
        return "delete" in self.cleanup_policy

    @cached_property
    def is_log_append_time(self) -> bool:
        """Tell whether records get the broker's time."""
        return self.message_timestamp_type == "LogAppendTime"

    @cached_property
    def needs_every_record(self) -> bool:
        """Tell whether a leader must look at each record: a batch header is not enough."""
        return self.is_compacted or (
            not self.is_log_append_time and self.message_timestamp_before_max_ms != LONG_MAX
        )

    @cached_property
    def takes_batches_as_they_are(self) -> bool:
        """Tell whether a well-formed batch goes into the log without a change or a look inside."""
        return not (self.needs_every_record or self.is_log_append_time or self._codec is not None)

    @cached_property
    def has_usual_batches(self) -> bool:
        """Tell whether what takes batches as they are need not wait for the disk either."""
        return self.takes_batches_as_they_are and self.flush_messages == NEVER

    @cached_property
    def segment_ms_max(self) -> int:
        """
        Time that one segment's records may span.

        Shorter than `segment_ms` where records must become open to compaction earlier: the active
        segment never is.
        """
        if self.is_compacted and self.max_compaction_lag_ms > 0:
            return min(self.max_compaction_lag_ms, self.segment_ms)
        return self.segment_ms

    @cached_property
    def retention_policy(self) -> RetentionPolicy:
        """What `retention_ms` and `retention_bytes` say, nothing for a log that is not deleting."""
        if not self.is_deleting:
            return RetentionPolicy()
        return RetentionPolicy(
            retention_ms=self.retention_ms if self.retention_ms >= 0 else None,
            retention_bytes=self.retention_bytes if self.retention_bytes >= 0 else None,
        )

    @cached_property
    def roll_policy(self) -> RollPolicy:
        """When a new segment is started."""
        return RollPolicy(
            segment_bytes_max=self.segment_bytes,
            segment_ms_max=self.segment_ms_max,
            jitter_ms_max=min(self.segment_jitter_ms, self.segment_ms),
        )

    @cached_property
    def flush_policy(self) -> FlushPolicy:
        """When data are synced to disk."""
        return FlushPolicy(messages=self.flush_messages, interval_ms=self.flush_ms)

    @cached_property
    def _codec(self) -> int | None:
        return _CODECS.get(self.compression_type)

    def target_codec(self, codec: int) -> int:
        """Return the codec that a batch which arrives with `codec` is stored with."""
        target = self._codec
        return codec if target is None else target

    def compression_level(self, codec: int) -> int | None:
        """Return the level to compress with, None for the codec's own default."""
        if codec == Codec.GZIP:
            return self.compression_gzip_level
        if codec == Codec.LZ4:
            return self.compression_lz4_level
        return self.compression_zstd_level if codec == Codec.ZSTD else None


def parse_topic_configs(settings: Mapping[str, str]) -> LogConfig:
    """
    Return the configuration that these texts by topic setting name mean.

    Raises:
        ConfigError: an unknown name, or a value out of its range; it says which one is allowed.

    """
    values = _parsed(settings)
    internal_segment_bytes = values.pop("internal.segment.bytes", None)
    if internal_segment_bytes is not None:
        values["segment.bytes"] = internal_segment_bytes
    config = LogConfig(**{name.replace(".", "_"): value for name, value in values.items()})
    if config.min_compaction_lag_ms > config.max_compaction_lag_ms:
        least, most = config.min_compaction_lag_ms, config.max_compaction_lag_ms
        raise ConfigError(
            "min.compaction.lag.ms",
            str(least),
            f"must not exceed max.compaction.lag.ms, {most}",
            f"conflict topic config setting min.compaction.lag.ms ({least}) > "
            f"max.compaction.lag.ms ({most})",
        )
    return config


def _parsed(settings: Mapping[str, str]) -> dict[str, Any]:
    """Return the values of settings by name; what Kafka looks at first is refused first."""
    for name, text in settings.items():
        if name not in TOPIC_CONFIG_KEYS:
            raise UnknownTopicConfigError(name, text)
    try:
        return {name: TOPIC_CONFIG_KEYS[name].parse(text) for name, text in settings.items()}
    except ConfigError:
        for name, key in TOPIC_CONFIG_KEYS.items():
            if name in settings:
                key.parse(settings[name])
        raise


def topic_defaults(broker_settings: Mapping[str, str]) -> dict[str, str]:
    """
    Return what broker settings mean for topics without settings of their own.

    Of a family such as ``log.retention.ms``, ``.minutes``, ``.hours`` the finest one given counts.
    Values are not checked here, but for those that must be multiplied: ConfigError. A negative
    number means no retention at all, or that all is flushed at once, where a topic's own cannot be.
    """
    found: dict[str, str] = {}
    for topic_name, synonyms in TOPIC_CONFIG_SYNONYMS.items():
        for synonym in synonyms:
            text = broker_settings.get(synonym.name)
            if text is not None:
                text = _converted(synonym, text)
                found[topic_name] = (
                    _NEGATIVE[topic_name] if _is_negative(topic_name, text) else text
                )
                break
    return found


def _is_negative(topic_name: str, text: str) -> bool:
    """Tell whether a number is below zero that may be so for a broker, and not for a topic."""
    return topic_name in _NEGATIVE and re.fullmatch(r"\s*-0*[1-9][0-9]{0,18}\s*", text) is not None


def _converted(synonym: Synonym, text: str) -> str:
    if synonym.factor == 1:
        return text
    if re.fullmatch(r"\s*[+-]?[0-9]{1,10}\s*", text) is None:
        raise ConfigError(synonym.name, text, "must be an integer of 32 bits")
    value = int(text)
    return "-1" if value < 0 else str(value * synonym.factor)
