"""What stands in an index file: its header and, entry by entry, its chains."""

from __future__ import annotations

from collections.abc import Iterator

from logstore.host import FileSystem
from logstore.segments.rocketmq.index.index_file import ENTRY, HEADER, IndexSizes
from logstore.tools.inspection.facts import Fact, Finding, Problem, Timestamp, Value

_STEP_COUNT = 50_000


def dump_index_file(fs: FileSystem, path: str, sizes: IndexSizes | None) -> Iterator[Finding]:
    """Yield the header and every entry; without `sizes` only the header."""
    file = fs.open(path, writable=False)
    try:
        data = file.read(0, HEADER.size)
        if len(data) < HEADER.size:
            yield Problem(path, 0, f"{len(data)} bytes are too few for the header of an index")
            return
        begin_ms, end_ms, begin, end, slot_count_used, next_number = HEADER.unpack(data)
        fields: dict[str, Value] = {
            "beginTimestamp": Timestamp(begin_ms or -1),
            "endTimestamp": Timestamp(end_ms or -1),
            "beginPhysicalOffset": begin,
            "endPhysicalOffset": end,
            "hashSlotCount": slot_count_used,
            "indexCount": next_number,
        }
        if sizes is not None:
            fields |= {"maxHashSlotNum": sizes.slot_count, "maxIndexNum": sizes.entry_count}
        yield Fact("header", fields)
        if sizes is None:
            if next_number > 1:
                reason = (
                    "how many slots it has is not known, so its entries cannot be found; say it "
                    "with --set maxHashSlotNum=N --set maxIndexNum=N"
                )
                yield Problem(path, HEADER.size, reason)
            return
        if file.size() != sizes.file_size_bytes:
            reason = f"is {file.size()} bytes long, its sizes make {sizes.file_size_bytes}"
            yield Problem(path, None, reason)
        for start in range(1, min(next_number, sizes.entry_count), _STEP_COUNT):
            count = min(_STEP_COUNT, next_number - start, sizes.entry_count - start)
            position = sizes.entries_position + ENTRY.size * start
            data = file.read(position, ENTRY.size * count)
            whole = len(data) // ENTRY.size * ENTRY.size
            for index, entry in enumerate(ENTRY.iter_unpack(data[:whole])):
                key_hash, physical_offset, seconds, previous = entry
                yield Fact("entry", {
                    "position": position + ENTRY.size * index,
                    "number": start + index,
                    "slot": key_hash % sizes.slot_count,
                    "hash": key_hash,
                    "physicalOffset": physical_offset,
                    "time": Timestamp(begin_ms + 1000 * seconds),
                    "previous": previous,
                })  # fmt: skip
    finally:
        file.close()
