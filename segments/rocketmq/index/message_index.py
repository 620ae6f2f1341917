"""
The message index: which messages of a topic have a key.

A folder of index files; one is written, those before it are full. A message has an entry for its
unique key, one for each of its keys, and one for its tags where 5.x writes the store. Nothing but
the hash of ``topic#key`` is kept, so a query finds messages of other keys too: look at them.

The index is a fold over the commit log. After an unclean stop the files that the checkpoint does
not vouch for are removed and their messages, as far as they are dispatched again, come back.

Source: ``IndexService``.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING

import attrs

from logstore.host import Host
from logstore.segments.rocketmq.index.index_file import IndexFile, IndexSizes
from logstore.segments.rocketmq.index.index_flush import IndexFlush
from logstore.segments.rocketmq.index.index_keys import (
    batch_hashes,
    draft_hashes,
    index_hash,
    index_hashes,
    run_hashes,
)
from logstore.segments.rocketmq.index.index_name import is_index_name, next_index_name
from logstore.segments.rocketmq.index.vouching import vouched
from logstore.segments.rocketmq.messages.system_flags import TRANSACTION_MASK, TRANSACTION_ROLLBACK
from logstore.segments.rocketmq.settings.release import Release

if TYPE_CHECKING:
    from logstore.segments.rocketmq.columns.record_scan import IndexEntries
    from logstore.segments.rocketmq.messages.dispatch_request import DispatchRequest
    from logstore.segments.rocketmq.messages.message_batch import MessageBatchDraft
    from logstore.segments.rocketmq.messages.message_draft import MessageDraft
    from logstore.segments.rocketmq.messages.message_run import MessageRun
    from logstore.segments.rocketmq.opening.checkpoint import StoreCheckpoint

#: entries that wait in memory before they are written without being asked
PENDING_COUNT_MAX = 65_536
#: the same where they come in bulk: most slots of a file change, and are written each time
BULK_PENDING_COUNT_MAX = 1 << 19


@attrs.frozen
class IndexAnswer:
    """What a query found: physical offsets, and up to when the index knows messages."""

    physical_offsets: list[int]
    last_update_timestamp_ms: int
    last_update_physical_offset: int


class MessageIndex:
    """
    All index files of a store; `put` adds to the last one and makes the next when it is full.

    `put` passes over messages that are in the index already: those before the physical offset of
    the last entry. The disk is touched by `write`, by the flushes, when a file is full and when
    65,536 entries wait, in bulk a million. `warnings` tells of files that are not as they must be
    and are let alone.

    Not thread-safe, but for :meth:`IndexFlush.run`.
    """

    def __init__(
        self,
        host: Host,
        directory: str,
        checkpoint: StoreCheckpoint,
        *,
        sizes: IndexSizes | None = None,
        release: Release = Release.V5,
        is_writable: bool = True,
    ) -> None:
        self.directory = directory
        self.sizes = sizes or IndexSizes()
        self.release = release
        self.warnings: list[str] = []
        self._host = host
        self.checkpoint = checkpoint
        self._is_writable = is_writable
        self._has_tag_entries = self.release.has_tag_entries
        self._files: list[IndexFile] = []
        #: full or written since their last sync
        self._unsynced: dict[str, IndexFile] = {}
        #: those of which a sync failed
        self._failed_paths: set[str] = set()

    # loading and removing

    def load(self, *, is_clean: bool) -> list[str]:
        """
        Open the files; after an unclean stop remove those newer than the checkpoint.

        Returns the paths of the files removed. Java deletes them so that their messages, which
        recovery dispatches again, are not in there twice. A store that is not writable leaves
        them where they are, unread.
        """
        found: list[IndexFile] = []
        if not self._host.fs.exists(self.directory):
            return []
        for entry in self._host.fs.list_directory(self.directory):
            path = f"{self.directory}/{entry.name}"
            if entry.is_directory or not is_index_name(entry.name):
                self.warnings.append(f"{path}: no index file; it is let alone")
                continue
            file = IndexFile(self._host, path, self.sizes, is_writable=self._is_writable)
            file.close()
            found.append(file)
        kept = found if is_clean else vouched(found, self.checkpoint)
        for file in kept:
            self._warn_of(file)
            if self._files:
                file.follow(self._files[-1])
            self._files.append(file)
        removed = [file.path for file in found if file not in kept]
        if self._is_writable:
            self._remove_files(removed)
        return removed

    def _warn_of(self, file: IndexFile) -> None:
        expected, found = self.sizes.file_size_bytes, file.file_size_bytes
        if found != expected:
            self.warnings.append(
                f"{file.path}: {found} bytes, expected {expected}: was it written with another"
                " maxHashSlotNum or maxIndexNum? Its answers may be wrong"
            )
        elif file.next_number > self.sizes.entry_count or file.slot_count_used < 0:
            self.warnings.append(f"{file.path}: the header is damaged; its answers may be wrong")

    def _remove_files(self, paths: Sequence[str]) -> None:
        """Remove files durably, oldest first."""
        for path in paths:
            self._host.fs.remove(path)
        if paths:
            self._host.fs.sync_directory(self.directory)

    def delete_below(self, physical_offset: int) -> list[str]:
        """Remove files whose messages are all below; never the last. Returns their paths."""
        removed: list[str] = []
        while len(self._files) > 1 and self._files[0].end_physical_offset < physical_offset:
            removed.append(self._drop_first())
        self._remove_files(removed)
        return removed

    def destroy(self) -> None:
        """Remove all files."""
        removed: list[str] = []
        while self._files:
            removed.append(self._drop_first())
        self._remove_files(removed)

    def _drop_first(self) -> str:
        file = self._files.pop(0)
        file.close()
        self._unsynced.pop(file.path, None)
        return file.path

    @property
    def files(self) -> Sequence[IndexFile]:
        """The files, oldest first."""
        return self._files

    @property
    def size_bytes(self) -> int:
        """Length of all files together."""
        return self.sizes.file_size_bytes * len(self._files)

    @property
    def end_physical_offset(self) -> int:
        """Physical offset of the last message in the index; 0 if it is empty."""
        return self._files[-1].end_physical_offset if self._files else 0

    # adding

    def put(self, request: DispatchRequest) -> None:
        """
        Add the keys of one message.

        Raises:
            WriteFailedError: a new file could not be made, or the full one not written. The
                message is in the index in part or not at all.

        """
        file = self._last_with_room()
        physical_offset = request.physical_offset
        if physical_offset < file.end_physical_offset:
            return
        if request.sys_flag & TRANSACTION_MASK == TRANSACTION_ROLLBACK:
            return
        hashes = index_hashes(
            request.topic, request.properties_text, has_tag_entry=self._has_tag_entries
        )
        store_ms = request.store_timestamp_ms
        while count := file.put(hashes, physical_offset, store_ms):
            hashes = hashes[-count:]
            file = self._roll()
        if file.pending_count >= PENDING_COUNT_MAX:
            file.write()

    def put_runs(self, runs: Sequence[MessageRun]) -> None:
        """Add the keys of runs that follow one another, as :meth:`put` of each message."""
        stored = [message for run in runs for message in run.stored]
        hashes, places = run_hashes(stored, has_tag_entries=self._has_tag_entries)
        if not places:
            self._last_with_room()
            return
        first_ms, last_ms = runs[0].store_timestamp_ms, runs[-1].store_timestamp_ms
        is_keyed_to_the_end = places[-1] == stored[-1][1]
        if (
            self._goes_on_from(runs[0].physical_offset)
            and (is_keyed_to_the_end or first_ms == last_ms)
            and self._is_one_time(first_ms, last_ms, len(hashes))
        ):
            self._put_hashes(hashes, places, last_ms, stored[-1][1])
        elif len(runs) > 1:
            for run in runs:
                self.put_runs([run])
        else:
            for place in range(len(runs[0])):
                self.put(runs[0].dispatch_request(place))

    def put_batches(self, batches: Sequence[MessageBatchDraft]) -> None:
        """Add the keys of batches of a topic that follow one another, as :meth:`put` of each."""
        first, last = batches[0], batches[-1]
        if (
            len(batches) > 1
            and self._goes_on_from(first.physical_offset)
            and not any(batch.sys_flag & TRANSACTION_MASK for batch in batches)
        ):
            texts = list(chain.from_iterable(batch.columns.texts for batch in batches))
            offsets = list(chain.from_iterable(batch.physical_offsets for batch in batches))
            hashes, places = batch_hashes(
                first.topic, texts, offsets, has_tag_entries=self._has_tag_entries
            )
            first_ms, last_ms = first.store_timestamp_ms, last.store_timestamp_ms
            # The header's end is the last message with keys: it must be of the last batch's time.
            is_late = first_ms == last_ms or (bool(places) and places[-1] >= last.physical_offset)
            if is_late and self._is_one_time(first_ms, last_ms, len(hashes)):
                self._put_hashes(hashes, places, last_ms, last.physical_offsets[-1])
                return
        for batch in batches:
            self._put_batch(batch)

    def _put_batch(self, batch: MessageBatchDraft) -> None:
        """Add the keys of the messages of a batch."""
        texts, places = batch.columns.texts, batch.physical_offsets
        if batch.sys_flag & TRANSACTION_MASK or not self.put_alike(
            batch.topic, texts, places, batch.store_timestamp_ms
        ):
            for request in batch.dispatch_requests():
                self.put(request)

    def put_alike(
        self,
        topic: str,
        texts: Sequence[bytes],
        physical_offsets: Sequence[int],
        store_timestamp_ms: int,
    ) -> bool:
        """
        Add the keys of messages of one topic and time, none rolled back; False where not possible.

        `texts` are their properties, each behind the two bytes of its length.

        Raises:
            WriteFailedError: as for :meth:`put`.

        """
        if not self._goes_on_from(physical_offsets[0]):
            return False
        hashes, places = batch_hashes(
            topic, texts, physical_offsets, has_tag_entries=self._has_tag_entries
        )
        self._put_hashes(hashes, places, store_timestamp_ms, physical_offsets[-1])
        return True

    def put_drafts(self, drafts: Sequence[MessageDraft]) -> bool:
        """
        Add the keys of messages that follow one another; False where that is not possible.

        None of them is rolled back, and none was stored before those in front of it. All but those
        of one and the same time must be put by groups where the file tells their times apart, or
        ends among them.

        Raises:
            WriteFailedError: as for :meth:`put`.

        """
        if not drafts or not self._goes_on_from(drafts[0].physical_offset):
            return not drafts
        hashes, places = draft_hashes(drafts, has_tag_entries=self._has_tag_entries)
        last = drafts[-1]
        first_ms, last_ms = drafts[0].store_timestamp_ms, last.store_timestamp_ms
        if first_ms != last_ms and not (
            self._is_one_time(first_ms, last_ms, len(hashes))
            and places
            and places[-1] == last.physical_offset
        ):
            return False
        self._put_hashes(hashes, places, last_ms, last.physical_offset)
        return True

    def _is_one_time(self, first_ms: int, last_ms: int, entry_count: int) -> bool:
        """Tell whether all entries of messages stored between these times say the same time."""
        file = self._files[-1]
        return first_ms == last_ms or (
            file.is_one_time(first_ms, last_ms) and entry_count <= file.room_count
        )

    def _goes_on_from(self, physical_offset: int) -> bool:
        """Tell whether the last file has entries, and none of messages behind that place."""
        file = self._files[-1] if self._files else None
        return (
            file is not None
            and file.next_number > 1
            and physical_offset >= file.end_physical_offset
        )

    def _put_hashes(
        self,
        hashes: Sequence[int],
        physical_offsets: Sequence[int],
        store_timestamp_ms: int,
        last_physical_offset: int,
    ) -> None:
        """
        Add entries to the last file and, where it is full, to the next.

        `last_physical_offset` is the last message's: behind a full file one without keys makes the
        next file as well, as in Java.
        """
        file = self._files[-1]
        ends_keyless = not physical_offsets or physical_offsets[-1] != last_physical_offset
        while count := file.put_run(hashes, physical_offsets, store_timestamp_ms):
            hashes, physical_offsets = hashes[-count:], physical_offsets[-count:]
            file = self._roll()
            # The first entry of a file says when it begins.
            file.put(hashes[:1], physical_offsets[0], store_timestamp_ms)
            hashes, physical_offsets = hashes[1:], physical_offsets[1:]
        if ends_keyless and file.is_full:
            file = self._roll()
        if file.pending_count >= PENDING_COUNT_MAX:
            file.write()

    def put_many(self, entries: IndexEntries) -> None:
        """
        Add the entries of many messages, as :meth:`put` does of one; needs the extra ``columns``.

        Raises:
            WriteFailedError: as for :meth:`put`.

        """
        from logstore.segments.rocketmq.columns.index_fill import without_sign

        physical_offsets = entries.physical_offsets
        start = int(physical_offsets.searchsorted(self.end_physical_offset))
        hashes = without_sign(entries.hashes)
        while start < len(hashes):
            file = self._last_with_room()
            start += file.put_many(
                hashes[start:], physical_offsets[start:], entries.store_timestamps_ms[start:]
            )
            if file.pending_count >= BULK_PENDING_COUNT_MAX:
                file.write()

    def _last_with_room(self) -> IndexFile:
        """Return the last file, a new one where it is full; messages without keys make it too."""
        file = self._files[-1] if self._files else None
        return self._roll() if file is None or file.is_full else file

    def _roll(self) -> IndexFile:
        """Write the full last file and make the next one."""
        last = self._files[-1] if self._files else None
        if last is None:
            self._host.fs.make_directory(self.directory)
            self._host.fs.sync_directory(self.directory.rpartition("/")[0])
        else:
            last.write()
            last.close()
            self._unsynced[last.path] = last
        last_name = None if last is None else last.path.rpartition("/")[2]
        name = next_index_name(self._host.clock.wall_ms(), last_name)
        path = f"{self.directory}/{name}"
        made = IndexFile.create(self._host, path, self.sizes, previous=last, release=self.release)
        self._files.append(made)
        return made

    # asking

    def query(
        self,
        topic: str,
        key: str,
        count_max: int,
        begin_ms: int,
        end_ms: int,
        *,
        is_tag: bool = False,
    ) -> IndexAnswer:
        """
        Return where messages with this key may stand, newest file first.

        Hashes collide, times are those of whole seconds: look at each message. `is_tag` asks for
        the entries of tags (5.x).
        """
        key_hash = index_hash(f"{topic}#T#{key}" if is_tag else f"{topic}#{key}")
        found: list[int] = []
        for file in reversed(self._files):
            if file.is_time_matched(begin_ms, end_ms):
                found += file.select(key_hash, count_max - len(found), begin_ms, end_ms)
                if file is not self._files[-1]:
                    file.close()
            if file.begin_timestamp_ms < begin_ms or len(found) >= count_max:
                break
        if not self._files:
            return IndexAnswer(found, 0, 0)
        last = self._files[-1]
        return IndexAnswer(found, last.end_timestamp_ms, last.end_physical_offset)

    # writing and flushing

    def write(self) -> None:
        """Hand all that is pending to the operating system. Raises WriteFailedError."""
        if self._files and self._files[-1].is_dirty:
            last = self._files[-1]
            last.write()
            self._unsynced[last.path] = last

    def begin_flush(self, *, is_thorough: bool = False) -> IndexFlush:
        """
        Return what is to be synced: the full files; the last one too, written, if thorough.

        Java syncs an index file when it is full and at a clean stop only: what a crash loses of
        the last one is built again.
        """
        if is_thorough:
            self.write()
        last = self._files[-1] if self._files else None
        files = [
            file
            for file in self._unsynced.values()
            if (is_thorough or file is not last) and file.path not in self._failed_paths
        ]
        return IndexFlush(self._host.fs, self.directory, files, self._failed_paths)

    def end_flush(self, flush: IndexFlush) -> None:
        """
        Note what `flush` synced, and up to when in the checkpoint, which is to be flushed then.

        As in Java only files count that have a successor: the last one is removed after a crash,
        be it full or not.
        """
        for file in flush.files:
            if file.is_dirty or self._unsynced.get(file.path) is not file:
                continue
            del self._unsynced[file.path]
            if file is not self._files[-1] and not self.has_failed_sync:
                self.checkpoint.index_msg_timestamp_ms = file.end_timestamp_ms
                file.close()

    @property
    def has_failed_sync(self) -> bool:
        """
        Tell whether a file may have lost entries that are said to be written.

        No later sync brings those back: from here on the checkpoint vouches for no file more, and
        the stop is none that the next start may call clean. It makes the files anew.
        """
        return bool(self._failed_paths)

    def flush(self) -> None:
        """Write and sync everything. Raises WriteFailedError or OSError."""
        flush = self.begin_flush(is_thorough=True)
        flush.run()
        self.end_flush(flush)

    def close(self) -> None:
        """Give the handles back; what is pending and not written is dropped."""
        for file in self._files:
            file.close()
