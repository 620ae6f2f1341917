"""
From a draft to the commit log: every check, then queue offset, store time, append.

The checks and their order are those of ``HookUtils`` (5.x, 4.9.8 in ``DefaultMessageStore``) and
``CommitLog.asyncPutMessage``. A put that is refused says which of Java's statuses it gets and why,
and leaves the commit log as it was. What follows a put (waiting for the disk or for slaves) is the
caller's.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from logstore.errors import RejectedAppendError, WriteFailedError
from logstore.segments.rocketmq.messages import properties as names
from logstore.segments.rocketmq.messages.properties import (
    PROPERTIES_SIZE_BYTES_MAX,
    parse_properties,
)
from logstore.segments.rocketmq.messages.properties_shape import is_plain, take_apart
from logstore.segments.rocketmq.messages.system_flags import (
    INNER_BATCH,
    TRANSACTION_COMMIT,
    TRANSACTION_MASK,
    TRANSACTION_NONE,
    is_queued,
)
from logstore.segments.rocketmq.putting.put_redirection import (
    DELAY_NEEDLE,
    TIMER_NEEDLE,
    properties_of,
    redirect,
)
from logstore.segments.rocketmq.putting.put_result import PutMessageStatus, PutResult
from logstore.segments.rocketmq.putting.put_rules import PutRules, RefusedPutError, TimerGate
from logstore.segments.rocketmq.queues.queue_offsets import QueueOffsets

if TYPE_CHECKING:
    from logstore.host import Clock
    from logstore.segments.rocketmq.log.commit_log import CommitLog
    from logstore.segments.rocketmq.messages.message_batch import MessageBatchDraft
    from logstore.segments.rocketmq.messages.message_draft import MessageDraft
    from logstore.segments.rocketmq.messages.message_run import MessageRun
    from logstore.segments.rocketmq.upkeep.running_flags import RunningFlags
    from logstore.segments.rocketmq.upkeep.store_stats import StoreStats

_log = logging.getLogger(__name__)

RETRY_PREFIX = "%RETRY%"
#: bytes of a topic's name: of any, and of one that is no retry topic
_TOPIC_BYTES_MAX = 255
_PLAIN_TOPIC_BYTES_MAX = 127
#: what a record may take beside the largest body
_RECORD_EXTRA_BYTES = 64 * 1024
#: a lock held longer than this is a clock that jumped
_LOCK_TIME_MS_MAX = 10_000_000
#: properties that make a message more than a plain one; all begin like this
_DELAY, _TIMER, _INNER = DELAY_NEEDLE, TIMER_NEEDLE, b"INNER_"
_BLANK_BYTES = 8
_PUT_OK = PutMessageStatus.PUT_OK
#: by these messages may be more than appended and queued, or less, but for those of no transaction
#: or of one that is committed
_UNUSUAL_FLAGS = INNER_BATCH | TRANSACTION_MASK
_USUAL_FLAGS = (TRANSACTION_NONE, TRANSACTION_COMMIT)


class PutPath:
    """
    Puts messages into one commit log, one at a time.

    `on_put` gets every draft that stands in the commit log, in its order.
    """

    def __init__(
        self,
        commit_log: CommitLog,
        queue_offsets: QueueOffsets,
        running_flags: RunningFlags,
        stats: StoreStats,
        clock: Clock,
        rules: PutRules,
    ) -> None:
        self.commit_log = commit_log
        self.queue_offsets = queue_offsets
        self.running_flags = running_flags
        self.stats = stats
        self.clock = clock
        self.rules = rules
        self.timer: TimerGate | None = None
        self.on_put: Callable[[MessageDraft | MessageBatchDraft | MessageRun], None] = _ignore
        #: why nothing may be put whatever the flags say; None while the store is open for puts
        self.closed_reason: str | None = None
        #: when the put that is under way began, 0 while none is (``beginTimeInLock``)
        self.begin_time_in_lock_ms = 0

    @property
    def rules(self) -> PutRules:
        """What may be put; may be replaced at run time."""
        return self._rules

    @rules.setter
    def rules(self, rules: PutRules) -> None:
        self._rules = rules
        #: records up to this size break no rule about sizes
        self._usual_bytes_max = min(
            rules.message_size_bytes_max,
            PROPERTIES_SIZE_BYTES_MAX,
            self.commit_log.file_size_bytes - _BLANK_BYTES,
        )

    # what a broker asks

    @property
    def lock_time_ms(self) -> int:
        """How long the put that is under way has taken so far (``lockTimeMills``)."""
        begin_ms = self.begin_time_in_lock_ms
        return max(self.clock.wall_ms() - begin_ms, 0) if begin_ms else 0

    @property
    def is_os_page_cache_busy(self) -> bool:
        """Tell whether a put has been held up by the disk for too long."""
        busy_ms = self.rules.os_page_cache_busy_timeout_ms
        return busy_ms < self.lock_time_ms < _LOCK_TIME_MS_MAX

    # putting

    def put_message(self, draft: MessageDraft, *, is_delivery: bool = False) -> PutResult:
        """
        Append one message.

        `is_delivery` says that its delay is over, or that it is put as it is: a delay level that
        still stands in its properties sends it nowhere.
        """
        now_ms = self.clock.wall_ms()
        if self._rules.has_property_crc:
            draft.end_with_property_crc()
        shape, draft.key = take_apart(draft.properties_text)
        draft.shape = shape
        key = draft.topic, draft.queue_id
        queue_offset = self.queue_offsets.get(key)
        if (
            queue_offset is None
            or draft.size_bytes > self._usual_bytes_max
            or draft.sys_flag & _UNUSUAL_FLAGS not in _USUAL_FLAGS
            or not self.running_flags.is_writeable
            or self.begin_time_in_lock_ms
            or self.closed_reason
            or self._rules.is_slave
            or not (is_plain(draft.properties_text) if shape is None else shape.is_plain)
        ):
            return self._put_unusual(draft, now_ms, is_delivery=is_delivery)
        draft.stamp(queue_offset, now_ms)
        self.begin_time_in_lock_ms = now_ms
        try:
            self.commit_log.append(draft)
        except (WriteFailedError, OSError, RejectedAppendError) as error:
            return self._refused(self._failure(draft, error), now_ms)
        finally:
            self.begin_time_in_lock_ms = 0
        self.queue_offsets[key] = queue_offset + 1
        size_bytes = draft.size_bytes
        self.stats.count_single(draft.topic, size_bytes, self.clock.wall_ms() - now_ms)
        self.on_put(draft)
        return PutResult(
            _PUT_OK,
            draft.physical_offset,
            queue_offset,
            size_bytes,
            1,
            now_ms,
            draft.store_host,
        )

    def _took(self, draft: MessageDraft, queue_offset: int, count: int, now_ms: int) -> PutResult:
        """Count a message that stands in the commit log, and hand it on."""
        size_bytes = draft.size_bytes
        stats = self.stats
        stats.count_batch(draft.topic, count, size_bytes)
        stats.time_put(self.clock.wall_ms() - now_ms)
        self.on_put(draft)
        return PutResult(
            PutMessageStatus.PUT_OK,
            draft.physical_offset,
            queue_offset,
            size_bytes,
            count,
            now_ms,
            draft.store_host,
        )

    def _put_unusual(self, draft: MessageDraft, now_ms: int, *, is_delivery: bool) -> PutResult:
        """Put a message with all checks."""
        queues: list[str] = []
        count = 1
        try:
            self._check_state(draft.topic, draft.queue_id)
            text = draft.properties_text
            if _INNER in text or _DELAY in text or _TIMER in text or draft.sys_flag & INNER_BATCH:
                count = self._check_inner_batch(draft)
                if not is_delivery:
                    redirect(draft, self._rules, self.clock.wall_ms(), self.timer)
                queues = self._multi_queues(draft)
            self._check_size(draft)
            key = draft.topic, draft.queue_id
            queue_offset = self.queue_offsets.get(key, 0)
            if not is_queued(draft.sys_flag):
                queue_offset, count = 0, 0
            elif draft.sys_flag & INNER_BATCH or queues:
                self._write_queue_offsets(draft, queue_offset, queues)
            draft.stamp(queue_offset, now_ms)
            self._append(draft, now_ms)
        except RefusedPutError as refusal:
            return self._refused(refusal, now_ms)
        if count:
            self.queue_offsets.advance(*key, queue_offset + count)
            if queues:
                self.rules.multi_dispatch.advance(queues, draft.queue_id, self.queue_offsets)
        return self._took(draft, queue_offset, count or 1, now_ms)

    def put_batch(self, batch: MessageBatchDraft) -> PutResult:
        """Append the messages of a client's batch, one record each (``asyncPutMessages``)."""
        now_ms = self.clock.wall_ms()
        if self._rules.has_property_crc:
            batch.end_with_property_crc()
        key = batch.topic, batch.queue_id
        queue_offset = self.queue_offsets.get(key)
        try:
            if (
                queue_offset is None
                or batch.size_bytes > self._usual_bytes_max
                or batch.sys_flag & TRANSACTION_MASK
                or not self.running_flags.is_writeable
                or self.begin_time_in_lock_ms
                or self.closed_reason
                or self._rules.is_slave
            ):
                self._check_state(*key)
                self._check_batch(batch)
                queue_offset = queue_offset or 0
            batch.stamp(queue_offset, now_ms)
            self._append(batch, now_ms)
        except RefusedPutError as refusal:
            return self._refused(refusal, now_ms)
        count = batch.message_count
        self.queue_offsets.advance(*key, queue_offset + count)
        self.stats.count_batch(batch.topic, count, batch.size_bytes)
        self.stats.time_put(self.clock.wall_ms() - now_ms)
        self.on_put(batch)
        return PutResult(
            _PUT_OK,
            batch.physical_offset,
            queue_offset,
            batch.size_bytes,
            count,
            now_ms,
            batch.store_host,
            batch.physical_offsets,
        )

    def put_run(self, run: MessageRun) -> bool:
        """
        Append all messages of a run with one write; False where they must be put one by one.

        So it is where a message is too large for the short way, where a queue is new, where the
        file is nearly full, where nothing may be put, where records end with a CRC, and where the
        disk refused: putting one by one finds out, for each message, what becomes of it. Nothing
        has changed then.
        """
        offsets, commit_log = self.queue_offsets, self.commit_log
        if (
            run.record_bytes_max > self._usual_bytes_max
            or not commit_log.has_room_for(run)
            or not run.queue_keys <= offsets.keys()
            or not self.running_flags.is_writeable
            or self.begin_time_in_lock_ms
            or self.closed_reason
            or self._rules.is_slave
            or self._rules.has_property_crc
        ):
            return False
        now_ms = self.clock.wall_ms()
        run.stamp(offsets, now_ms)
        self.begin_time_in_lock_ms = now_ms
        try:
            commit_log.append(run)
        except (WriteFailedError, OSError, RejectedAppendError) as error:
            _log.error("a put of %d messages failed: %s", len(run), error)
            return False
        finally:
            self.begin_time_in_lock_ms = 0
        offsets.update(run.next_queue_offsets)
        run.settle()
        self.stats.count_run(run.stored, self.clock.wall_ms() - now_ms)
        self.on_put(run)
        return True

    def _append(self, draft: MessageDraft | MessageBatchDraft, now_ms: int) -> None:
        """Append within the put lock: what else comes meanwhile sees how long it takes."""
        self.begin_time_in_lock_ms = now_ms
        try:
            self.commit_log.append(draft)
        except (WriteFailedError, OSError, RejectedAppendError) as error:
            raise self._failure(draft, error) from error
        finally:
            self.begin_time_in_lock_ms = 0

    def _failure(
        self, draft: MessageDraft | MessageBatchDraft, error: Exception
    ) -> RefusedPutError:
        """Return what is answered when an append fails."""
        if isinstance(error, RejectedAppendError):
            return RefusedPutError(PutMessageStatus.MESSAGE_ILLEGAL, str(error))
        _log.error("a put failed: %s", error)
        status = PutMessageStatus.UNKNOWN_ERROR
        if self._needs_new_file(draft.size_bytes):
            status = PutMessageStatus.CREATE_MAPPED_FILE_FAILED
        return RefusedPutError(status, str(error))

    def _needs_new_file(self, size_bytes: int) -> bool:
        """Tell whether a record would have gone into a file that is not there yet."""
        position = self.commit_log.wrote_where % self.commit_log.file_size_bytes
        return (
            not position or size_bytes + _BLANK_BYTES > self.commit_log.file_size_bytes - position
        )

    def _refused(self, refusal: RefusedPutError, started_ms: int) -> PutResult:
        self.stats.put_failed_times += 1
        self.stats.time_put(self.clock.wall_ms() - started_ms)
        return PutResult(refusal.status, reason=refusal.reason)

    # checks

    def _check_state(self, topic: str, queue_id: int) -> None:
        """Check what is no matter of the message itself, and the name of a queue that is new."""
        if self.closed_reason or not self.running_flags.is_writeable or self.rules.is_slave:
            self._refuse_unavailable()
        if (topic, queue_id) not in self.queue_offsets:
            _check_topic(topic)
        if self.is_os_page_cache_busy:
            reason = f"a put has waited for the disk for {self.lock_time_ms} ms"
            raise RefusedPutError(PutMessageStatus.OS_PAGE_CACHE_BUSY, reason)

    def _refuse_unavailable(self) -> None:
        if self.closed_reason:
            reason = self.closed_reason
        elif self.rules.is_slave:
            reason = "the store is a slave's; put to the master"
        else:
            reason = f"the store takes no messages: {self.running_flags}"
        raise RefusedPutError(PutMessageStatus.SERVICE_NOT_AVAILABLE, reason)

    def _check_size(self, draft: MessageDraft) -> None:
        size_bytes_max = self.rules.message_size_bytes_max
        if draft.size_bytes <= self._usual_bytes_max:
            return
        if draft.properties_size_bytes > PROPERTIES_SIZE_BYTES_MAX:
            raise RefusedPutError(
                PutMessageStatus.PROPERTIES_SIZE_EXCEEDED,
                f"the properties take {draft.properties_size_bytes} bytes, "
                f"{PROPERTIES_SIZE_BYTES_MAX} are allowed",
            )
        if draft.body_size_bytes > size_bytes_max:
            raise RefusedPutError(
                PutMessageStatus.MESSAGE_ILLEGAL,
                f"the body has {draft.body_size_bytes} bytes, {size_bytes_max} are allowed "
                "(maxMessageSize)",
            )
        self._check_record(draft.size_bytes)

    def _check_record(self, size_bytes: int) -> None:
        allowed_bytes = min(
            self.rules.message_size_bytes_max + _RECORD_EXTRA_BYTES,
            self.commit_log.file_size_bytes - _BLANK_BYTES,
        )
        if size_bytes > allowed_bytes:
            raise RefusedPutError(
                PutMessageStatus.MESSAGE_ILLEGAL,
                f"the record takes {size_bytes} bytes, {allowed_bytes} are allowed "
                "(maxMessageSize, mappedFileSizeCommitLog)",
            )

    def _check_batch(self, batch: MessageBatchDraft) -> None:
        if batch.sys_flag & TRANSACTION_MASK:
            raise RefusedPutError(
                PutMessageStatus.MESSAGE_ILLEGAL, "a batch is no part of a transaction"
            )
        if batch.size_bytes > self.rules.message_size_bytes_max:
            allowed_bytes = self.rules.message_size_bytes_max
            if batch.body_size_bytes > allowed_bytes:
                raise RefusedPutError(
                    PutMessageStatus.MESSAGE_ILLEGAL,
                    f"the batch has {batch.body_size_bytes} bytes, {allowed_bytes} are allowed "
                    "(maxMessageSize)",
                )
        if batch.size_bytes > self.commit_log.file_size_bytes - _BLANK_BYTES:
            raise RefusedPutError(
                PutMessageStatus.MESSAGE_ILLEGAL,
                f"the batch takes {batch.size_bytes} bytes of commit log, a file has "
                f"{self.commit_log.file_size_bytes} (mappedFileSizeCommitLog)",
            )

    def _check_inner_batch(self, draft: MessageDraft) -> int:
        """Return how many messages the draft holds (``checkInnerBatch``, ``getMessageNum``)."""
        number = draft.property(_INNER_NUMBER)
        is_inner = bool(draft.sys_flag & INNER_BATCH)
        if number is not None and not is_inner:
            reason = "INNER_NUM stands in a message that is no inner batch"
            raise RefusedPutError(PutMessageStatus.MESSAGE_ILLEGAL, reason)
        if is_inner and not self.rules.is_batch_topic(draft.topic):
            reason = f"an inner batch, but the queue.type of topic {draft.topic} is not BatchCQ"
            raise RefusedPutError(PutMessageStatus.MESSAGE_ILLEGAL, reason)
        if not is_inner or number is None:
            return 1
        if not (number.isascii() and number.isdigit()) or int(number) > 0x7FFF:
            raise RefusedPutError(PutMessageStatus.MESSAGE_ILLEGAL, f"INNER_NUM is {number!r}")
        return max(int(number), 1)

    # what is written with the queue offset

    def _multi_queues(self, draft: MessageDraft) -> list[str]:
        """Return the queues that the message names beside its own."""
        rule = self.rules.multi_dispatch
        if not rule.is_enabled or _INNER not in draft.properties_text:
            return []
        found = rule.queue_names(draft.topic, parse_properties(draft.properties_text))
        if rule.exceeds_quota(found, self.queue_offsets):
            raise RefusedPutError(
                PutMessageStatus.LMQ_CONSUME_QUEUE_NUM_EXCEEDED,
                f"there are {self.queue_offsets.lmq_count} light message queues, "
                f"{rule.lmq_count_max} are allowed (maxLmqConsumeQueueNum)",
            )
        return found

    def _write_queue_offsets(
        self, draft: MessageDraft, queue_offset: int, queues: list[str]
    ) -> None:
        if draft.sys_flag & INNER_BATCH:
            found = parse_properties(draft.properties_text)
            found[names.INNER_BASE] = str(queue_offset)
            draft.replace_properties(self._rules.encoded(found))
        if queues:
            text = self.rules.multi_dispatch.text_with_queue_offsets(
                properties_of(draft), queues, draft.queue_id, self.queue_offsets
            )
            draft.replace_properties(text)
        self._check_size(draft)


_INNER_NUMBER = names.property_needle(names.INNER_NUMBER)


def _check_topic(topic: str) -> None:
    size_bytes = len(topic.encode("utf-8", "replace"))
    allowed_bytes = _TOPIC_BYTES_MAX if topic.startswith(RETRY_PREFIX) else _PLAIN_TOPIC_BYTES_MAX
    if size_bytes > allowed_bytes:
        raise RefusedPutError(
            PutMessageStatus.MESSAGE_ILLEGAL,
            f"the topic's name has {size_bytes} bytes, {allowed_bytes} are allowed",
        )


def _ignore(draft: object) -> None:
    """Nobody wants to know of puts."""
    del draft
