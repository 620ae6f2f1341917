"""
All consume queues of a store, of both kinds, and the folding of messages into them.

``consumequeue/<topic>/<queue id>`` holds queues of 20-byte units, ``batchconsumequeue`` those of
topics with ``queue.type=BatchCQ``. A queue is made when the first message for it is dispatched.

Source: ``ConsumeQueueStore`` (5.x), ``DefaultMessageStore`` (4.9.8).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import attrs

from logstore.errors import CorruptFileError
from logstore.segments.rocketmq.files.whole_removal import remove_leftovers, remove_whole
from logstore.segments.rocketmq.messages.dispatch_request import (
    SCHEDULE_TOPIC,
    DeliverTime,
    dispatched_tags_code,
    request_of,
)
from logstore.segments.rocketmq.messages.system_flags import TRANSACTION_MASK, is_queued
from logstore.segments.rocketmq.putting.multi_dispatch import MultiDispatch
from logstore.segments.rocketmq.queues.batch_consume_queue import BatchConsumeQueue, BatchUnit
from logstore.segments.rocketmq.queues.consume_queue import ConsumeQueue
from logstore.segments.rocketmq.queues.consume_queue_ext import ConsumeQueueExt, ConsumeQueueExtUnit
from logstore.segments.rocketmq.queues.queue_offsets import QueueKey, QueueOffsets

if TYPE_CHECKING:
    from logstore.host import Host
    from logstore.segments.rocketmq.messages.dispatch_request import DispatchRequest
    from logstore.segments.rocketmq.messages.message_batch import MessageBatchDraft
    from logstore.segments.rocketmq.messages.message_draft import MessageDraft
    from logstore.segments.rocketmq.messages.message_run import MessageRun

AnyQueue = ConsumeQueue | BatchConsumeQueue

SIMPLE_FOLDER = "consumequeue"
EXT_FOLDER = "consumequeue_ext"
BATCH_FOLDER = "batchconsumequeue"

_INNER = b"INNER_MULTI_DISPATCH\x01"
_NO_QUEUE = "commit log: physical offset %d: the topic %r can have no directory; passed over"
_log = logging.getLogger(__name__)


def can_have_queues(topic: str) -> bool:
    """Tell whether a topic can name a directory: no checksum covers it, and it may be damaged."""
    return topic not in ("", ".", "..") and "/" not in topic and "\0" not in topic


@attrs.frozen
class QueueSettings:
    """
    What ``MessageStoreConfig`` says about queues' files.

    `is_batch_topic` tells whether a topic's queues are batch queues (``queue.type``), None of one
    that is not there.
    """

    file_size_bytes: int = 6_000_000
    batch_file_size_bytes: int = 13_800_000
    ext_file_size_bytes: int = 48 * 1024 * 1024
    has_ext: bool = False
    is_batch_topic: Callable[[str], bool | None] = attrs.field(default=lambda _: False)
    multi_dispatch: MultiDispatch = attrs.field(factory=MultiDispatch)


def _known_by(queue: AnyQueue) -> int:
    """Return where the last message of a queue ends; of a batch it knows only where it begins."""
    offset = queue.max_physical_offset
    return offset + 1 if isinstance(queue, BatchConsumeQueue) and offset >= 0 else offset


class ConsumeQueues:
    """
    The consume queues by (topic, queue id).

    `bit_map_of` may say which filters a message passes (``CommitLogDispatcherCalcBitMap``); it is
    kept in the consume queue extension, where that is on.
    """

    def __init__(
        self,
        host: Host,
        directory: str,
        settings: QueueSettings,
        *,
        is_clean: bool = True,
        is_writable: bool = True,
    ) -> None:
        self.host = host
        self.directory = directory
        self.settings = settings
        self.is_clean = is_clean
        self.is_writable = is_writable
        self.by_key: dict[QueueKey, AnyQueue] = {}
        self.bit_map_of: Callable[[DispatchRequest], bytes | None] = _no_bit_map
        #: store time and physical offset of the last message that went into a queue, -1 before
        self.last_store_timestamp_ms = 0
        self.last_physical_offset = -1
        #: queues with units that wait, in the order in which they are written
        self._unwritten: dict[AnyQueue, None] = {}
        self.multi_dispatch = settings.multi_dispatch

    # loading

    def load(self) -> None:
        """
        Open every queue that has a directory.

        A topic that is not there may have left a folder of either kind: the power went while it
        was deleted.

        Raises:
            CorruptFileError: a file has a wrong size, or a folder is of the other kind than the
                topic's ``queue.type``.

        """
        if self.is_writable and not self.is_clean:
            self._remove_leftovers()
        for folder, is_batch in ((SIMPLE_FOLDER, False), (BATCH_FOLDER, True)):
            for topic, queue_id in self._stored(f"{self.directory}/{folder}"):
                if self.settings.is_batch_topic(topic) not in (is_batch, None):
                    raise CorruptFileError(
                        f"{self.directory}/{folder}/{topic}",
                        f"the queue.type of topic {topic} in config/topics.json is "
                        f"{'SimpleCQ' if is_batch else 'BatchCQ'}; correct it, or move the folder "
                        "away to have the queues made anew",
                    )
                self._open(topic, queue_id, is_batch=is_batch)

    def _remove_leftovers(self) -> None:
        """Finish the removal of queues that a crash has interrupted."""
        fs = self.host.fs
        for folder in (SIMPLE_FOLDER, EXT_FOLDER, BATCH_FOLDER):
            path = f"{self.directory}/{folder}"
            topics = fs.list_directory(path) if fs.is_directory(path) else []
            for topic in topics:
                if topic.is_directory and remove_leftovers(fs, f"{path}/{topic.name}"):
                    self.remove_topic_folders(topic.name)

    def _stored(self, folder: str) -> Iterator[QueueKey]:
        """Yield the queues that have a directory in `folder`; whatever else stands there stays."""
        fs = self.host.fs
        if not fs.is_directory(folder):
            return
        for topic in fs.list_directory(folder):
            if not topic.is_directory:
                continue
            for queue in fs.list_directory(f"{folder}/{topic.name}"):
                if queue.is_directory and _is_number(queue.name):
                    yield topic.name, int(queue.name)

    def _open(self, topic: str, queue_id: int, *, is_batch: bool) -> AnyQueue:
        settings = self.settings
        place = f"{topic}/{queue_id}"
        queue: AnyQueue
        if is_batch:
            queue = BatchConsumeQueue(
                self.host,
                f"{self.directory}/{BATCH_FOLDER}/{place}",
                topic,
                queue_id,
                file_size_bytes=settings.batch_file_size_bytes,
                is_clean=self.is_clean,
                is_writable=self.is_writable,
            )
        else:
            ext: ConsumeQueueExt | None = None
            if settings.has_ext:
                ext = ConsumeQueueExt(
                    self.host,
                    f"{self.directory}/{EXT_FOLDER}/{place}",
                    file_size_bytes=settings.ext_file_size_bytes,
                    is_clean=self.is_clean,
                    is_writable=self.is_writable,
                )
            queue = ConsumeQueue(
                self.host,
                f"{self.directory}/{SIMPLE_FOLDER}/{place}",
                topic,
                queue_id,
                file_size_bytes=settings.file_size_bytes,
                is_clean=self.is_clean,
                is_writable=self.is_writable,
                ext=ext,
            )
        self.by_key[topic, queue_id] = queue
        return queue

    def recover(self, durable_until: int | None = None) -> None:
        """Find the end of every queue; all units up to that physical offset are on the disk."""
        for queue in self.by_key.values():
            queue.recover(durable_until)

    # access

    def __iter__(self) -> Iterator[AnyQueue]:
        return iter(list(self.by_key.values()))

    def get(self, topic: str, queue_id: int) -> AnyQueue | None:
        """Return a queue, None if nothing was ever dispatched to it."""
        return self.by_key.get((topic, queue_id))

    def find_or_create(self, topic: str, queue_id: int) -> AnyQueue:
        """Return a queue, a new one if need be; its files are made with the first unit."""
        found = self.by_key.get((topic, queue_id))
        if found is not None:
            return found
        return self._open(topic, queue_id, is_batch=bool(self.settings.is_batch_topic(topic)))

    def of_topic(self, topic: str) -> dict[int, AnyQueue]:
        """Return the queues of a topic by queue id."""
        return {number: queue for (name, number), queue in self.by_key.items() if name == topic}

    @property
    def max_physical_offset(self) -> int:
        """Up to which physical offset some queue knows messages, -1 without units."""
        return max(map(_known_by, self.by_key.values()), default=-1)

    @property
    def cut_physical_offset(self) -> int | None:
        """
        Up to which physical offset queues know messages that end before a bad unit; None without.

        Java goes on where the others end, and all messages of such a queue between are in no queue.
        """
        return min((_known_by(one) for one in self.by_key.values() if one.is_cut), default=None)

    # dispatch

    def dispatch(self, request: DispatchRequest) -> None:
        """Give a message its unit (``CommitLogDispatcherBuildConsumeQueue``)."""
        sys_flag = request.sys_flag
        if sys_flag & TRANSACTION_MASK and not is_queued(sys_flag):
            return
        topic, queue_id = request.topic, request.queue_id
        physical_offset = request.physical_offset
        queue = self.by_key.get((topic, queue_id))
        if queue is None:
            if not can_have_queues(topic):
                _log.error(_NO_QUEUE, physical_offset, topic)
                return
            queue = self.find_or_create(topic, queue_id)
        if isinstance(queue, ConsumeQueue):
            tags_code = request.tags_code
            if queue.ext is not None:
                tags_code = self._ext_address(queue, request)
            queue.put(physical_offset, request.size_bytes, tags_code, request.queue_offset)
            if self.multi_dispatch.is_enabled and _INNER in request.properties_text:
                self._dispatch_to_named(request)
        else:
            queue.put(batch_unit(request))
        self._unwritten[queue] = None
        self.last_store_timestamp_ms = request.store_timestamp_ms
        self.last_physical_offset = physical_offset

    def dispatch_drafts(
        self, drafts: Sequence[MessageDraft], deliver_time: DeliverTime | None
    ) -> None:
        """Give messages that were just put their units."""
        by_key, unwritten = self.by_key, self._unwritten
        is_plain = not self.multi_dispatch.is_enabled
        last: MessageDraft | None = None
        for draft in drafts:
            topic = draft.topic
            queue = by_key.get((topic, draft.queue_id))
            if (
                not is_plain
                or not isinstance(queue, ConsumeQueue)
                or queue.ext is not None
                or not is_queued(draft.sys_flag)
            ):
                self.dispatch(request_of(draft, deliver_time))
                last = None
                continue
            shape = draft.shape
            if shape is None or topic == SCHEDULE_TOPIC:
                text = draft.properties_text
                code = dispatched_tags_code(topic, text, draft.store_timestamp_ms, deliver_time)
            else:
                code = shape.tags_code
            queue.put(draft.physical_offset, draft.size_bytes, code, draft.queue_offset)
            unwritten[queue] = None
            last = draft
        if last is not None:
            self.last_store_timestamp_ms = last.store_timestamp_ms
            self.last_physical_offset = last.physical_offset

    def dispatch_run(self, run: MessageRun, deliver_time: DeliverTime | None = None) -> None:
        """Give all messages of a run their units."""
        by_key, unwritten = self.by_key, self._unwritten
        is_plain = not self.multi_dispatch.is_enabled
        for place, message in enumerate(run.stored):
            kind, physical_offset, size_bytes, queue_offset, _ = message
            queue = by_key.get(kind.queue_key)
            if is_plain and isinstance(queue, ConsumeQueue) and queue.ext is None:
                code = kind.tags_code
                if kind.delay_level:
                    code = run.tags_code_of(kind, deliver_time)
                queue.put(physical_offset, size_bytes, code, queue_offset)
                unwritten[queue] = None
            else:
                self.dispatch(run.dispatch_request(place, deliver_time))
        self.last_store_timestamp_ms = run.store_timestamp_ms
        self.last_physical_offset = run.stored[-1][1]

    def dispatch_batch(self, batch: MessageBatchDraft) -> bool:
        """Give all messages of a batch their units at once; False where that is not possible."""
        queue = self.find_or_create(batch.topic, batch.queue_id)
        if (
            not isinstance(queue, ConsumeQueue)
            or queue.ext is not None
            or self.multi_dispatch.is_enabled
        ):
            return False
        if batch.queue_offset != queue.max_queue_offset:
            return False
        last_physical_offset = batch.physical_offsets[-1]
        if last_physical_offset < queue.max_physical_offset:
            return False
        queue.put_run(batch.units(), batch.queue_offset, batch.next_offset)
        self._unwritten[queue] = None
        self.last_store_timestamp_ms = batch.store_timestamp_ms
        self.last_physical_offset = last_physical_offset
        return True

    def _ext_address(self, queue: ConsumeQueue, request: DispatchRequest) -> int:
        """Put what the extension holds of a message there; return what the unit has instead."""
        if request.next_physical_offset <= queue.max_physical_offset or queue.ext is None:
            return request.tags_code  # it is in the queue already
        address = queue.ext.put(
            ConsumeQueueExtUnit(
                request.tags_code, request.store_timestamp_ms, self.bit_map_of(request)
            )
        )
        return request.tags_code if address is None else address

    def _dispatch_to_named(self, request: DispatchRequest) -> None:
        """Give the queues that a message names their units, too."""
        named = self.multi_dispatch.units(request.topic, request.queue_id, request.properties)
        for name, queue_id, queue_offset in named:
            if not can_have_queues(name):
                _log.error(_NO_QUEUE, request.physical_offset, name)
                continue
            queue = self.find_or_create(name, queue_id)
            if isinstance(queue, ConsumeQueue):
                queue.put(
                    request.physical_offset, request.size_bytes, request.tags_code, queue_offset
                )
                self._unwritten[queue] = None

    def mark_unwritten(self, queue: AnyQueue) -> None:
        """Say that units were put into a queue behind this table's back."""
        self._unwritten[queue] = None

    def write(self) -> None:
        """
        Put the units that wait into their files, one write a queue.

        Raises:
            WriteFailedError: the disk refused; the units that are not written wait on.

        """
        while self._unwritten:
            queue = next(iter(self._unwritten))
            queue.write()
            del self._unwritten[queue]

    # recovery and cleaning

    def truncate_dirty(self, physical_offset: int) -> None:
        """Let go of units at or above `physical_offset` (``truncateDirty``)."""
        for queue in self:
            is_batch = isinstance(queue, BatchConsumeQueue)  # knows where its last unit begins
            if queue.max_physical_offset > physical_offset - is_batch:
                queue.truncate_dirty(physical_offset)

    def settle(self) -> None:
        """Zero what recovery left behind the queues' ends, before anything is appended."""
        for queue in self:
            queue.settle()

    def recovered_queue_offsets(self, min_physical_offset: int) -> QueueOffsets:
        """Correct every queue's minimum; return where each goes on (``recoverOffsetTable``)."""
        offsets = QueueOffsets({key: queue.max_queue_offset for key, queue in self.by_key.items()})
        self.correct_min(min_physical_offset)
        return offsets

    def correct_min(self, min_physical_offset: int) -> None:
        """Move every queue's minimum to its first message that is there."""
        for queue in self:
            queue.correct_min(min_physical_offset)

    def delete_below(self, min_physical_offset: int) -> int:
        """Remove files whose messages are all gone; count them."""
        return sum(queue.delete_below(min_physical_offset) for queue in self)

    def remove(self, topic: str, queue_id: int) -> None:
        """Remove a queue with all its files; what was made of it stays in the commit log."""
        queue = self.by_key.get((topic, queue_id))
        if queue is not None:
            queue.destroy()
            self._unwritten.pop(queue, None)
            del self.by_key[topic, queue_id]

    def remove_other_kind(self, topic: str, *, is_batch: bool) -> list[int]:
        """
        Remove what a deleted topic has left for a new one of its name whose queues are others.

        No start would take queues of both kinds. Returns the numbers of those that were known.
        """
        removed = [
            queue_id
            for queue_id, queue in self.of_topic(topic).items()
            if isinstance(queue, BatchConsumeQueue) is not is_batch
        ]
        for queue_id in removed:
            self.remove(topic, queue_id)
        path = f"{self.directory}/{SIMPLE_FOLDER if is_batch else BATCH_FOLDER}/{topic}"
        if self.host.fs.is_directory(path):
            for entry in self.host.fs.list_directory(path):
                if entry.is_directory and _is_number(entry.name):
                    remove_whole(self.host.fs, f"{path}/{entry.name}")
            self.remove_topic_folders(topic)
        return removed

    def remove_topic_folders(self, topic: str) -> None:
        """Remove the folders of a topic that has no queues any more."""
        for folder in (SIMPLE_FOLDER, EXT_FOLDER, BATCH_FOLDER):
            path = f"{self.directory}/{folder}/{topic}"
            if self.host.fs.is_directory(path) and not self.host.fs.list_directory(path):
                self.host.fs.remove_directory(path)

    # lasting

    def flush(self, least_pages: int = 0) -> None:
        """Write what waits and sync every queue that has so many pages to sync (0: any)."""
        self.write()
        for queue in self:
            queue.flush(least_pages)

    def close(self) -> None:
        """Let go of all files."""
        for queue in self:
            queue.close()


def _is_number(name: str) -> bool:
    return name.isascii() and name.isdigit()


def batch_unit(request: DispatchRequest) -> BatchUnit:
    """Return the unit of an inner batch; a single message counts as a batch of one."""
    first, count = request.message_base_offset, request.batch_size
    if count < 0:
        first, count = request.queue_offset, 1
    return BatchUnit(
        request.physical_offset,
        request.size_bytes,
        request.tags_code,
        request.store_timestamp_ms,
        first,
        count,
    )


def _no_bit_map(request: DispatchRequest) -> bytes | None:
    """No filter is evaluated ahead."""
    del request
    return None
