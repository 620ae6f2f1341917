"""
A whole RocketMQ store: commit log, consume queues, index, checkpoint and tables of one directory.

The order of opening is Java's (``DefaultMessageStore.load`` and ``start``): lock, abort file,
commit log, consume queues, checkpoint, index, recovery, the table of queue offsets. A clean stop
flushes all, writes checkpoint and tables and removes the abort file last.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import attrs

from logstore.host import Host
from logstore.segments.rocketmq.put_result import PutResult
from logstore.segments.rocketmq.queue import RocketMQQueue

if TYPE_CHECKING:
    from logstore.segments.rocketmq.commit_log import CommitLog
    from logstore.segments.rocketmq.dispatch import ArrivalListener, Dispatch
    from logstore.segments.rocketmq.message import Message, MessageDraft
    from logstore.segments.rocketmq.message_batch import MessageBatchDraft
    from logstore.segments.rocketmq.message_index import MessageIndex

__all__ = ["LAYOUT", "RocketMQLayout", "RocketMQStore", "StoreOptions"]

#: told (files done, files all, name of the file) while a store is loaded and recovered
Progress = Callable[[int, int, str], None]


@attrs.frozen
class StoreOptions:
    """
    How to open a store.

    `settings` are Java's keys of ``MessageStoreConfig`` (and of the broker's) by name, values as
    text. A store that is not writable takes no lock and writes nothing at all.
    """

    is_writable: bool = True
    settings: Mapping[str, str] = attrs.field(factory=dict[str, str])
    progress: Progress | None = None


class RocketMQStore:
    """
    All topics of one store directory. Implements :class:`logstore.partition.Store`.

    Public parts: `config`, `topic_table`, `subscription_groups`, `consumer_offsets`,
    `delay_offsets`, `consumer_filters` (the tables), `commit_log`, `consume_queues`, `index`,
    `checkpoint`, `dispatching` (:class:`Dispatch`), `stats`, `running_flags`.

    Raises, on opening:
        ForeignDirectoryError: it cannot be a store directory.
        LockedError: another broker has it.
        CorruptFileError: a file has not the size or the content that it must have.
    """

    commit_log: CommitLog
    index: MessageIndex
    dispatching: Dispatch

    def __init__(self, host: Host, directory: str, options: StoreOptions | None = None) -> None:
        self.host = host
        self.directory = directory
        self.options = StoreOptions() if options is None else options
        self.was_clean = True
        raise NotImplementedError

    # queues

    def topics(self) -> Mapping[str, Mapping[int, RocketMQQueue]]:
        """Return the queues of every topic by name and queue id."""
        raise NotImplementedError

    def queue(self, topic: str, queue_id: int) -> RocketMQQueue:
        """Return one queue, whether or not anything stands in it."""
        raise NotImplementedError

    def min_queue_offset(self, topic: str, queue_id: int) -> int:
        """Return the first queue offset that can be read; 0 for an unknown queue."""
        raise NotImplementedError

    def max_queue_offset(self, topic: str, queue_id: int, *, is_committed: bool = True) -> int:
        """
        Return the queue offset after the last dispatched message.

        With `is_committed` False: the queue offset that the next put gets.
        """
        raise NotImplementedError

    def delete_topics(self, topics: set[str]) -> int:
        """Remove the queues of these topics; return how many topics had any (``deleteTopics``)."""
        raise NotImplementedError

    # putting

    def put_message(self, draft: MessageDraft) -> PutResult:
        """
        Append one message; never raises for what a client or a full disk does.

        It is durable once ``commit_log.flushed_where >= result.next_physical_offset``, and can be
        read from its queue after the next :meth:`dispatch`.
        """
        raise NotImplementedError

    def put_batch(self, batch: MessageBatchDraft) -> PutResult:
        """Append all messages of a client's batch, one record each, as :meth:`put_message`."""
        raise NotImplementedError

    def append_raw(self, physical_offset: int, data: bytes | memoryview) -> bool:
        """Append bytes of a master's commit log (``appendToCommitLog``); tell whether it fitted."""
        raise NotImplementedError

    # reading

    def get_message(
        self,
        group: str,
        topic: str,
        queue_id: int,
        queue_offset: int,
        count_max: int,
        size_bytes_max: int = 128 * 1024 * 1024,
        message_filter: Any = None,
    ) -> Any:
        """Return what a pull gets: see :mod:`~logstore.segments.rocketmq.get_message`."""
        raise NotImplementedError

    def queue_offset_for_time(
        self, topic: str, queue_id: int, timestamp_ms: int, boundary: Any = None
    ) -> int:
        """Return the queue offset for a time (:mod:`~logstore.segments.rocketmq.time_lookup`)."""
        raise NotImplementedError

    def query_message(
        self, topic: str, key: str, count_max: int, begin_ms: int, end_ms: int
    ) -> Any:
        """Find messages by key: see :mod:`~logstore.segments.rocketmq.message_query`."""
        raise NotImplementedError

    def message_at(self, physical_offset: int) -> Message | None:
        """Return the message that starts at `physical_offset`, None if none does."""
        raise NotImplementedError

    def store_timestamp_at(self, topic: str, queue_id: int, queue_offset: int) -> int:
        """Return when the message at `queue_offset` was stored, -1 if it cannot be read."""
        raise NotImplementedError

    def earliest_store_timestamp_ms(self, topic: str | None = None, queue_id: int = 0) -> int:
        """Return when the oldest message (of the queue, or of the store) was stored, or -1."""
        raise NotImplementedError

    # services

    def add_arrival_listener(self, listener: ArrivalListener) -> None:
        """Have `listener` called for every message that has become readable."""
        raise NotImplementedError

    def dispatch(self) -> int:
        """Fold new commit log entries into queues and index; return how many they were."""
        raise NotImplementedError

    def tick(self) -> None:
        """Run every service that is due on the host's clock."""
        raise NotImplementedError

    def runtime(self) -> dict[str, str]:
        """Return what Java's runtime table says about the store, by Java's keys."""
        raise NotImplementedError

    def abandon(self) -> None:
        """Let go of everything as it is, as if the process had been killed."""
        raise NotImplementedError

    def close(self) -> None:
        """Stop cleanly: all durable, checkpoint, tables, no abort file, the lock released."""
        raise NotImplementedError


@attrs.frozen
class RocketMQLayout:
    """The plug of this layout (see :class:`logstore.partition.Layout`)."""

    name: str = "rocketmq"

    def recognises(self, host: Host, directory: str) -> bool:
        """Tell whether `directory` has a commit log, or consume queues with a checkpoint."""
        raise NotImplementedError

    def open(self, host: Host, directory: str, *, writable: bool = True) -> RocketMQStore:
        """Open the store, recovering it if its last stop was unclean."""
        return RocketMQStore(host, directory, StoreOptions(is_writable=writable))


LAYOUT = RocketMQLayout()
