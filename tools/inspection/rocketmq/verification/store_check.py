"""The verification of a whole store: one walk over the commit log, all else held against it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from logstore.host import FileSystem
from logstore.segments.rocketmq.bulk_dispatch import bulk_bytes_min
from logstore.tools.inspection.rocketmq.delay_times import deliver_time_of
from logstore.tools.inspection.rocketmq.log_scan import is_long
from logstore.tools.inspection.rocketmq.stored_store import StoredStore
from logstore.tools.inspection.rocketmq.verification.followed_log import (
    FollowedLog,
    Follower,
    ScanFollower,
)
from logstore.tools.inspection.rocketmq.verification.index_check import IndexCheck
from logstore.tools.inspection.rocketmq.verification.queues_check import QueuesCheck
from logstore.tools.inspection.rocketmq.verification.small_files import (
    checkpoint_findings,
    table_findings,
    timer_findings,
    topic_findings,
)
from logstore.tools.inspection.verification.finding import Finding, Severity

if TYPE_CHECKING:
    from logstore.tools.inspection.rocketmq.verification.walked_log import Walks

Progress = Callable[[int, int], None]


class StoreCheck:
    """
    The verification of the store in `directory`; `settings` are those that no file tells.

    Raises:
        ForeignDirectoryError: there is no such directory.

    """

    def __init__(self, fs: FileSystem, directory: str, settings: Mapping[str, str]) -> None:
        self.store = StoredStore(fs, directory, settings)
        self._settings = settings

    def findings(
        self, progress: Progress | None = None, walks: Walks | None = None
    ) -> Iterator[Finding]:
        """
        Yield every finding; `progress` is told (done, all) bytes.

        `walks` says where pieces of the store are walked, if not one after the other here.
        """
        store = self.store
        queues = QueuesCheck(store)
        if walks is None:
            log, index = self._log(queues)
            note = self._meter(progress)
        else:
            log, index = self._walked_log(queues, walks, progress)
            note = _ignore
        yield from self._state()
        yield from log.findings(note)
        yield from queues.findings(log)
        if index is not None:
            yield from index.findings(log)
        elif log.message_count:
            yield self._without_index()
        yield from checkpoint_findings(store, log)
        yield from table_findings(store)
        yield from topic_findings(store)
        yield from timer_findings(store, log)

    def _log(self, queues: QueuesCheck) -> tuple[FollowedLog, IndexCheck | None]:
        """Return the commit log and the check of the index, which follows it."""
        store = self.store
        followers: list[Follower] = [queues.take]
        in_bulk: list[ScanFollower] | None = None
        if queues.takes_scans and is_long(store.commit_log, bulk_bytes_min()) and _has_loops():
            in_bulk = [queues.take_scan]
        index = self._index_check(followers, in_bulk)
        delays = deliver_time_of(store)
        log = FollowedLog(store, delays, followers, queues.known_end, scan_followers=in_bulk)
        return log, index

    def _walked_log(
        self, queues: QueuesCheck, walks: Walks, progress: Progress | None
    ) -> tuple[FollowedLog, IndexCheck | None]:
        """Return the same, of pieces that `walks` walks."""
        from logstore.tools.inspection.rocketmq.verification.compiled import resumed_index_check
        from logstore.tools.inspection.rocketmq.verification.walked_log import (
            WalkedLog,
            walk_pieces,
        )

        store, sizes = self.store, self.store.index_sizes
        followers: list[Follower] = [queues.take]
        in_bulk: list[ScanFollower] = [queues.take_scan]
        index = None
        if sizes is not None:
            index = resumed_index_check.ResumedIndexCheck(store, sizes)
            followers.append(index.take)
            in_bulk.append(index.take_scan)
        log = WalkedLog(
            store,
            deliver_time_of(store),
            followers,
            queues.known_end,
            scan_followers=in_bulk if queues.takes_scans else None,
            queues=queues,
            index=index,
            walked=walk_pieces(store, self._settings, index, walks, progress),
        )
        return log, index

    def _meter(self, progress: Progress | None) -> Callable[[int], None]:
        done, total = 0, sum(file.size_bytes for file in self.store.commit_log.files)

        def note(size_bytes: int) -> None:
            nonlocal done
            done += size_bytes
            if progress is not None:
                progress(done, total)

        return note

    def _index_check(
        self, followers: list[Follower], in_bulk: list[ScanFollower] | None
    ) -> IndexCheck | None:
        """Return the check of the index, which follows the log; None where it cannot be read."""
        sizes = self.store.index_sizes
        if sizes is None:
            return None
        if in_bulk is None:
            index = IndexCheck(self.store, sizes)
        else:
            from logstore.tools.inspection.rocketmq.verification.compiled.bulk_index_check import (
                BulkIndexCheck,
            )

            index = bulk = BulkIndexCheck(self.store, sizes)
            in_bulk.append(bulk.take_scan)
        followers.append(index.take)
        return index

    def _state(self) -> Iterator[Finding]:
        store = self.store
        if store.process is not None:
            said = f"process {store.process} has the store open: what it just wrote may look wrong"
            yield Finding("in-use", "lock", said, severity=Severity.NOTE)
        elif not store.was_clean:
            said = "the last broker did not stop cleanly: the next start recovers the store"
            yield Finding("abort", "abort", said, severity=Severity.NOTE)
        if store.rocksdb_folder is not None:
            said = "the queues stand in RocksDB, which is not read here: they are not checked"
            yield Finding("rocksdb", store.rocksdb_folder, said, severity=Severity.NOTE)

    def _without_index(self) -> Finding:
        if not self.store.index_paths:
            said = "there is no index file: messages cannot be found by key; logstore reindex"
            return Finding("index-missing", "index", said, severity=Severity.NOTE)
        said = (
            "how many slots and entries its files have is not known, so they are not checked; say "
            "--set maxHashSlotNum=N --set maxIndexNum=N"
        )
        return Finding("index-sizes", "index", said, severity=Severity.NOTE)


def _ignore(size_bytes: int) -> None:
    del size_bytes


def _has_loops() -> bool:
    """Tell whether the extra ``columns`` is there; without it each message is taken by itself."""
    try:
        from logstore.segments.compiled.loops import is_available
    except ImportError:
        return False
    return is_available()
