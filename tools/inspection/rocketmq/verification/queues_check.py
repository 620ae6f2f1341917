"""All queues of a store held against its commit log."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from logstore.segments.rocketmq.messages.dispatch_request import DispatchRequest
from logstore.segments.rocketmq.messages.system_flags import is_queued
from logstore.tools.inspection.rocketmq.stored_store import QueueKey, StoredStore
from logstore.tools.inspection.rocketmq.verification.log_range import WalkedPart
from logstore.tools.inspection.rocketmq.verification.queue_check import QueueCheck
from logstore.tools.inspection.verification.finding import Finding, Severity

if TYPE_CHECKING:
    from logstore.segments.rocketmq.columns.record_scan import RecordScan
    from logstore.tools.inspection.rocketmq.verification.followed_log import FollowedLog

_NAMED = b"INNER_MULTI_DISPATCH\x01"
#: of how many queues files are open at a time
_OPEN_MAX = 256


class QueuesCheck:
    """Follows the commit log for every queue."""

    def __init__(self, store: StoredStore) -> None:
        self.store = store
        self.without_queue: Counter[QueueKey] = Counter()
        self._rule = store.multi_dispatch
        self._open: OrderedDict[QueueKey, QueueCheck] = OrderedDict()
        self.known_end = -1
        self.checks = self._all_checks()

    def _all_checks(self) -> Mapping[QueueKey, QueueCheck]:
        """Return the check of every queue; `known_end` is then as far as any of them leads."""
        checks: dict[QueueKey, QueueCheck] = {}
        for key, queue in self.store.queues.items():
            check = checks[key] = QueueCheck(self.store, queue)
            self.known_end = max(self.known_end, check.max_physical_offset)
            check.close()
        return checks

    def _check(self, key: QueueKey) -> QueueCheck | None:
        """Return the check of a queue that a message goes to, None where there is no queue."""
        check = self.checks.get(key)
        if check is not None:
            self._open[key] = check
            self._open.move_to_end(key)
            if len(self._open) > _OPEN_MAX:
                self._open.popitem(last=False)[1].close()
        return check

    def take(self, request: DispatchRequest) -> None:
        """Hold a message against its unit, and against those of light queues that it names."""
        if not is_queued(request.sys_flag):
            return
        self._take(request, request.topic, request.queue_id, request.queue_offset)
        if self._rule.is_enabled and _NAMED in request.properties_text:
            named = self._rule.units(request.topic, request.queue_id, request.properties)
            for name, queue_id, queue_offset in named:
                self._take(request, name, queue_id, queue_offset)

    @property
    def takes_scans(self) -> bool:
        """Tell whether messages may be taken in bulk: not where they name other queues."""
        return not self._rule.is_enabled

    def take_scan(self, scan: RecordScan) -> None:
        """Hold many messages against their units, as :meth:`take` does with each."""
        for run in scan.queue_runs():
            check = self._check((run.topic, run.queue_id))
            if check is None:
                self.without_queue[run.topic, run.queue_id] += len(run.rows)
                continue
            if run.is_dense and check.take_run(run.units, int(run.queue_offsets[0])):
                continue
            pairs = zip(run.rows.tolist(), run.queue_offsets.tolist(), strict=True)
            for row, queue_offset in pairs:
                self._hold(check, scan.request(row), queue_offset)

    def _take(self, request: DispatchRequest, topic: str, queue_id: int, number: int) -> None:
        check = self._check((topic, queue_id))
        if check is None:
            self.without_queue[topic, queue_id] += 1
        else:
            self._hold(check, request, number)

    def _hold(self, check: QueueCheck, request: DispatchRequest, number: int) -> None:
        check.take(request, number)

    def take_part(self, part: WalkedPart) -> None:
        """Take over what messages said of their units where they were walked."""
        for key, marks in part.queues.items():
            check = self.checks[key]
            for start, end in marks.right:
                check.see(start, end)
            check.missing.update(marks.missing)
            check.wrong.update(marks.wrong)
        self.without_queue.update(part.without_queue)
        for (topic, queue_id), number, request in part.batches:
            self._take(request, topic, queue_id, number)

    def findings(self, log: FollowedLog) -> Iterator[Finding]:
        """Yield what is wrong, queue by queue."""
        for check in self.checks.values():
            yield from check.findings(log)
        if self.store.rocksdb_folder is not None:
            return
        for (topic, queue_id), count in sorted(self.without_queue.items()):
            is_known = not self.store.is_deleted(topic)
            folder = "batchconsumequeue" if self.store.is_batch_topic(topic) else "consumequeue"
            if is_known:
                said = f"is missing: {count} messages have no unit; logstore reindex makes it"
            else:
                said = f"there is none for {count} messages: the topic was deleted"
            yield Finding(
                "queue-missing",
                f"{folder}/{topic}/{queue_id}",
                said,
                severity=Severity.DAMAGE if is_known and self.store.was_clean else Severity.NOTE,
            )
