"""
Dispatch of very many messages: a run of the commit log at once, for those who catch up.

Needs the extra ``columns``; whoever has it not dispatches one message after the other, with the
same result.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from logstore.segments.rocketmq.messages.dispatch_request import Blank, read_dispatch_request
from logstore.segments.rocketmq.queues.consume_queue import ConsumeQueue
from logstore.segments.rocketmq.queues.consume_queue_unit import UNIT
from logstore.segments.rocketmq.queues.consume_queues import can_have_queues

if TYPE_CHECKING:
    from logstore.segments.compiled.reused_memory import ReusedMemory
    from logstore.segments.rocketmq.columns.record_scan import QueueRun, RecordScan
    from logstore.segments.rocketmq.dispatch import Dispatch
    from logstore.segments.rocketmq.index.message_index import MessageIndex

#: catching up with less than this is not worth what it takes to load the compiled loops
_LOADED_BYTES_MIN = 32 * 1024 * 1024
#: nor with less than this what it takes to compile them: a quarter of a minute of a core
_COMPILED_BYTES_MIN = 512 * 1024 * 1024


def bulk_bytes_min() -> int:
    """
    Return from how many bytes of a commit log on the bulk is worth it.

    That is less where the compiled loops are kept from an earlier run. It is asked without loading
    numba, and where numba keeps them in another folder they count as not kept.
    """
    folder = Path(__file__).with_name("columns") / "__pycache__"
    is_kept = any(folder.glob("scan_loops.scan-*.nbi"))
    return _LOADED_BYTES_MIN if is_kept else _COMPILED_BYTES_MIN


class BulkDispatch:
    """
    Dispatches whole runs of checked records; see :func:`bulk_dispatch`.

    Queues that it cannot serve in bulk (of batches, with an extension) get their messages one by
    one, and so do messages that are odd.
    """

    def __init__(self, dispatching: Dispatch, index: MessageIndex | None) -> None:
        self.dispatching = dispatching
        self.queues = dispatching.consume_queues
        self.index = index
        self._memory: ReusedMemory | None = None

    def take(self, records: memoryview) -> int:
        """Dispatch every record of a run; return how many there were."""
        from logstore.segments.compiled.reused_memory import ReusedMemory
        from logstore.segments.rocketmq.columns.record_scan import scan_records

        memory = self._memory = self._memory or ReusedMemory()
        position = count = 0
        deliver_time = self.dispatching.deliver_time
        while position < len(records):
            scan = scan_records(records, position, deliver_time=deliver_time, memory=memory)
            if len(scan):
                self._take_scan(scan)
                count += len(scan)
            position = scan.end_position
            if position < len(records):
                found = read_dispatch_request(records, position, deliver_time=deliver_time)
                if isinstance(found, Blank):
                    break
                self.dispatching.dispatch_one(found)
                position += found.size_bytes
                count += 1
        return count

    def _take_scan(self, scan: RecordScan) -> None:
        from logstore.segments.rocketmq.columns import kernel

        for run in scan.queue_runs():
            if can_have_queues(run.topic):
                queue = self.queues.find_or_create(run.topic, run.queue_id)
                if isinstance(queue, ConsumeQueue) and queue.ext is None:
                    self._put_run(queue, run)
                    continue
            for row in run.rows.tolist():
                self.queues.dispatch(scan.request(row))
        last = scan.table[:, -1]
        self.queues.last_store_timestamp_ms = int(last[kernel.STORE_MS])
        self.queues.last_physical_offset = int(last[kernel.PHYSICAL_OFFSET])
        if self.index is not None:
            has_tag_keys = self.index.release.has_tag_entries
            self.index.put_many(scan.index_entries(has_tag_keys=has_tag_keys))

    def _put_run(self, queue: ConsumeQueue, run: QueueRun) -> None:
        """Put the units that the queue lacks, at once where they are the next ones."""
        units = run.units
        physical_offset, size_bytes, _ = UNIT.unpack_from(units, 0)
        last_offset, last_size_bytes, _ = UNIT.unpack_from(units, len(units) - UNIT.size)
        is_new = physical_offset + size_bytes > queue.max_physical_offset
        if is_new and run.is_dense and int(run.queue_offsets[0]) == queue.max_queue_offset:
            queue.put_run(units, queue.max_queue_offset, last_offset + last_size_bytes)
        else:
            unpacked = zip(UNIT.iter_unpack(units), run.queue_offsets.tolist(), strict=True)
            for (offset, size, tags_code), queue_offset in unpacked:
                queue.put(offset, size, tags_code, queue_offset)
        self.queues.mark_unwritten(queue)


def bulk_dispatch(dispatching: Dispatch, index: MessageIndex | None) -> BulkDispatch | None:
    """
    Return what dispatches in bulk, None where that is not possible.

    It is not where listeners or dispatchers other than the index want every message, where
    messages may go to several queues, or without the extra ``columns``.
    """
    if dispatching.arrival_listeners or dispatching.dispatchers:
        return None
    if dispatching.consume_queues.settings.multi_dispatch.is_enabled:
        return None
    try:
        from logstore.segments.compiled.loops import is_available
    except ImportError:
        return None
    return BulkDispatch(dispatching, index) if is_available() else None
