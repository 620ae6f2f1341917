"""
Every good record of a damaged store, at its place, in a new store.

Physical offsets, queue offsets and message ids stay what they were; ``messages/gap_filling.py``
says what stands where records were lost. Tables, timers and what compaction made are copied; queues
and index are made anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import attrs

from logstore.host import File, FileSystem, Host, write_file
from logstore.segments.rocketmq.files.mapped_file_directory import file_name
from logstore.segments.rocketmq.messages.dispatch_request import Blank, read_dispatch_request
from logstore.segments.rocketmq.messages.gap_filling import (
    FILLER_BYTES_MIN,
    LostMessage,
    fill_gap,
)
from logstore.segments.rocketmq.messages.message_draft import blank_entry
from logstore.segments.rocketmq.messages.message_layout import BLANK_BYTES
from logstore.segments.rocketmq.opening.checkpoint import CHECKPOINT_NAME, CHECKPOINT_SIZE_BYTES
from logstore.segments.rocketmq.opening.directory import COMMIT_LOG_FOLDER, INDEX_FOLDER
from logstore.segments.rocketmq.queues.consume_queue_unit import UNIT, UNIT_BYTES
from logstore.tools.inspection.rocketmq.log_end import log_ends
from logstore.tools.inspection.rocketmq.log_scan import LogScan, Run, Stretch
from logstore.tools.inspection.rocketmq.queue_span import queue_span
from logstore.tools.inspection.rocketmq.rebuilding.store_rebuild import StoreRebuild
from logstore.tools.inspection.rocketmq.stored_files import StoredFile
from logstore.tools.inspection.rocketmq.stored_store import StoredQueue, StoredStore

_COPY_BYTES = 1 << 20
_FAR = 2**63 - 1
_COPIED_FOLDERS = ("config", "compaction", "timerlog")
_COPIED_FILES = ("timerwheel", "abort.bak", "epochFileCheckpoint", "brokerIdentity")


@attrs.frozen
class Lost:
    """
    A stretch of a commit log file that could not be read, and the messages known to be in it.

    `is_cut` where the log ends before it now, as a broker would have it.
    """

    file: str
    position: int
    size_bytes: int
    physical_offset: int
    reason: str
    messages: tuple[LostMessage, ...]
    is_cut: bool


@attrs.define
class StoreSalvage:
    """The salvage of `store` into the directory `target`, which is not there or empty."""

    host: Host
    store: StoredStore
    target: str
    message_count: int = 0
    size_bytes: int = 0
    _store_ms: int = 0

    def run(self, note: Callable[[int], None]) -> Iterator[Lost]:
        """Write the new store; yield what is lost. Raises StorageError if no index can be made."""
        fs, store = self.host.fs, self.store
        fs.make_directory(f"{self.target}/{COMMIT_LOG_FOLDER}")
        yield from self._log(note)
        self._copy_rest()
        write_file(fs, f"{self.target}/{CHECKPOINT_NAME}", bytes(CHECKPOINT_SIZE_BYTES))
        sizes = store.index_sizes
        settings = dict(store.settings)
        if sizes is not None:
            settings["maxHashSlotNum"] = str(sizes.slot_count)
            settings["maxIndexNum"] = str(sizes.entry_count)
        made = StoredStore(fs, self.target, settings)
        made.release = store.release
        for _ in StoreRebuild(self.host, made).run(_ignore):
            pass
        fs.sync_directory(self.target)

    # the commit log

    def _log(self, note: Callable[[int], None]) -> Iterator[Lost]:
        log = self.store.commit_log
        size = log.size_bytes
        by_base = {file.base: file for file in log.files if file.base % max(size, 1) == 0}
        known = self._known_messages()
        last = self._last_with_records(list(by_base.values()))
        self._store_ms = self._first_store_ms(list(by_base.values()))
        for base in range(log.start, last + 1, size) if size else ():
            path = f"{self.target}/{COMMIT_LOG_FOLDER}/{file_name(base)}"
            made = self.host.fs.open(path, create=True)
            try:
                made.truncate(size)
                yield from self._file(by_base.get(base), base, made, known, is_last=base == last)
                made.sync()
            finally:
                made.close()
            note(size)
        log.close()
        self.host.fs.sync_directory(f"{self.target}/{COMMIT_LOG_FOLDER}")

    def _first_store_ms(self, files: list[StoredFile]) -> int:
        """Return when the first good message was stored: what stands in before is as old."""
        scan, log = LogScan(), self.store.commit_log
        for file in files:
            for piece in scan.pieces(log.open(file), file.path, file.base):
                if isinstance(piece, Run):
                    found = read_dispatch_request(piece.data)
                    if not isinstance(found, Blank):
                        return found.store_timestamp_ms
        return 0

    def _last_with_records(self, files: list[StoredFile]) -> int:
        scan, log = LogScan(), self.store.commit_log
        for file in reversed(files):
            if any(
                isinstance(piece, Run)
                for piece in scan.pieces(log.open(file), file.path, file.base)
            ):
                return file.base
        return -1

    def _known_messages(self) -> list[LostMessage]:
        """Return every message that a unit leads to, by place; empty where nothing is damaged."""
        if not self._is_damaged():
            return []
        found: list[LostMessage] = []
        for queue in self.store.queues.values():
            if not queue.is_batch:
                found += _units_of(queue)
        return sorted(found)

    def _is_damaged(self) -> bool:
        scan, log = LogScan(), self.store.commit_log
        log_end = max((e.physical_offset for e in log_ends(log) if e.position), default=0)
        spans = (queue_span(queue, 0, _FAR) for queue in self.store.queues.values())
        if log.oddities or any(span.max_physical_offset >= log_end for span in spans):
            return True
        return any(
            isinstance(piece, Stretch)
            or (not isinstance(piece, Run) and not piece.is_padded and file is not log.files[-1])
            for file in log.files
            for piece in scan.pieces(log.open(file), file.path, file.base)
        )

    def _file(
        self,
        file: StoredFile | None,
        base: int,
        made: File,
        known: list[LostMessage],
        *,
        is_last: bool,
    ) -> Iterator[Lost]:
        """Write one file: its good runs, and records that cover what is between them."""
        size, at = self.store.commit_log.size_bytes, 0
        reason = "there is no such file"
        is_padded = False
        log = self.store.commit_log
        source = None if file is None else log.open(file)
        if file is not None and source is not None:
            reason = "no BLANK ends the file"
            for piece in LogScan().pieces(source, file.path, base):
                if isinstance(piece, Run) and piece.position + len(piece.data) <= size:
                    if piece.position > at:
                        yield self._fill(made, base, at, piece.position, known, reason)
                    made.write(piece.position, piece.data)
                    at = piece.position + len(piece.data)
                    self._count(piece)
                elif isinstance(piece, Stretch):
                    reason = piece.reason
                elif not isinstance(piece, Run):
                    is_padded = piece.is_padded and piece.position == at
        if is_last and not is_padded:
            yield from self._cut(source, base, at, reason, known)
            return
        if not is_padded:
            yield self._fill(made, base, at, size, known, reason)
        elif size - at >= BLANK_BYTES:
            made.write(at, blank_entry(base + at, size - at).data)

    def _count(self, run: Run) -> None:
        position = 0
        while position < len(run.data):
            size_bytes = int.from_bytes(run.data[position : position + 4])
            self.message_count += 1
            found = read_dispatch_request(run.data, position)
            if not isinstance(found, Blank):
                self._store_ms = found.store_timestamp_ms
            position += size_bytes
        self.size_bytes += len(run.data)

    def _fill(
        self, made: File, base: int, start: int, end: int, known: list[LostMessage], reason: str
    ) -> Lost:
        """Cover ``[start, end)`` of a file; at its end a BLANK does."""
        is_end = end == self.store.commit_log.size_bytes
        inside = [m for m in known if base + start <= m.physical_offset < base + end]
        covered_end = end
        if is_end:
            room = end - BLANK_BYTES
            inside = [m for m in inside if m.physical_offset + m.size_bytes <= base + room]
            covered_end = start
            if inside:
                covered_end = inside[-1].physical_offset + inside[-1].size_bytes - base
        position = start
        if covered_end - start >= FILLER_BYTES_MIN:
            for record in fill_gap(base + start, base + covered_end, inside, self._store_ms):
                made.write(position, record)
                position += len(record)
        if is_end and end - position >= BLANK_BYTES:
            made.write(position, blank_entry(base + position, end - position).data)
        return self._lost(base, start, end - start, reason, inside, is_cut=False)

    def _cut(
        self, source: File | None, base: int, at: int, reason: str, known: list[LostMessage]
    ) -> Iterator[Lost]:
        """Say what stood behind the end of the log, if anything did."""
        rest = [m for m in known if m.physical_offset >= base + at]
        if source is None or not (rest or any(source.read(at, BLANK_BYTES))):
            return
        end = max((m.physical_offset + m.size_bytes for m in rest), default=base + at)
        yield self._lost(base, at, max(end - base - at, 1), reason, rest, is_cut=True)

    def _lost(
        self,
        base: int,
        position: int,
        size_bytes: int,
        reason: str,
        messages: list[LostMessage],
        *,
        is_cut: bool,
    ) -> Lost:
        name = f"{COMMIT_LOG_FOLDER}/{file_name(base)}"
        known = tuple(messages)
        return Lost(name, position, size_bytes, base + position, reason, known, is_cut)

    # the rest

    def _copy_rest(self) -> None:
        fs, source = self.host.fs, self.store.directory
        for name in _COPIED_FILES:
            if fs.exists(f"{source}/{name}"):
                _copy_file(fs, f"{source}/{name}", f"{self.target}/{name}")
        for folder in _COPIED_FOLDERS:
            _copy_folder(fs, f"{source}/{folder}", f"{self.target}/{folder}")
        for queue in self.store.queues.values():
            for files in filter(None, (queue.files, queue.ext)):
                fs.make_directory(f"{self.target}/{files.folder}")
                for file in files.files:
                    if file.size_bytes == files.size_bytes and file.has_full_name:
                        _copy_file(fs, file.path, f"{self.target}/{file.relative}")
        fs.make_directory(f"{self.target}/{INDEX_FOLDER}")


def _units_of(queue: StoredQueue) -> Iterator[LostMessage]:
    for file in queue.files.files:
        data = queue.files.read(file.base, file.size_bytes)
        whole = len(data) // UNIT_BYTES * UNIT_BYTES
        for number, unit in enumerate(UNIT.iter_unpack(data[:whole]), file.base // UNIT_BYTES):
            physical_offset, size_bytes, _ = unit
            if physical_offset >= 0 and 0 < size_bytes < 1 << 30:
                yield LostMessage(physical_offset, size_bytes, queue.topic, queue.queue_id, number)
    queue.files.close()


def _copy_folder(fs: FileSystem, source: str, target: str) -> None:
    if not fs.is_directory(source):
        return
    fs.make_directory(target)
    for entry in fs.list_directory(source):
        if entry.is_directory:
            _copy_folder(fs, f"{source}/{entry.name}", f"{target}/{entry.name}")
        else:
            _copy_file(fs, f"{source}/{entry.name}", f"{target}/{entry.name}")


def _copy_file(fs: FileSystem, source: str, target: str) -> None:
    """Copy a file; its holes stay holes."""
    read, written = fs.open(source, writable=False), fs.open(target, create=True)
    try:
        written.truncate(read.size())
        position = 0
        while (start := read.next_data(position)) is not None:
            data = read.read(start, _COPY_BYTES)
            if not data:
                break
            if data.count(0) < len(data):
                written.write(start, data)
            position = start + len(data)
        written.sync()
    finally:
        read.close()
        written.close()


def _ignore(size_bytes: int) -> None:
    del size_bytes
