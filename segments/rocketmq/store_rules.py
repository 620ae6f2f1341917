"""What the settings of a store mean to each of its parts: from Java's keys to values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import attrs

from logstore.segments.rocketmq.log.commit_log import CommitLogSettings
from logstore.segments.rocketmq.messages.properties import HASH_MAP_CAPACITY_4, HASH_MAP_CAPACITY_5
from logstore.segments.rocketmq.putting.multi_dispatch import MultiDispatch
from logstore.segments.rocketmq.putting.put_rules import PutRules
from logstore.segments.rocketmq.queues.batch_consume_queue import BATCH_UNIT_BYTES
from logstore.segments.rocketmq.queues.consume_queues import QueueSettings
from logstore.segments.rocketmq.settings.delay_levels import DelayLevels
from logstore.segments.rocketmq.settings.release import Release
from logstore.segments.rocketmq.upkeep.cleaning import CleaningRule
from logstore.segments.rocketmq.upkeep.disk_usage import DiskRule

if TYPE_CHECKING:
    from logstore.segments.rocketmq.settings.store_config import StoreConfig

IsBatchTopic = Callable[[str], bool | None]


@attrs.frozen
class FlushRule:
    """
    When commit log, queues and checkpoint are made durable, in ms and pages of 4096 bytes.

    `is_sync` (``SYNC_FLUSH``): whoever puts waits for the disk. Whether or not, everything that
    was put is flushed within the thorough intervals.
    """

    is_sync: bool = False
    log_interval_ms: int = 500
    log_least_pages: int = 4
    log_thorough_interval_ms: int = 10_000
    queue_interval_ms: int = 1000
    queue_least_pages: int = 2
    queue_thorough_interval_ms: int = 60_000
    commit_interval_ms: int = 200
    commit_least_pages: int = 4
    commit_thorough_interval_ms: int = 200
    checkpoint_interval_ms: int = 1000
    consumer_offsets_interval_ms: int = 5000
    delay_offsets_interval_ms: int = 10_000

    @classmethod
    def of(cls, config: StoreConfig) -> FlushRule:
        """Take it from Java's keys."""
        return cls(
            is_sync=config.is_sync_flush,
            log_interval_ms=config.integer("flushIntervalCommitLog"),
            log_least_pages=config.integer("flushCommitLogLeastPages"),
            log_thorough_interval_ms=config.integer("flushCommitLogThoroughInterval"),
            queue_interval_ms=config.integer("flushIntervalConsumeQueue"),
            queue_least_pages=config.integer("flushConsumeQueueLeastPages"),
            queue_thorough_interval_ms=config.integer("flushConsumeQueueThoroughInterval"),
            commit_interval_ms=config.integer("commitIntervalCommitLog"),
            commit_least_pages=config.integer("commitCommitLogLeastPages"),
            commit_thorough_interval_ms=config.integer("commitCommitLogThoroughInterval"),
            delay_offsets_interval_ms=config.integer("flushDelayOffsetInterval"),
        )


def multi_dispatch(config: StoreConfig, release: Release) -> MultiDispatch:
    """Return the rule of light message queues, with how the release writes properties."""
    return MultiDispatch(
        is_enabled=config.boolean("enableMultiDispatch"),
        has_lmq=config.boolean("enableLmq"),
        lmq_count_max=config.integer("maxLmqConsumeQueueNum"),
        has_lmq_quota=config.boolean("enableLmqQuota") or release is Release.V4,
        hash_map_capacity=HASH_MAP_CAPACITY_4 if release is Release.V4 else HASH_MAP_CAPACITY_5,
        ends_with_separator=release is not Release.V4,
        keeps_wait=release is not Release.V4,
        is_for_lmq_alone=release is not Release.V4,
    )


def put_rules(config: StoreConfig, release: Release, is_batch_topic: IsBatchTopic) -> PutRules:
    """Return what may be put."""
    return PutRules(
        message_size_bytes_max=config.integer("maxMessageSize"),
        os_page_cache_busy_timeout_ms=config.integer("osPageCacheBusyTimeOutMills"),
        is_slave=config.is_slave,
        has_property_crc=config.boolean("enabledAppendPropCRC"),
        delay_level_max=delay_levels(config).level_max,
        knows_timers=release is not Release.V4,
        has_timer_wheel=config.boolean("timerWheelEnable"),
        timer_max_delay_s=config.integer("timerMaxDelaySec"),
        timer_precision_ms=config.timer_precision_ms,
        multi_dispatch=multi_dispatch(config, release),
        is_batch_topic=is_batch_topic,
    )


def queue_settings(
    config: StoreConfig, release: Release, is_batch_topic: IsBatchTopic
) -> QueueSettings:
    """Return what the queues' files are like."""
    return QueueSettings(
        file_size_bytes=config.consume_queue_file_size_bytes,
        batch_file_size_bytes=_whole_batch_units(config.batch_consume_queue_file_size_bytes),
        ext_file_size_bytes=config.consume_queue_ext_file_size_bytes,
        has_ext=config.boolean("enableConsumeQueueExt"),
        is_batch_topic=is_batch_topic,
        multi_dispatch=multi_dispatch(config, release),
    )


def commit_log_settings(config: StoreConfig, settings: Mapping[str, str]) -> CommitLogSettings:
    """Return what the commit log's files are like."""
    return attrs.evolve(
        CommitLogSettings.of(settings),
        file_size_bytes=config.commit_log_file_size_bytes,
        has_transient_store_pool=config.has_transient_store_pool,
    )


def cleaning_rule(config: StoreConfig) -> CleaningRule:
    """Return which files go when."""
    return CleaningRule(
        file_reserved_hours=config.integer("fileReservedTime"),
        delete_hours=CleaningRule.hours_of(config.text("deleteWhen")),
        files_a_round_max=config.integer("deleteFileBatchMax"),
        is_forcible=config.boolean("cleanFileForciblyEnable"),
        disk=DiskRule(
            config.disk_used_ratio_max,
            config.disk_clean_forcibly_ratio,
            config.disk_warning_ratio,
        ),
        interval_ms=config.integer("cleanResourceInterval"),
    )


def delay_levels(config: StoreConfig) -> DelayLevels:
    """Return how long each delay level is. Raises DelayLevelsError."""
    return DelayLevels.parse(config.text("messageDelayLevel"))


def _whole_batch_units(size_bytes: int) -> int:
    return -(-size_bytes // BATCH_UNIT_BYTES) * BATCH_UNIT_BYTES


def builds_index(config: StoreConfig) -> bool:
    """Tell whether keys of messages are put into the index files."""
    return config.boolean("messageIndexEnable") and config.boolean("indexFileWriteEnable")
