"""
One share fetch: reads where its share-partitions want to go on, acquires, or waits until it can.

It waits while nothing can be acquired, or less than the minimal bytes are there. Woken it is by
appends, and by records that somebody gave back or let time out. The bytes are shared out evenly
among the partitions that can give something. What a fetch has to open first is given partition by
partition: a real broker reads their states beside the fetch, and answers once the first has
something. A partition that cannot be opened is told with an answer that had to wait, which it does
not hasten, or that is about nothing else.

Source: ``SharePartitionManager.processShareFetch``, ``DelayedShareFetch``, ``ShareFetchUtils``,
``PartitionMaxBytesStrategy``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from logstore.compat.kafka.refusals import code_of
from logstore.compat.kafka.refused_request import RefusedRequestError
from logstore.compat.kafka.share_reads.fetch_reply import FetchedPartition
from logstore.compat.kafka.share_reads.fetched_batches import FetchedBatches
from logstore.compat.kafka.share_reads.share_sessions import PartitionKey
from logstore.compat.waiting import Later
from logstore.errors import LogStoreError, OffsetOutOfRangeError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.share_reads.acquisition import Acquirer
    from logstore.compat.kafka.share_reads.share_partition import SharePartition
    from logstore.compat.kafka.share_reads.share_partitions import SharePartitions
    from logstore.segment import Extent
    from logstore.segments.kafka.transaction_index import AbortedTransaction


class FetchWish(NamedTuple):
    """How much is wanted, and how long somebody waits for it."""

    max_wait_ms: int
    bytes_min: int
    bytes_max: int
    is_read_committed: bool


class _Read(NamedTuple):
    """What stands in the log where a share-partition wants to go on."""

    partition: SharePartition
    offset: int
    extent: Extent | None = None
    aborted: Sequence[AbortedTransaction] = ()
    error: Exception | None = None


class ShareFetch:
    """Fetches for one member."""

    def __init__(
        self,
        broker: Broker,
        open_partitions: SharePartitions,
        group_id: str,
        acquirer: Acquirer,
        wish: FetchWish,
    ) -> None:
        self._broker = broker
        self._open_partitions = open_partitions
        self._group_id = group_id
        self._acquirer = acquirer
        self._wish = wish
        self._partitions: list[SharePartition] = []
        self._failed: list[FetchedPartition] = []

    def start(
        self, wanted: Sequence[PartitionKey], connection: object
    ) -> list[FetchedPartition] | Later[list[FetchedPartition]]:
        """Fetch of these partitions, in this order, for a client whose end is the wait's end."""
        if not wanted or self._acquirer.record_count_max == 0 or self._wish.bytes_max <= 0:
            return []
        fresh: list[SharePartition] = []
        for key in wanted:
            was_open = self._open_partitions.get(self._group_id, key) is not None
            try:
                partition = self._open_partitions.opened(self._group_id, key)
            except RefusedRequestError as error:
                self._failed.append(FetchedPartition(key, error.code))
                continue
            self._partitions.append(partition)
            if not was_open:
                fresh.append(partition)
        if not self._partitions:
            return self._failed
        found = self._look_early(fresh)
        if found is None:
            found = self._look(is_over=self._wish.max_wait_ms <= 0)
        return self._wait(connection) if found is None else found

    def _look_early(self, fresh: Sequence[SharePartition]) -> list[FetchedPartition] | None:
        """Look without those just opened, then with the first of them that has something."""
        everything = self._partitions
        first = next((at for at, some in enumerate(fresh) if self._has_something(some)), None)
        behind = fresh if first is None else fresh[first + 1 :]
        try:
            for left_out in (set(fresh), set(behind)):
                self._partitions = [some for some in everything if some not in left_out]
                found = self._look(is_over=False)
                if found is not None:
                    return found
        finally:
            self._partitions = everything
        return None

    def _has_something(self, partition: SharePartition) -> bool:
        offset = partition.next_fetch_offset()
        if offset is None:
            return False
        read = self._read(partition, offset, 1, is_first=True)
        return read.error is not None or (read.extent is not None and read.extent.size_bytes > 0)

    def _look(self, *, is_over: bool) -> list[FetchedPartition] | None:
        """Acquire if there is enough; what there is when the time is over. None: go on waiting."""
        reads = self._read_all()
        is_enough = bool(reads) and (
            any(read.error is not None for read in reads)
            or sum(read.extent.size_bytes for read in reads if read.extent is not None)
            >= self._wish.bytes_min
        )
        if not (is_enough or is_over):
            return None
        found: list[FetchedPartition] = []
        count = 0
        for read in reads:
            result = self._acquire(read, count)
            count += sum(some.offset_count for some in result.acquired)
            found.append(result)
        return found

    # reading

    def _read_all(self) -> list[_Read]:
        """Read, unseen, what those of the partitions have that can give anything."""
        ready = [
            (partition, offset)
            for partition in self._partitions
            if (offset := partition.next_fetch_offset()) is not None
        ]
        reads: list[_Read] = []
        left, is_first = self._wish.bytes_max, True
        for (partition, offset), share in zip(ready, self._shares(len(ready)), strict=True):
            read = self._read(partition, offset, min(share, left), is_first=is_first)
            reads.append(read)
            if read.extent is not None and read.extent.size_bytes:
                left -= read.extent.size_bytes
                is_first = False
        return reads

    def _shares(self, count: int) -> Iterable[int]:
        """Share the bytes out evenly; what is left over goes to one by chance."""
        bytes_max, random = self._wish.bytes_max, self._broker.host.rng
        if not count:
            return ()
        first = random.randrange(count)
        if bytes_max < count:  # so many get one byte, that is one batch
            chosen = {(first + index) % count for index in range(bytes_max)}
            return [int(index in chosen) for index in range(count)]
        share, rest = divmod(bytes_max, count)
        return [share + (rest if index == first else 0) for index in range(count)]

    def _read(
        self, partition: SharePartition, offset: int, size_bytes_max: int, *, is_first: bool
    ) -> _Read:
        log = partition.log
        size_bytes_max = max(size_bytes_max, 0)
        if not (size_bytes_max or is_first):
            return _Read(partition, offset)
        try:
            if self._wish.is_read_committed:
                committed = log.read_committed(offset, size_bytes_max, is_first_whole=is_first)
                return _Read(partition, offset, committed.extent, committed.aborted)
            extent = log.read(offset, size_bytes_max, is_first_whole=is_first)
            return _Read(partition, offset, extent)
        except (LogStoreError, OSError) as error:
            return _Read(partition, offset, error=error)

    # acquiring

    def _acquire(self, read: _Read, count: int) -> FetchedPartition:
        """Acquire of what one partition has, `count` records being acquired already."""
        partition = read.partition
        found = FetchedPartition(PartitionKey(partition.key.topic_id, partition.key.partition))
        if isinstance(read.error, OffsetOutOfRangeError):
            partition.move_start(partition.log.start_offset)  # and the client tries again
            return found
        if read.error is not None:
            found.error_code = code_of(read.error)
            return found
        acquirer = self._acquirer._replace(record_count_max=self._acquirer.record_count_max - count)
        fetched = FetchedBatches.read(
            read.extent, read.offset, partition.records.end_offset, acquirer.record_count_max
        )
        if fetched is None:
            return found
        if not partition.log.keeps_batches:
            fetched = fetched._replace(are_made=True)
        found.acquired = partition.acquire(acquirer, read.offset, fetched, read.aborted)
        if found.acquired:
            found.extent = fetched.slice(
                found.acquired[0].first_offset, found.acquired[-1].last_offset
            )
        return found

    # waiting

    def _wait(self, connection: object) -> Later[list[FetchedPartition]]:
        later: Later[list[FetchedPartition]] = Later()
        broker, waiting = self._broker, self._open_partitions.waiting

        def look_again(*, is_over: bool = False) -> None:
            if later.done:
                return
            try:
                found = self._look(is_over=is_over)
            except Exception as error:  # noqa: BLE001 - a fault of ours ends this wait, and no other
                leave()
                later.fail(error)
                return
            if found is not None:
                leave()
                later.answer(found + self._failed)

        def leave() -> None:
            timer.cancel()
            forget()
            waiting.pop(connection, None)

        logs = [partition.log for partition in self._partitions]
        forget = broker.readers.wait([*logs, *self._partitions], look_again)
        timer = broker.timers.after(self._wish.max_wait_ms, lambda: look_again(is_over=True))
        waiting[connection] = leave
        return later
