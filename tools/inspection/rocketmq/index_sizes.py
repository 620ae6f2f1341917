"""
How many slots and entries the index files of a store have.

A setting says so, or the default length of a file. Else the header tells how many entries there are
and to which physical offset the last one leads: where that stands, the slots have ended before.
"""

from __future__ import annotations

from collections.abc import Mapping

from logstore.host import File, FileSystem
from logstore.segments.rocketmq.index.index_file import ENTRY, HEADER, SLOT_BYTES, IndexSizes
from logstore.segments.rocketmq.settings.store_config import StoreConfig

_CHUNK_BYTES = 1 << 20
_SETTINGS = ("maxHashSlotNum", "maxIndexNum")
_PHYSICAL_OFFSET_AT = 4
#: entries whose chains must fit before sizes are believed
_CHECKED_COUNT = 2000


def index_paths(fs: FileSystem, folder: str) -> list[str]:
    """Return the index files in a folder, oldest first."""
    if not fs.is_directory(folder):
        return []
    entries = (entry for entry in fs.list_directory(folder) if not entry.is_directory)
    return [
        f"{folder}/{entry.name}"
        for entry in entries
        if entry.name.isascii() and entry.name.isdigit()
    ]


def told_index_sizes(
    fs: FileSystem, paths: list[str], settings: Mapping[str, str]
) -> IndexSizes | None:
    """Return the sizes that settings or files tell, None where neither does."""
    if any(name in settings for name in _SETTINGS):
        return StoreConfig({k: v for k, v in settings.items() if k in _SETTINGS}).index_sizes
    default = IndexSizes()
    for path in paths:
        file = fs.open(path, writable=False)
        try:
            if file.size() == default.file_size_bytes:
                return default
            found = _found(file)
        finally:
            file.close()
        if found is not None:
            return found
    return None


def _found(file: File) -> IndexSizes | None:
    """Search for the last entry by its physical offset, and check the first one."""
    header = file.read(0, HEADER.size)
    if len(header) < HEADER.size:
        return None
    _, _, first_offset, last_offset, slot_count_used, next_number = HEADER.unpack(header)
    if next_number < 2 or last_offset <= 0:
        return None
    wanted = last_offset.to_bytes(8, "big")
    size_bytes = file.size()
    # entries before the last one stand before it, and so do at least as many slots as are used
    position = HEADER.size + SLOT_BYTES * max(slot_count_used, 1) + ENTRY.size * (next_number - 1)
    while position < size_bytes:
        start = file.next_data(position)
        if start is None:
            return None
        data = file.read(start, _CHUNK_BYTES + 8)
        at = data.find(wanted)
        while 0 <= at < _CHUNK_BYTES:
            last = start + at - _PHYSICAL_OFFSET_AT
            sizes = _sizes_with(last, next_number, size_bytes)
            if sizes is not None and _begins_well(file, sizes, first_offset, next_number):
                return sizes
            at = data.find(wanted, at + 1)
        position = start + _CHUNK_BYTES
    return None


def _sizes_with(last_entry: int, next_number: int, size_bytes: int) -> IndexSizes | None:
    """Return the sizes if entry `next_number` - 1 stands at a position, None if that cannot be."""
    slots, rest = divmod(last_entry - HEADER.size - ENTRY.size * (next_number - 1), SLOT_BYTES)
    if rest or slots < 1:
        return None
    entries, rest = divmod(size_bytes - HEADER.size - SLOT_BYTES * slots, ENTRY.size)
    return None if rest or entries < next_number else IndexSizes(slots, entries)


def _begins_well(file: File, sizes: IndexSizes, first_offset: int, next_number: int) -> bool:
    """Tell whether the chains of the first entries are what these sizes make of them."""
    count = min(next_number - 1, _CHECKED_COUNT)
    data = file.read(sizes.entries_position + ENTRY.size, ENTRY.size * count)
    newest: dict[int, int] = {}
    for number, entry in enumerate(ENTRY.iter_unpack(data[: len(data) // 20 * 20]), 1):
        key_hash, physical_offset, _, previous = entry
        slot = key_hash % sizes.slot_count
        if physical_offset < first_offset or key_hash < 0 or previous != newest.get(slot, 0):
            return False
        newest[slot] = number
    for slot, number in newest.items():
        data = file.read(HEADER.size + SLOT_BYTES * slot, SLOT_BYTES)
        if not number <= int.from_bytes(data, "big", signed=True) < next_number:
            return False
    return bool(newest)
