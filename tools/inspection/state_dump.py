"""
The facts of the small files beside the segments: producer snapshots, checkpoints, identities.

They are read whole and are right or wrong as a whole, so a problem here names no position.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import orjson

from logstore.errors import CorruptFileError
from logstore.host import FileSystem, read_file
from logstore.segments.kafka.checkpoints import read_checkpoint
from logstore.segments.kafka.producer_snapshot import ProducerSnapshotEntry, read_snapshot
from logstore.tools.inspection.facts import (
    Fact,
    Finding,
    MaybeOffset,
    Problem,
    Timestamp,
    Value,
)

_SEQUENCE_MODULUS = 1 << 31


def dump_snapshot(fs: FileSystem, path: str) -> Iterator[Finding]:
    """Yield the state of every producer in a ``.snapshot``."""
    try:
        entries = read_snapshot(fs, path)
    except CorruptFileError as error:
        yield Problem(path, None, error.reason)
        return
    for entry in entries:
        yield Fact("entry", _producer_fields(entry))


def _producer_fields(entry: ProducerSnapshotEntry) -> dict[str, Value]:
    first = entry.transaction_first_offset
    fields: dict[str, Value] = {
        "producerId": entry.producer_id,
        "producerEpoch": entry.epoch,
        "coordinatorEpoch": entry.coordinator_epoch,
        "currentTxnFirstOffset": MaybeOffset(first if first >= 0 else None),
        "lastTimestamp": Timestamp(entry.timestamp_ms),
    }
    if entry.last_offset >= 0:
        first_sequence = entry.last_sequence
        if first_sequence >= 0:
            first_sequence = (first_sequence - entry.offset_delta) % _SEQUENCE_MODULUS
        fields.update(
            firstSequence=first_sequence,
            lastSequence=entry.last_sequence,
            lastOffset=entry.last_offset,
            offsetDelta=entry.offset_delta,
            timestamp=Timestamp(entry.timestamp_ms),
        )
    return fields


def dump_offset_checkpoint(fs: FileSystem, path: str) -> Iterator[Finding]:
    """Yield topic, partition and offset of every line."""
    yield from _dump_checkpoint(fs, path, ("topic", "partition", "offset"))


def dump_leader_epochs(fs: FileSystem, path: str) -> Iterator[Finding]:
    """Yield every epoch and where it starts."""
    yield from _dump_checkpoint(fs, path, ("epoch", "startOffset"))


def _dump_checkpoint(fs: FileSystem, path: str, names: tuple[str, ...]) -> Iterator[Finding]:
    try:
        lines = read_checkpoint(fs, path, len(names))
        found = [
            {
                name: text if name == "topic" else int(text)
                for name, text in zip(names, line, strict=True)
            }
            for line in lines
        ]
    except CorruptFileError as error:
        yield Problem(path, None, error.reason)
        return
    except ValueError as error:
        yield Problem(path, None, f"not a number: {error}")
        return
    if not found:
        yield Fact("empty", {"file": path})
    for fields in found:
        yield Fact("entry", dict[str, Value](fields))


def dump_properties(fs: FileSystem, path: str) -> Iterator[Finding]:
    """Yield the ``key=value`` or ``key: value`` pairs of a small text file as one fact."""
    try:
        lines = read_file(fs, path).decode().splitlines()
    except UnicodeDecodeError:
        yield Problem(path, None, "not UTF-8")
        return
    fields: dict[str, Value] = {}
    for line in lines:
        text = line.strip()
        if not text or text[0] in "#!":
            continue
        cuts = [place for mark in "=:" if (place := text.find(mark)) > 0]
        if not cuts:
            yield Problem(path, None, f"malformed line {text[:40]!r}")
            return
        fields[text[: min(cuts)].strip()] = text[min(cuts) + 1 :].strip()
    yield Fact("entry", fields)


def dump_json(fs: FileSystem, path: str) -> Iterator[Finding]:
    """Yield the members of a small JSON object as one fact; an empty file is one of old brokers."""
    data = read_file(fs, path)
    if not data:
        yield Fact("empty", {"file": path})
        return
    try:
        content = _members(orjson.loads(data))
        fields: dict[str, Value] = {
            str(name): value if isinstance(value, int | str) else orjson.dumps(value).decode()
            for name, value in content.items()
        }
    except (orjson.JSONDecodeError, TypeError) as error:
        yield Problem(path, None, f"not a JSON object ({error})")
        return
    yield Fact("entry", fields)


def _members(content: Any) -> dict[str, Any]:
    if not isinstance(content, dict):
        raise TypeError(f"but a {type(content).__name__}")
    return cast(dict[str, Any], content)
