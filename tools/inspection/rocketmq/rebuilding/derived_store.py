"""Consume queues and index of a commit log, folded anew into a folder of their own."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from logstore.errors import CorruptEntryError
from logstore.host import Host
from logstore.segments.rocketmq import store_rules
from logstore.segments.rocketmq.bulk_dispatch import BulkDispatch, bulk_bytes_min, bulk_dispatch
from logstore.segments.rocketmq.dispatch import Dispatch
from logstore.segments.rocketmq.index.index_file import IndexSizes
from logstore.segments.rocketmq.index.message_index import MessageIndex
from logstore.segments.rocketmq.log.commit_log import CommitLog
from logstore.segments.rocketmq.messages.dispatch_request import (
    Blank,
    DispatchRequest,
    read_dispatch_request,
)
from logstore.segments.rocketmq.opening.checkpoint import StoreCheckpoint
from logstore.segments.rocketmq.opening.directory import COMMIT_LOG_FOLDER, INDEX_FOLDER
from logstore.segments.rocketmq.queues.consume_queue_ext import (
    ConsumeQueueExtUnit,
    is_ext_address,
)
from logstore.segments.rocketmq.queues.consume_queue_unit import UNIT, UNIT_BYTES
from logstore.segments.rocketmq.queues.consume_queues import ConsumeQueues
from logstore.tools.inspection.rocketmq.delay_times import deliver_time_of
from logstore.tools.inspection.rocketmq.log_scan import LogScan, Run, Stretch, is_long
from logstore.tools.inspection.rocketmq.stored_store import StoredStore

_EXT_UNIT_BYTES_MAX = 2**15
#: after how much of the log the units that wait in memory are written
_WRITTEN_EACH_BYTES = 8 * 1024 * 1024


@attrs.define
class DerivedStore:
    """
    What is derived from the log of `store`, made in `folder`.

    Bit maps in extensions are taken over from the old units: which consumers there were at the
    time nobody else knows. With the extra ``columns`` a large log is dispatched vectorised.
    """

    host: Host
    store: StoredStore
    folder: str
    index_sizes: IndexSizes

    def make(self, note: Callable[[int], None]) -> None:
        """
        Walk the commit log and write everything; `note` is told of bytes done.

        Raises:
            CorruptEntryError: a record in the midst of the log is damaged.
            CorruptFileError, MissingSegmentError: the files of the log are not what they must be.

        """
        store, config = self.store, self.store.config
        rules = store_rules.queue_settings(config, store.release, store.is_batch_topic)
        rules = attrs.evolve(rules, multi_dispatch=store.multi_dispatch)
        queues = ConsumeQueues(self.host, self.folder, rules)
        checkpoint = StoreCheckpoint(self.host, f"{self.folder}/checkpoint")
        index = MessageIndex(
            self.host,
            f"{self.folder}/{INDEX_FOLDER}",
            checkpoint,
            sizes=self.index_sizes,
            release=store.release,
        )
        queues.bit_map_of = self._old_bit_map
        settings = attrs.evolve(
            store_rules.commit_log_settings(config, store.settings),
            file_size_bytes=store.commit_log.size_bytes or config.commit_log_file_size_bytes,
            has_transient_store_pool=False,
        )
        log = CommitLog(
            self.host, f"{store.directory}/{COMMIT_LOG_FOLDER}", settings, is_writable=False
        )
        dispatching = Dispatch(log, queues, index, deliver_time_of(store))
        try:
            self._walk(dispatching, index, note)
            queues.flush()
            index.flush()
        finally:
            queues.close()
            index.close()
            checkpoint.close()

    def _walk(
        self, dispatching: Dispatch, index: MessageIndex, note: Callable[[int], None]
    ) -> None:
        log = self.store.commit_log
        bulk: BulkDispatch | None = None
        if is_long(log, bulk_bytes_min()):
            bulk = bulk_dispatch(dispatching, index)
        scan = LogScan(is_long=bulk is not None)
        unwritten_bytes = 0
        for number, file in enumerate(log.files):
            for piece in scan.pieces(log.open(file), file.path, file.base):
                if isinstance(piece, Run):
                    if bulk is not None:
                        bulk.take(piece.data)
                    else:
                        _dispatch_each(dispatching, piece.data)
                    unwritten_bytes += len(piece.data)
                    if unwritten_bytes >= _WRITTEN_EACH_BYTES:
                        dispatching.consume_queues.write()
                        unwritten_bytes = 0
                    note(len(piece.data))
                elif isinstance(piece, Stretch) and (
                    piece.is_followed or number + 1 < len(log.files)
                ):
                    raise CorruptEntryError(
                        file.path,
                        piece.position,
                        f"{piece.reason}; what was there is lost: logstore salvage takes the rest "
                        "into a new store",
                    )
        log.close()

    def _old_bit_map(self, request: DispatchRequest) -> bytes | None:
        queue = self.store.queues.get((request.topic, request.queue_id))
        if queue is None or queue.ext is None:
            return None
        data = queue.files.read(request.queue_offset * UNIT_BYTES, UNIT_BYTES)
        if len(data) < UNIT_BYTES:
            return None
        physical_offset, _, tags_code = UNIT.unpack(data)
        if physical_offset != request.physical_offset or not is_ext_address(tags_code):
            return None
        unit = ConsumeQueueExtUnit.decode(queue.ext.read(tags_code + 2**63, _EXT_UNIT_BYTES_MAX))
        is_its = unit is not None and unit.store_timestamp_ms == request.store_timestamp_ms
        return unit.filter_bit_map if unit is not None and is_its else None


def _dispatch_each(dispatching: Dispatch, records: memoryview) -> None:
    position = 0
    while position < len(records):
        found = read_dispatch_request(records, position, deliver_time=dispatching.deliver_time)
        if isinstance(found, Blank):
            return
        dispatching.dispatch_one(found)
        position += found.size_bytes
