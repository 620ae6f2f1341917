"""
How large the files of a store are, told by the files themselves.

A broker is told its sizes and refuses others; whoever only has a directory takes them from there.
Only the numbers of slots and entries of an index file cannot be told from its length.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from logstore.host import FileSystem

#: folders and how deep below them files stand, by the setting that says how large they are
_PLACES = {
    "mappedFileSizeCommitLog": ("commitlog", 0),
    "mappedFileSizeConsumeQueue": ("consumequeue", 2),
    "mapperFileSizeBatchConsumeQueue": ("batchconsumequeue", 2),
    "mappedFileSizeConsumeQueueExt": ("consumequeue_ext", 2),
}
_NAME_DIGITS = 20


def found_sizes(fs: FileSystem, directory: str) -> dict[str, str]:
    """
    Return the settings of file sizes that the first file of each kind shows.

    ``enableConsumeQueueExt`` is among them where there are such files.
    """
    found: dict[str, str] = {}
    for setting, (folder, depth) in _PLACES.items():
        size_bytes = next(_sizes(fs, f"{directory}/{folder}", depth), None)
        if size_bytes is not None:
            found[setting] = str(size_bytes)
    if "mappedFileSizeConsumeQueueExt" in found:
        found["enableConsumeQueueExt"] = "true"
    return found


def _sizes(fs: FileSystem, path: str, depth: int) -> Iterator[int]:
    """Yield the lengths of the files in a folder so far down, those of no length left out."""
    if not fs.is_directory(path):
        return
    for entry in fs.list_directory(path):
        if depth and entry.is_directory:
            yield from _sizes(fs, f"{path}/{entry.name}", depth - 1)
        elif not depth and _is_mapped_file(entry.name) and entry.size_bytes:
            yield entry.size_bytes


def _is_mapped_file(name: str) -> bool:
    return len(name) >= _NAME_DIGITS and name.isascii() and name.isdigit()
