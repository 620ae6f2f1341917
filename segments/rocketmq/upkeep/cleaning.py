"""
Old files go: those of the commit log by age or for want of space, then what leads into them.

Source: ``CleanCommitLogService``, ``CleanConsumeQueueService`` and
``MappedFileQueue.deleteExpiredFileByTime``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import UTC, datetime, tzinfo
from typing import TYPE_CHECKING

import attrs

from logstore.segments.rocketmq.upkeep.disk_usage import (
    DiskRule,
    DiskState,
    smallest_ratio,
    used_ratio,
)
from logstore.segments.rocketmq.upkeep.running_flags import RunningFlag, RunningFlags

if TYPE_CHECKING:
    from logstore.host import Host
    from logstore.segments.rocketmq.index.message_index import MessageIndex
    from logstore.segments.rocketmq.log.commit_log import CommitLog
    from logstore.segments.rocketmq.queues.consume_queues import ConsumeQueues

_log = logging.getLogger(__name__)

_HOUR_MS = 3_600_000
#: how many rounds a removal by hand goes on (``MAX_MANUAL_DELETE_FILE_TIMES``)
MANUAL_ROUNDS = 20


@attrs.frozen
class CleaningRule:
    """
    The settings, by Java's defaults.

    `delete_hours` are those of the day in which expired files go (``deleteWhen``); `time_zone` is
    where the day begins, None for that of the machine.
    """

    file_reserved_hours: int = 72
    delete_hours: frozenset[int] = frozenset({4})
    files_a_round_max: int = 10
    is_forcible: bool = True
    disk: DiskRule = attrs.field(factory=DiskRule)
    first_after_ms: int = 60_000
    interval_ms: int = 10_000
    time_zone: tzinfo | None = None

    @staticmethod
    def hours_of(delete_when: str) -> frozenset[int]:
        """Return the hours that ``deleteWhen`` names: two digits each, ``;`` between them."""
        texts = (text.strip() for text in delete_when.split(";"))
        return frozenset(int(text) for text in texts if text.isascii() and text.isdigit())


class StoreCleaning:
    """Removes what is too old, or too much, of one store."""

    def __init__(
        self,
        host: Host,
        rule: CleaningRule,
        commit_log: CommitLog,
        consume_queues: ConsumeQueues,
        index: MessageIndex,
        running_flags: RunningFlags,
        lagging: Callable[[int], str] | None = None,
    ) -> None:
        """`lagging` names the groups that have not read all below a physical offset."""
        self.host = host
        self.rule = rule
        self.commit_log = commit_log
        self.consume_queues = consume_queues
        self.index = index
        self.running_flags = running_flags
        self.manual_rounds = 0
        self._lagging = lagging
        self._last_min_physical_offset = commit_log.min_physical_offset
        self._next_ms = host.clock.monotonic_ms() + rule.first_after_ms

    @property
    def commit_log_disk_ratio(self) -> float:
        """How full the volume of the commit log is (``commitLogDiskRatio``)."""
        return smallest_ratio(self.host.fs, [self.commit_log.directory])

    @property
    def consume_queue_disk_ratio(self) -> float:
        """How full the volume of the queues is (``consumeQueueDiskRatio``)."""
        return used_ratio(self.host.fs, self.consume_queues.directory)

    def request_removal(self) -> None:
        """Have expired files removed in the next rounds at any hour (request code 329)."""
        self.manual_rounds = MANUAL_ROUNDS

    def tick(self) -> None:
        """Run a round if one is due."""
        now_ms = self.host.clock.monotonic_ms()
        if now_ms >= self._next_ms:
            self._next_ms = now_ms + self.rule.interval_ms
            self.run()

    def run(self) -> int:
        """Look at the disk, remove what must go; return how many commit log files that were."""
        state = self._look_at_disk()
        is_due = self.is_hour or state is not DiskState.FINE or self.manual_rounds > 0
        removed = 0
        if is_due:
            self.manual_rounds = max(self.manual_rounds - 1, 0)
            is_forced = state in (DiskState.FORCED, DiskState.FULL)
            removed = self._remove_files(is_at_once=is_forced and self.rule.is_forcible)
            if not removed and state is not DiskState.FINE:
                _log.warning(
                    "%s: the disk is filling up and no commit log file may go (fileReservedTime, "
                    "cleanFileForciblyEnable)",
                    self.commit_log.directory,
                )
        self.follow_commit_log()
        return removed

    def _look_at_disk(self) -> DiskState:
        """Mark the disk full, or no longer full."""
        log_ratio, queue_ratio = self.commit_log_disk_ratio, self.consume_queue_disk_ratio
        state = self.rule.disk.state(log_ratio, queue_ratio)
        flags = self.running_flags
        if state is DiskState.FULL:
            if flags.raise_flag(RunningFlag.DISK_FULL):
                _log.error(
                    "%s: %.1f %% of the disk are in use (queues: %.1f %%); puts are refused until "
                    "it is less than %.1f %%",
                    self.commit_log.directory,
                    log_ratio * 100,
                    queue_ratio * 100,
                    self.rule.disk.warning_ratio * 100,
                )
        elif state is not DiskState.FORCED and flags.lower_flag(RunningFlag.DISK_FULL):
            _log.info("%s: the disk has room again", self.commit_log.directory)
        return state

    @property
    def is_hour(self) -> bool:
        """Tell whether it is one of the hours in which files go."""
        now = datetime.fromtimestamp(self.host.clock.wall_ms() / 1000, UTC)
        return now.astimezone(self.rule.time_zone).hour in self.rule.delete_hours

    def _remove_files(self, *, is_at_once: bool) -> int:
        """Remove the oldest files as long as they are due; never the last one."""
        now_ms = self.host.clock.wall_ms()
        reserved_ms = self.rule.file_reserved_hours * _HOUR_MS
        count = 0
        files = self.commit_log.files()[:-1]
        for file in files[: self.rule.files_a_round_max]:
            is_expired = now_ms >= self.host.fs.modified_ms(file.path) + reserved_ms
            if not is_at_once and not is_expired:
                break
            if not is_expired:
                self._tell_lagging(file.next_offset)
            count += 1
        if count:
            self.commit_log.delete_below(files[count - 1].next_offset)
        return count

    def _tell_lagging(self, physical_offset: int) -> None:
        """Say which groups lose messages that they have not read."""
        groups = self._lagging(physical_offset) if self._lagging is not None else ""
        if groups:
            _log.warning(
                "commit log below physical offset %d goes for want of space, not yet read by %s",
                physical_offset,
                groups,
            )

    def follow_commit_log(self) -> None:
        """Remove queue and index files whose messages are gone, and correct the minima."""
        minimum = self.commit_log.min_physical_offset
        if minimum <= self._last_min_physical_offset:
            return
        self._last_min_physical_offset = minimum
        self.consume_queues.delete_below(minimum)
        for queue in self.consume_queues:
            queue.correct_min(minimum)
        self.index.delete_below(minimum)

    def remove_expired_queues(
        self, is_system_topic: Callable[[str], bool]
    ) -> list[tuple[str, int]]:
        """
        Remove queues of which not one message is left (``cleanExpired``, request code 306).

        Returns them by topic and queue id.
        """
        minimum = self.commit_log.min_physical_offset
        expired = [
            (queue.topic, queue.queue_id)
            for queue in self.consume_queues
            if not is_system_topic(queue.topic) and -1 < queue.last_physical_offset < minimum
        ]
        for topic, queue_id in expired:
            self.consume_queues.remove(topic, queue_id)
            if not self.consume_queues.of_topic(topic):
                self.consume_queues.remove_topic_folders(topic)
        return expired
