"""Producer snapshots held against the producers that the log has made."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import attrs

from logstore.errors import CorruptFileError
from logstore.host import FileSystem
from logstore.segments.kafka.producer_snapshot import (
    ProducerSnapshotEntry,
    read_snapshot,
    snapshot_name,
)
from logstore.tools.inspection.verification.finding import Finding
from logstore.tools.inspection.verification.producer_fold import Begun, Producer


@attrs.frozen
class ProducersAt:
    """The producers at an offset, and since when their open transactions are open."""

    offset: int
    producers: Mapping[int, Producer]
    open: Mapping[int, Begun]


def load_snapshot(
    fs: FileSystem, directory: str, offset: int
) -> list[ProducerSnapshotEntry] | Finding:
    """Return what a snapshot holds, or why it cannot be read."""
    name = snapshot_name(offset)
    try:
        return read_snapshot(fs, f"{directory}/{name}")
    except CorruptFileError as error:
        return Finding("snapshot", name, f"cannot be read: {error.reason}", offset=offset)


def snapshot_findings(
    fs: FileSystem, directory: str, at: ProducersAt, *, known_from: int
) -> Iterator[Finding]:
    """
    Yield where a snapshot and the log differ; of what was below `known_from` nobody can tell.

    A producer that the snapshot lacks may have been silent for so long that it was forgotten, but
    not one with an open transaction.
    """
    name = snapshot_name(at.offset)
    entries = load_snapshot(fs, directory, at.offset)
    if isinstance(entries, Finding):
        yield entries
        return
    found = {entry.producer_id: entry for entry in entries}
    for producer_id, entry in found.items():
        reason = _wrong(entry, at, known_from)
        if reason is not None:
            yield Finding("snapshot", name, f"producer {producer_id} {reason}", offset=at.offset)
    for producer_id, begun in at.open.items():
        if producer_id not in found and begun.offset >= known_from:
            yield Finding(
                "snapshot",
                name,
                f"lacks producer {producer_id}, whose transaction is open since offset "
                f"{begun.offset}",
                offset=at.offset,
            )


def _wrong(entry: ProducerSnapshotEntry, at: ProducersAt, known_from: int) -> str | None:
    producer = at.producers.get(entry.producer_id)
    if producer is None:
        if entry.last_offset < known_from:
            return None
        return f"wrote up to offset {entry.last_offset}, it says; the log has no batch of it"
    if entry.epoch != producer.epoch:
        return f"is at epoch {entry.epoch}, it says; in the log it is at {producer.epoch}"
    told = (entry.last_offset, entry.last_sequence, entry.offset_delta)
    made = (producer.last_offset, producer.last_sequence, producer.offset_delta)
    if told != made and (max(entry.last_offset, producer.last_offset) >= known_from):
        return (
            f"wrote offset {told[0]} with sequence {told[1]} last, it says; in the log that is "
            f"offset {made[0]} with sequence {made[1]}"
        )
    if entry.timestamp_ms != producer.timestamp_ms:
        return f"was last seen at {entry.timestamp_ms}, it says; the log: {producer.timestamp_ms}"
    begun = at.open.get(entry.producer_id)
    since = -1 if begun is None else begun.offset
    first = entry.transaction_first_offset
    is_known = not (0 <= first < known_from or 0 <= since < known_from)
    if first != since and is_known:
        return f"has a transaction open since {_since(first)}, it says; the log: {_since(since)}"
    return None


def _since(offset: int) -> str:
    return "never" if offset < 0 else f"offset {offset}"
