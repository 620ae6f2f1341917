"""
Dispatch: what stands new in the commit log is folded into queues, index and whoever listens.

Java calls it *reput* (``ReputMessageService``): from `reput_from` on every message is read again
and handed to the dispatchers in turn. A message that this store has just put itself need not be
read again: its draft waits in memory, in the order of the log.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from itertools import groupby
from typing import TYPE_CHECKING

from logstore.segments.rocketmq.log.log_walk import LogWalk
from logstore.segments.rocketmq.messages.corrupt_message import CorruptMessageError
from logstore.segments.rocketmq.messages.dispatch_request import DeliverTime, request_of
from logstore.segments.rocketmq.messages.message_draft import MessageDraft
from logstore.segments.rocketmq.messages.message_run import MessageRun
from logstore.segments.rocketmq.messages.system_flags import TRANSACTION_MASK, TRANSACTION_ROLLBACK

if TYPE_CHECKING:
    from logstore.segments.rocketmq.index.message_index import MessageIndex
    from logstore.segments.rocketmq.log.commit_log import CommitLog
    from logstore.segments.rocketmq.messages.dispatch_request import DispatchRequest
    from logstore.segments.rocketmq.messages.message_batch import MessageBatchDraft
    from logstore.segments.rocketmq.queues.consume_queues import ConsumeQueues

_log = logging.getLogger(__name__)

#: told of every message that can now be read from its queue (``MessageArrivingListener``)
ArrivalListener = Callable[["DispatchRequest"], None]
#: drafts that wait; beyond that they are dropped and read from the log again
PENDING_COUNT_MAX = 65536

#: takes each message of the commit log in turn (``CommitLogDispatcher``); those seen before too
Dispatcher = Callable[["DispatchRequest"], None]


class Dispatch:
    """
    The one place that moves messages from the commit log to what is derived from it.

    `reput_from` is the physical offset up to which all is dispatched. `end` says how far may be
    dispatched: 5.x keeps back what is not durable under ``SYNC_FLUSH``. The index, where there is
    one, follows the consume queues, then come `dispatchers` in their order, then the listeners.

    `is_awaited` tells of a queue, and `is_watched` of a topic, whether listeners want to know of
    what arrives in it: at once, or some time. Messages that were put here are shown to them only
    then, and of those that came together to a queue that is but watched the last one alone;
    dispatchers are shown every message.
    """

    def __init__(
        self,
        commit_log: CommitLog,
        consume_queues: ConsumeQueues,
        index: MessageIndex | None,
        deliver_time: DeliverTime | None = None,
    ) -> None:
        self.commit_log = commit_log
        self.consume_queues = consume_queues
        self.index = index
        self.dispatchers: list[Dispatcher] = []
        self.arrival_listeners: list[ArrivalListener] = []
        self.is_awaited: Callable[[tuple[str, int]], bool] = _always
        self.is_watched: Callable[[str], bool] = _never
        #: something was put into a queue that is awaited, and is not dispatched yet
        self.has_awaited = False
        #: messages that were put here and not dispatched yet, and their bytes
        self.pending_messages = 0
        self.pending_bytes = 0
        self.reput_from = 0
        self.keeps_back_unflushed = False
        #: a slave waits for the rest of a message that is cut short, a master passes it over
        self.stops_at_damage = False
        self.current_reput_timestamp_ms = 0
        self.deliver_time = deliver_time
        self._pending: deque[MessageDraft | MessageBatchDraft | MessageRun] = deque()
        #: dispatched, and their keys are not in the index yet
        self._unindexed: list[MessageRun] = []

    # how far

    @property
    def end(self) -> int:
        """Up to which physical offset messages may be dispatched (``getConfirmOffset``)."""
        log = self.commit_log
        return log.flushed_where if self.keeps_back_unflushed else log.max_physical_offset

    @property
    def behind_bytes(self) -> int:
        """Bytes of the commit log that wait to be dispatched (``dispatchBehindBytes``)."""
        return self.end - self.reput_from

    # dispatching

    def add(self, draft: MessageDraft | MessageBatchDraft | MessageRun) -> None:
        """Take note of what was just put: it is dispatched without being read again."""
        pending = self._pending
        if len(pending) >= PENDING_COUNT_MAX:
            pending.clear()
        pending.append(draft)
        self.pending_bytes += draft.size_bytes
        if isinstance(draft, MessageRun):
            self.pending_messages += len(draft.stored)
            if not self.has_awaited and self.arrival_listeners:
                self.has_awaited = any(map(self.is_awaited, draft.next_queue_offsets))
        else:
            self.pending_messages += draft.message_count
            if not self.has_awaited and self.arrival_listeners:
                self.has_awaited = self.is_awaited((draft.topic, draft.queue_id))

    def run(self, *, defers_index: bool = False) -> int:
        """
        Dispatch all there is and tell the listeners; return how many messages were moved on.

        With `defers_index` their keys may come into the index at the next run without it, which is
        to follow soon: who waits for a message need not wait for its keys.
        """
        count = 0 if defers_index else self._index_runs()
        if self.reput_from < self.commit_log.min_physical_offset:
            _log.warning(
                "messages from physical offset %d on were deleted before they were dispatched",
                self.reput_from,
            )
            self.reput_from = self.commit_log.min_physical_offset
        end, pending = self.end, self._pending
        while pending and (draft := pending[0]).next_offset <= end:
            pending.popleft()
            if draft.physical_offset > self.reput_from:
                count += self._catch_up(draft.physical_offset)
            if draft.physical_offset != self.reput_from:
                continue
            if isinstance(draft, MessageDraft):
                count += self._take_drafts(draft, end)  # and moves on itself
                continue
            if isinstance(draft, MessageRun):
                count += self._take_runs(draft, end, defers_index=defers_index)
                continue
            count += self._take_batches(draft, end)
        if self.reput_from < end and not pending:
            count += self._catch_up(end)
        if not pending:
            self.has_awaited = False
            self.pending_messages = self.pending_bytes = 0
        return count

    def _take_drafts(self, first: MessageDraft, end: int) -> int:
        """Dispatch `first` and those that follow it in the log, of whatever time."""
        pending = self._pending
        drafts, next_offset = [first], first.next_offset
        stored_ms = first.store_timestamp_ms
        while pending:
            draft = pending[0]
            if (
                not isinstance(draft, MessageDraft)
                or draft.physical_offset != next_offset
                or draft.store_timestamp_ms < stored_ms
                or next_offset + draft.size_bytes > end
            ):
                break
            pending.popleft()
            next_offset += draft.size_bytes
            stored_ms = draft.store_timestamp_ms
            drafts.append(draft)
        self.consume_queues.dispatch_drafts(drafts, self.deliver_time)
        self.current_reput_timestamp_ms = stored_ms
        if self.index is not None:
            self._index_runs()
            self._index_drafts(self.index, drafts)
        if self.dispatchers or self.arrival_listeners:
            shown = self._shown([(draft.topic, draft.queue_id) for draft in drafts])
            for draft in map(drafts.__getitem__, shown):
                self._tell(request_of(draft, self.deliver_time))
        self.reput_from = next_offset
        return len(drafts)

    def _index_drafts(self, index: MessageIndex, drafts: list[MessageDraft]) -> None:
        """Add messages to the index, all at once where their times are one to it."""
        kept = [
            draft for draft in drafts if draft.sys_flag & TRANSACTION_MASK != TRANSACTION_ROLLBACK
        ]
        if index.put_drafts(kept):
            return
        for _, group in groupby(kept, lambda draft: draft.store_timestamp_ms):
            together = list(group)
            if not index.put_drafts(together):
                for draft in together:
                    index.put(request_of(draft, self.deliver_time))

    def _take_batches(self, first: MessageBatchDraft, end: int) -> int:
        """Dispatch `first` and the batches of its topic that follow it in the log."""
        pending = self._pending
        batches, next_offset = [first], first.next_offset
        stored_ms = first.store_timestamp_ms
        while pending:
            batch = pending[0]
            if (
                isinstance(batch, MessageDraft | MessageRun)
                or batch.topic != first.topic
                or batch.physical_offset != next_offset
                or batch.store_timestamp_ms < stored_ms
                or next_offset + batch.size_bytes > end
            ):
                break
            pending.popleft()
            next_offset += batch.size_bytes
            stored_ms = batch.store_timestamp_ms
            batches.append(batch)
        told: list[DispatchRequest] = []
        for batch in batches:
            requests: list[DispatchRequest] | None = None
            if not self.consume_queues.dispatch_batch(batch):
                requests = batch.dispatch_requests()
                for request in requests:
                    self.consume_queues.dispatch(request)
            if self._is_shown((batch.topic, batch.queue_id)):
                told += requests or batch.dispatch_requests()
        self.current_reput_timestamp_ms = stored_ms
        if self.index is not None:
            self._index_runs()
            self._index_batches(self.index, batches)
        for request in told:
            self._tell(request)
        self.reput_from = next_offset
        return sum(batch.message_count for batch in batches)

    def _index_batches(self, index: MessageIndex, batches: list[MessageBatchDraft]) -> None:
        """Add batches to the index, those without entries of their own all at once."""
        alike: list[MessageBatchDraft] = []
        for batch in batches:
            entries = batch.index_entries()
            if entries is None:
                alike.append(batch)
                continue
            if alike:
                index.put_batches(alike)
                alike = []
            index.put_many(entries)
        if alike:
            index.put_batches(alike)

    def _take_runs(self, first: MessageRun, end: int, *, defers_index: bool) -> int:
        """Dispatch `first` and the runs that follow it in the log, of whatever time."""
        pending = self._pending
        runs, last = [first], first
        while pending:
            run = pending[0]
            if (
                not isinstance(run, MessageRun)
                or run.physical_offset != last.next_offset
                or run.store_timestamp_ms < last.store_timestamp_ms
                or run.next_offset > end
            ):
                break
            pending.popleft()
            runs.append(run)
            last = run
        for run in runs:
            self.consume_queues.dispatch_run(run, self.deliver_time)
        if defers_index:
            self._unindexed += runs
        elif self.index is not None:
            self._index_runs()
            self.index.put_runs(runs)
        self.current_reput_timestamp_ms = last.store_timestamp_ms
        if self.dispatchers or self.arrival_listeners:
            queue_keys = {key for run in runs for key in run.next_queue_offsets}
            if any(map(self._is_shown, queue_keys)):
                self._tell_of_runs(runs)
        self.reput_from = last.next_offset
        return sum(map(len, runs))

    def _index_runs(self) -> int:
        """Add the runs that wait for it to the index; return how many messages they have."""
        runs = self._unindexed
        if runs and self.index is not None:
            self.index.put_runs(runs)
        self._unindexed = []
        return sum(map(len, runs))

    def _tell_of_runs(self, runs: list[MessageRun]) -> None:
        """Tell of the messages of runs that anybody is to see."""
        messages = [(run, place) for run in runs for place in range(len(run.stored))]
        for index in self._shown([run.stored[place][0].queue_key for run, place in messages]):
            run, place = messages[index]
            self._tell(run.dispatch_request(place, self.deliver_time))

    def _shown(self, queue_keys: list[tuple[str, int]]) -> list[int]:
        """
        Return which messages anybody is to see, of those that came to these queues together.

        For a topic that is watched the last one of each queue says it all.
        """
        if self.dispatchers:
            return list(range(len(queue_keys)))
        awaited = {key for key in set(queue_keys) if self.is_awaited(key)}
        last = {key: index for index, key in enumerate(queue_keys)}
        return [
            index
            for index, key in enumerate(queue_keys)
            if key in awaited or (last[key] == index and self.is_watched(key[0]))
        ]

    def _is_shown(self, queue_key: tuple[str, int]) -> bool:
        """Tell whether anybody is to see the messages of a queue."""
        if self.dispatchers:
            return True
        if not self.arrival_listeners:
            return False
        return self.is_awaited(queue_key) or self.is_watched(queue_key[0])

    def _catch_up(self, end: int) -> int:
        """Dispatch what stands in the log up to `end`, by reading it."""
        walk = LogWalk(
            self.commit_log,
            self.reput_from,
            end,
            self.deliver_time,
            _complain,
            self.stops_at_damage,
        )
        count = 0
        for request in walk:
            self.dispatch_one(request)
            self.reput_from = walk.physical_offset
            count += 1
        self.reput_from = walk.physical_offset
        return count

    def dispatch_one(self, request: DispatchRequest) -> None:
        """Hand one message to the consume queues, the index, the others, the listeners."""
        self.consume_queues.dispatch(request)
        self._follow_up(request)

    def _follow_up(self, request: DispatchRequest) -> None:
        self.current_reput_timestamp_ms = request.store_timestamp_ms
        if self.index is not None:
            self._index_runs()
            self.index.put(request)
        self._tell(request)

    def _tell(self, request: DispatchRequest) -> None:
        for dispatcher in self.dispatchers:
            dispatcher(request)
        for listener in self.arrival_listeners:
            listener(request)

    def restart(self, physical_offset: int) -> None:
        """Go on at `physical_offset`: after a recovery, or a cut of the log."""
        self._index_runs()
        self._pending.clear()
        self.pending_messages = self.pending_bytes = 0
        self.reput_from = physical_offset


def _always(queue_key: tuple[str, int]) -> bool:
    """Show every message to whoever listens."""
    del queue_key
    return True


def _never(topic: str) -> bool:
    """Show no message for its topic alone."""
    del topic
    return False


def _complain(physical_offset: int, error: CorruptMessageError) -> None:
    _log.error("commit log: physical offset %d: %s; passed over", physical_offset, error)
