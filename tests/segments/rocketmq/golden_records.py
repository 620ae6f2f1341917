"""The records of golden commit logs, one by one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import attrs

from logstore.segments.rocketmq.messages.message_layout import BLANK_MAGIC, VERSIONS
from tests.segments.rocketmq.golden_case import GoldenCase, golden_cases


@attrs.frozen
class StoredRecord:
    """One message of a commit log file, as it stands there."""

    file: Path
    position: int
    data: bytes

    @property
    def physical_offset(self) -> int:
        """Where it stands in the whole commit log."""
        return int(self.file.name) + self.position


def stores(*names: str, version: str | None = None) -> list[tuple[GoldenCase, Path]]:
    """Return every store of the golden cases but the damaged ones, which keep their bad records."""
    found: list[tuple[GoldenCase, Path]] = []
    for case in golden_cases(*names, version=version, without=("damage",)):
        found += [(case, path) for path in case.stores.values()]
    return found


def ids_of(pairs: list[tuple[GoldenCase, Path]]) -> list[str]:
    """Return what pytest calls each store."""
    return [f"{case.id}/{store.relative_to(case.folder)}" for case, store in pairs]


def stored_records(store: Path) -> Iterator[StoredRecord]:
    """Yield every record of a store's commit log up to where its last file ends."""
    for file in sorted((store / "commitlog").iterdir()):
        data = file.read_bytes()
        position = 0
        while (magic := data[position + 4 : position + 8]) in VERSIONS:
            end = position + int.from_bytes(data[position : position + 4])
            yield StoredRecord(file, position, data[position:end])
            position = end
        if magic == BLANK_MAGIC:
            assert position + int.from_bytes(data[position : position + 4]) == len(data)
