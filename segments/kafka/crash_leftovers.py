"""
What a crash left half done in a partition's directory, by the endings of the names.

============ ====================================================================================
``.deleted`` was on its way out: it goes
``.cleaned`` was being built by the cleaner, or by the split of a segment: it goes, and with it
             every ``.swap`` from the first such offset on, because that set was never complete
``.swap``    is complete and stands for all segments in the offsets that it covers: those go,
             then it takes its final name
============ ====================================================================================

So a replacement of segments counts from the moment on when its last file is called ``.swap``:
whoever replaces renames the files from ``.cleaned`` to ``.swap`` from the highest base offset down,
removes the replaced segments, and then renames to the final names.

Source: ``LogLoader.load``, ``removeTempFilesAndCollectSwapFiles`` (KAFKA-6264).
"""

from __future__ import annotations

import logging

from logstore.errors import CorruptEntryError
from logstore.host import FileSystem
from logstore.segments.kafka.batch_walk import walk_batches

DELETED = ".deleted"
CLEANED = ".cleaned"
SWAP = ".swap"
_TEMPORARY = (DELETED, CLEANED, SWAP)

_log = logging.getLogger(__name__)
_LOG_SWAP = ".log.swap"
_METADATA_SNAPSHOT = ".checkpoint.deleted"  # of a metadata log, which sees to it itself


def offset_of(name: str) -> int | None:
    """Return the offset that a file's name starts with; None if it starts with none."""
    stem = name.partition(".")[0]
    return int(stem) if stem.isascii() and stem.isdigit() else None


def clear_leftovers(fs: FileSystem, directory: str, names: list[str]) -> bool:
    """
    Finish or undo what was under way when the log was last left; tell whether files changed.

    `names` are the files in `directory`. Idempotent: a crash half way through leaves what the next
    call understands.
    """
    if not any(name.endswith(_TEMPORARY) for name in names):
        return False
    deleted = [n for n in names if n.endswith(DELETED) and not n.endswith(_METADATA_SNAPSHOT)]
    cleaned = [name for name in names if name.endswith(CLEANED)]
    swaps = [name for name in names if name.endswith(SWAP)]
    if not (deleted or cleaned or swaps):
        return False
    first_cleaned = min((_offset(name) for name in cleaned), default=None)
    undone = [n for n in swaps if first_cleaned is not None and _offset(n) >= first_cleaned]
    # The .cleaned files last: as long as one is there, those .swap files are known to be undone.
    for name in [*deleted, *undone, *sorted(cleaned, key=_offset, reverse=True)]:
        fs.remove(f"{directory}/{name}")
    finished = [name for name in swaps if name not in undone]
    if finished:
        _finish_swap(fs, directory, finished, [n for n in names if not n.endswith(_TEMPORARY)])
    return True


def _offset(name: str) -> int:
    """Return the offset in a name, -1 without one: such a file is older than any segment."""
    offset = offset_of(name)
    return -1 if offset is None else offset


def _finish_swap(fs: FileSystem, directory: str, swaps: list[str], others: list[str]) -> None:
    """Remove what the complete `swaps` replace, durably, then give them their names."""
    logs = [name for name in swaps if name.endswith(_LOG_SWAP) and offset_of(name) is not None]
    start = min((_offset(name) for name in logs), default=0)
    end = max((_next_offset(fs, f"{directory}/{name}", _offset(name)) for name in logs), default=0)
    for name in others:
        offset = offset_of(name)
        if offset is not None and start <= offset < end:
            _log.info("%s/%s: was replaced before the crash; removed", directory, name)
            fs.remove(f"{directory}/{name}")
    fs.sync_directory(directory)  # or a replaced segment could come back beside its replacement
    for name in swaps:
        _log.info("%s/%s: replaces what it was made from", directory, name)
        fs.rename(f"{directory}/{name}", f"{directory}/{name.removesuffix(SWAP)}")
    fs.sync_directory(directory)


def _next_offset(fs: FileSystem, path: str, base_offset: int) -> int:
    """Return the offset behind the last batch of a data file."""
    next_offset = base_offset
    file = fs.open(path, writable=False)
    try:
        for batch in walk_batches(file, path, is_checked=False):
            next_offset = batch.next_offset
    except CorruptEntryError as error:
        _log.warning("%s; taken as its end", error)
    finally:
        file.close()
    return next_offset
