"""
What a broker does by itself: checkpoints, flushes by time, retention, compaction.

Each has its interval, in the broker's settings; what blocks is done off the loop where it may be.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from logstore.errors import LogStoreError

if TYPE_CHECKING:
    from logstore.compat.kafka.broker import Broker
    from logstore.segments.kafka.compaction.cleaner import Cleaner
    from logstore.segments.kafka.compaction.compaction_plan import CompactionLimits

_log = logging.getLogger(__name__)

_PURGE_INTERVAL_MS = 1000
_LOOK_INTERVAL_MS_MAX = 1000


class Housekeeping:
    """The periodic work of one broker."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._store = broker.store
        self._cleaner: Cleaner | None = None

    def start(self) -> None:
        """Have it done from now on."""
        config, store = self._broker.config, self._store
        # Not aside: a recovery point that is written late could be that of a topic since deleted.
        first_ms = config.log_initial_task_delay_ms
        self._every(
            config.log_flush_offset_checkpoint_interval_ms, store.write_recovery_points, first_ms
        )
        self._every(
            config.log_flush_start_offset_checkpoint_interval_ms, store.write_log_starts, first_ms
        )
        self._every(
            config.replica_high_watermark_checkpoint_interval_ms,
            self._aside(store.high_watermark_checkpointing),
        )
        self._every(config.log_retention_check_interval_ms, store.retain, first_ms)
        self._every(config.producer_id_expiration_check_interval_ms, self._expire_producers)
        self._every(_PURGE_INTERVAL_MS, self._aside(store.purging))
        if config.log_cleaner_enable:
            self._clean_later(self._broker.host.clock.monotonic_ms())
        if config.given["delegation.token.secret.key"]:
            self._every(
                config.given.integer("delegation.token.expiry.check.interval.ms"),
                self._broker.delegation_tokens.sweep,
            )
        if not self._broker.nodes.is_alone and config.given["auto.leader.rebalance.enable"]:
            from logstore.compat.kafka.nodes.elections import rebalance

            seconds = config.given.integer("leader.imbalance.check.interval.seconds")
            self._every(seconds * 1000, lambda: rebalance(self._broker))
        look_interval_ms = min(config.log_flush_scheduler_interval_ms, _LOOK_INTERVAL_MS_MAX)
        self._every(look_interval_ms, self._flush_by_time)

    def _clean_later(self, last_ms: float) -> None:
        """Clean once the pause since `last_ms` is over, and again; it may become another one."""
        broker, clock = self._broker, self._broker.host.clock

        def left_ms() -> float:
            pause_ms = broker.dynamic_config.integer("log.cleaner.backoff.ms")
            return last_ms + max(pause_ms, 1) - clock.monotonic_ms()

        def look() -> None:
            if left_ms() > 0:
                self._clean_later(last_ms)
                return
            self._clean_later(clock.monotonic_ms())
            try:
                self._clean()
            except (LogStoreError, OSError) as error:  # a disk may be full now and not later
                _log.error("%s: %s", self._store.directory, error)

        broker.timers.after(max(min(left_ms(), _LOOK_INTERVAL_MS_MAX), 1), look)

    def _clean(self) -> None:
        """Compact what is due."""
        if self._cleaner is None:
            from logstore.compat.kafka.cleaner_process import place_for
            from logstore.segments.kafka.compaction.cleaner import Cleaner

            broker = self._broker
            self._cleaner = Cleaner(
                broker.host, self._store.directory, self._store.partitions,
                lambda: broker.offload, self._cleaner_limits(), place_for(broker.host),
            )  # fmt: skip
        self._cleaner.limits = self._cleaner_limits()
        self._cleaner.clean()

    def _cleaner_limits(self) -> CompactionLimits:
        from logstore.segments.kafka.compaction.compaction_plan import CompactionLimits

        dynamic = self._broker.dynamic_config
        return CompactionLimits(
            dynamic.integer("log.cleaner.dedupe.buffer.size"),
            dynamic.real("log.cleaner.io.buffer.load.factor"),
        )

    def _every(
        self, interval_ms: int, call: Callable[[], object], first_ms: int | None = None
    ) -> None:
        """
        Call again and again, from now on or, where that is sooner, `first_ms` from now on.

        Kafka waits for `first_ms` even where the interval is shorter, which serves nobody.
        """
        timers = self._broker.timers
        pause_ms = max(interval_ms, 1)  # 0 would be over and over again

        def run() -> None:
            timers.after(pause_ms, run)
            try:
                call()
            except (LogStoreError, OSError) as error:  # a disk may be full now and not later
                _log.error("%s: %s", self._store.directory, error)

        timers.after(pause_ms if first_ms is None else min(first_ms, pause_ms), run)

    def _aside(self, prepare: Callable[[], Callable[[], None] | None]) -> Callable[[], None]:
        """Return a call that does what `prepare` returns, if anything, off the loop, in turn."""
        is_running = False

        def done(error: BaseException | None) -> None:
            nonlocal is_running
            is_running = False
            if error is not None:  # a disk may be full now and not later
                _log.error("%s: %s", self._store.directory, error)

        def run() -> None:
            nonlocal is_running
            work = None if is_running else prepare()
            if work is not None:
                is_running = True
                self._broker.offload(work, done)

        return run

    def _flush_by_time(self) -> None:
        """Flush every partition whose ``flush.ms`` has passed with data not yet durable."""
        now_ms = self._broker.host.clock.monotonic_ms()
        for partition in self._store.partitions():
            waited_ms = now_ms - partition.last_flush_ms
            unflushed = partition.end_offset - partition.log.recovery_point
            if partition.config.flush_policy.is_due_by_time(unflushed, waited_ms):
                self._broker.flusher.flush(partition)

    def _expire_producers(self) -> None:
        """Forget, partition by partition, the producers that have been silent for too long."""
        now_ms = self._broker.host.clock.wall_ms()
        expiration_ms = self._broker.dynamic_config.integer("producer.id.expiration.ms")
        for partition in self._store.partitions():
            partition.expire_producers(now_ms, expiration_ms)

    def close(self) -> None:
        """End the cleaner."""
        if self._cleaner is not None:
            self._cleaner.close()
