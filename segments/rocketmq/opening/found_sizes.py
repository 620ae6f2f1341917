"""
How large the files of a store are, told by the files themselves.

A broker is told its sizes and refuses others; whoever only has a directory takes them from there.
Only the numbers of slots and entries of an index file cannot be told from its length.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from logstore.host import FileSystem

#: folders, how deep below them files stand and what they are multiples of, by the setting that
#: says how large they are
_PLACES = {
    "mappedFileSizeCommitLog": ("commitlog", 0, 1),
    "mappedFileSizeConsumeQueue": ("consumequeue", 2, 20),
    "mapperFileSizeBatchConsumeQueue": ("batchconsumequeue", 2, 46),
    "mappedFileSizeConsumeQueueExt": ("consumequeue_ext", 2, 1),
}
_NAME_DIGITS = 20
#: so many files of a kind are asked: a store may have a hundred thousand queues
_ASKED_MAX = 64
#: where a file begins, and its length
_Place = tuple[int, int]


def found_sizes(fs: FileSystem, directory: str) -> dict[str, str]:
    """
    Return the settings of file sizes that the first files of each kind show.

    One file that was cut or has grown does not count against the others. ``enableConsumeQueueExt``
    is among the settings where there are such files.
    """
    found: dict[str, str] = {}
    for setting, (folder, depth, unit_bytes) in _PLACES.items():
        size_bytes = usual_length(_folders(fs, f"{directory}/{folder}", depth), unit_bytes)
        if size_bytes:
            found[setting] = str(size_bytes)
    if "mappedFileSizeConsumeQueueExt" in found:
        found["enableConsumeQueueExt"] = "true"
    return found


def usual_length(folders: Iterable[list[_Place]], unit_bytes: int = 1) -> int:
    """
    Return how long files must be by what most of them show, 0 where there is none.

    Their names show it as well: one begins where the one before it should end.
    """
    lengths: Counter[int] = Counter()
    distances: Counter[int] = Counter()
    asked_count = 0
    for files in folders:
        lengths.update(size_bytes for _, size_bytes in files if size_bytes)
        distances.update(other - base for (base, _), (other, _) in pairwise(files) if other > base)
        asked_count += len(files)
        if asked_count >= _ASKED_MAX:
            break
    votes = lengths + distances

    def rank(size: int) -> tuple[int, int, bool, int]:
        return votes[size], distances[size], size % unit_bytes == 0, size

    return max(votes, key=rank, default=0)


def _folders(fs: FileSystem, path: str, depth: int) -> Iterator[list[_Place]]:
    """Yield the files of each folder so far down, in their order."""
    if not fs.is_directory(path):
        return
    entries = fs.list_directory(path)
    if depth:
        for entry in entries:
            if entry.is_directory:
                yield from _folders(fs, f"{path}/{entry.name}", depth - 1)
        return
    yield sorted(
        (int(entry.name), entry.size_bytes)
        for entry in entries
        if not entry.is_directory and _is_mapped_file(entry.name)
    )


def _is_mapped_file(name: str) -> bool:
    return len(name) >= _NAME_DIGITS and name.isascii() and name.isdigit()
