"""
The derived files of a store made anew, and put in the place of those that differ.

Everything is made in ``.reindexing`` inside of the store first, if it is to be changed. What the
commit log cannot tell any more is kept: units whose messages were deleted, and queues that have no
message left; they say where a queue goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress

import attrs

from logstore.errors import StorageError
from logstore.host import File, FileSystem, Host
from logstore.segments.rocketmq.opening.directory import INDEX_FOLDER
from logstore.segments.rocketmq.queues.consume_queue_unit import PRE_BLANK, UNIT_BYTES
from logstore.segments.rocketmq.queues.consume_queues import (
    BATCH_FOLDER,
    EXT_FOLDER,
    SIMPLE_FOLDER,
)
from logstore.tools.inspection.rebuilding.outcome import Outcome, Rebuilt
from logstore.tools.inspection.rocketmq.rebuilding.derived_store import DerivedStore
from logstore.tools.inspection.rocketmq.stored_store import StoredStore

WORK_FOLDER = ".reindexing"
_CHUNK_BYTES = 1 << 20


@attrs.define
class StoreRebuild:
    """
    The rebuild of one store; without `is_changing` it is only told what would be done.

    `work_folder` is where files are made first, if not in the store, which may be read-only.

    Raises, on running:
        StorageError: how many slots an index file has is not known, or the log is damaged; then
            nothing was changed.
    """

    host: Host
    store: StoredStore
    is_changing: bool = True
    work_folder: str | None = None

    @property
    def size_bytes(self) -> int:
        """How many bytes of the commit log will be walked, at most."""
        return sum(file.size_bytes for file in self.store.commit_log.files)

    def run(self, note: Callable[[int], None]) -> Iterator[Rebuilt]:
        """Yield what became of every derived file."""
        fs, store = self.host.fs, self.store
        sizes = store.index_sizes
        if sizes is None and store.index_paths:
            raise StorageError(
                f"{store.directory}/{INDEX_FOLDER}: how many slots and entries its files have is "
                "not known; say --set maxHashSlotNum=N --set maxIndexNum=N"
            )
        work = self.work_folder or f"{store.directory}/{WORK_FOLDER}"
        fs.remove_directory(work)
        try:
            fs.make_directory(work)
            made = DerivedStore(self.host, store, work, sizes or store.config.index_sizes)
            made.make(note)
            for folder in (SIMPLE_FOLDER, BATCH_FOLDER):
                yield from self._queues(work, folder)
            yield from self._index(work)
        finally:
            fs.remove_directory(work)

    # queues

    def _queues(self, work: str, folder: str) -> Iterator[Rebuilt]:
        fs = self.host.fs
        for topic in _folders(fs, f"{work}/{folder}"):
            has_queue = any(key[0] == topic for key in self.store.queues)
            if self.store.is_deleted(topic) and not has_queue:
                continue
            for queue in _folders(fs, f"{work}/{folder}/{topic}"):
                relative = f"{folder}/{topic}/{queue}"
                # The extension first: units lead there.
                ext = f"{EXT_FOLDER}/{topic}/{queue}"
                if fs.is_directory(f"{work}/{ext}"):
                    yield from self._settle_folder(work, ext)
                if folder == SIMPLE_FOLDER:
                    self._keep_old_units(f"{work}/{relative}", relative)
                yield from self._settle_folder(work, relative)

    def _keep_old_units(self, made: str, relative: str) -> None:
        """Take units over whose messages were deleted: the new queue has only fillers there."""
        fs = self.host.fs
        first = next(iter(_files(fs, made)), None)
        old_path = f"{self.store.directory}/{relative}/{first}"
        if first is None or not fs.exists(old_path):
            return
        new, old = fs.open(f"{made}/{first}"), fs.open(old_path, writable=False)
        try:
            position, start = 0, self.store.commit_log.start
            while new.read(position, UNIT_BYTES) == PRE_BLANK:
                unit = old.read(position, UNIT_BYTES)
                is_unit = len(unit) == UNIT_BYTES and int.from_bytes(unit[8:12]) > 0
                if is_unit and int.from_bytes(unit[:8]) < start:
                    new.write(position, unit)
                position += UNIT_BYTES
            new.sync()
        finally:
            new.close()
            old.close()

    def _settle_folder(self, work: str, relative: str) -> Iterator[Rebuilt]:
        """Put the files of one queue in their places; what leads beyond them goes."""
        fs, target = self.host.fs, f"{self.store.directory}/{relative}"
        names = _files(fs, f"{work}/{relative}")
        for name in names:
            yield self._settle(f"{work}/{relative}/{name}", f"{relative}/{name}")
        for name in _files(fs, target) if fs.is_directory(target) else []:
            if names and name > names[-1] and not _is_zeros(fs, f"{target}/{name}"):
                yield self._remove(f"{relative}/{name}")
        if self.is_changing and names:
            fs.sync_directory(target)

    # the index

    def _index(self, work: str) -> Iterator[Rebuilt]:
        """New files get the names of the old ones, in their order, so that equal ones stay."""
        fs, directory = self.host.fs, self.store.directory
        made = f"{work}/{INDEX_FOLDER}"
        new = _files(fs, made) if fs.is_directory(made) else []
        old = [path.rpartition("/")[2] for path in self.store.index_paths]
        for number, name in enumerate(new):
            kept = old[number] if number < len(old) else name
            yield self._settle(f"{made}/{name}", f"{INDEX_FOLDER}/{kept}")
        for name in old[len(new) :]:
            yield self._remove(f"{INDEX_FOLDER}/{name}")
        if self.is_changing and fs.is_directory(f"{directory}/{INDEX_FOLDER}"):
            fs.sync_directory(f"{directory}/{INDEX_FOLDER}")

    # files

    def _settle(self, made: str, relative: str) -> Rebuilt:
        fs, path = self.host.fs, f"{self.store.directory}/{relative}"
        size_bytes = _size_bytes(fs, made)
        before = _size_bytes(fs, path) if fs.exists(path) else None
        if before == size_bytes and _is_equal(fs, made, path):
            return Rebuilt(relative, Outcome.UNCHANGED, before, size_bytes)
        if self.is_changing:
            folder = path.rpartition("/")[0]
            if not fs.exists(folder):
                fs.make_directory(folder)
                fs.sync_directory(folder.rpartition("/")[0])
            fs.rename(made, path)
        outcome = Outcome.MADE if before is None else Outcome.REPLACED
        return Rebuilt(relative, outcome, before, size_bytes)

    def _remove(self, relative: str) -> Rebuilt:
        fs, path = self.host.fs, f"{self.store.directory}/{relative}"
        before = _size_bytes(fs, path)
        if self.is_changing:
            with suppress(FileNotFoundError):
                fs.remove(path)
        return Rebuilt(relative, Outcome.REMOVED, before, 0)


def _folders(fs: FileSystem, path: str) -> list[str]:
    if not fs.is_directory(path):
        return []
    return [entry.name for entry in fs.list_directory(path) if entry.is_directory]


def _files(fs: FileSystem, path: str) -> list[str]:
    return [
        entry.name
        for entry in fs.list_directory(path)
        if not entry.is_directory and entry.name.isascii() and entry.name.isdigit()
    ]


def _size_bytes(fs: FileSystem, path: str) -> int:
    file = fs.open(path, writable=False)
    try:
        return file.size()
    finally:
        file.close()


def _is_zeros(fs: FileSystem, path: str) -> bool:
    file = fs.open(path, writable=False)
    try:
        return not any(any(data) for _, data in _pieces(file))
    finally:
        file.close()


def _is_equal(fs: FileSystem, one: str, other: str) -> bool:
    """Tell whether two files of one length hold the same; holes cost nothing."""
    first, second = fs.open(one, writable=False), fs.open(other, writable=False)
    try:
        return all(second.read(at, len(data)) == data for at, data in _pieces(first)) and all(
            first.read(at, len(data)) == data for at, data in _pieces(second)
        )
    finally:
        first.close()
        second.close()


def _pieces(file: File) -> Iterator[tuple[int, bytes]]:
    """Yield (position, bytes) of all that is no hole."""
    position = 0
    while (start := file.next_data(position)) is not None:
        data = file.read(start, _CHUNK_BYTES)
        if not data:
            return
        yield start, data
        position = start + len(data)
