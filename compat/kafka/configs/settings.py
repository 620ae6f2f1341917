"""What the broker itself asks of its settings, typed; the rest stays in the table by name."""

from __future__ import annotations

from typing import Any, NamedTuple

from logstore.compat.kafka.configs.conflicts import check_conflicts
from logstore.segments.kafka.broker_config import BrokerConfig
from logstore.segments.kafka.config_keys import ConfigError

_MINUTE_MS = 60_000
#: fields that are not simply Kafka's name with underscores: (Kafka's name, factor)
_RENAMED = {
    "offset_metadata_max_size": ("offset.metadata.max.bytes", 1),
    "offsets_retention_ms": ("offsets.retention.minutes", _MINUTE_MS),
}


class BrokerSettings(NamedTuple):
    """
    Kafka's settings of the same names, dots for underscores; `given` has all of them.

    `node_id` is None where it was not given: then the data directory says it.
    """

    given: BrokerConfig
    node_id: int | None
    broker_rack: str | None
    auto_create_topics_enable: bool
    connections_max_idle_ms: int
    default_replication_factor: int
    delete_topic_enable: bool
    fetch_max_bytes: int
    group_initial_rebalance_delay_ms: int
    group_max_session_timeout_ms: int
    group_max_size: int
    group_min_session_timeout_ms: int
    log_cleaner_enable: bool
    log_flush_offset_checkpoint_interval_ms: int
    log_flush_scheduler_interval_ms: int
    log_flush_start_offset_checkpoint_interval_ms: int
    log_initial_task_delay_ms: int
    log_retention_check_interval_ms: int
    max_incremental_fetch_session_cache_slots: int
    max_request_partition_size_limit: int
    num_partitions: int
    num_recovery_threads_per_data_dir: int
    offset_metadata_max_size: int
    offsets_retention_check_interval_ms: int
    offsets_retention_ms: int
    offsets_topic_num_partitions: int
    offsets_topic_segment_bytes: int
    producer_id_expiration_check_interval_ms: int
    replica_high_watermark_checkpoint_interval_ms: int
    socket_request_max_bytes: int

    @classmethod
    def of(cls, config: BrokerConfig) -> BrokerSettings:
        """
        Return the typed view of `config`.

        Raises:
            ConfigError: two settings contradict each other, or one cannot be read.

        """
        check_conflicts(config)
        values: dict[str, Any] = {"given": config, "node_id": _given_node_id(config)}
        for field in cls._fields:
            if field not in values:
                name, factor = _RENAMED.get(field, (field.replace("_", "."), None))
                value = config[name]
                values[field] = value * factor if factor and isinstance(value, int) else value
        return cls(**values)


def _given_node_id(config: BrokerConfig) -> int | None:
    """Return the node id that was set, under its name or the older one; a negative one is none."""
    names = [name for name in ("node.id", "broker.id") if name in config.settings]
    found = {name: number for name in names if (number := config.integer(name)) >= 0}
    if len(set(found.values())) > 1:
        raise ConfigError(
            "broker.id", str(found["broker.id"]), f"must be the same as node.id, {found['node.id']}"
        )
    return next(iter(found.values()), None)
