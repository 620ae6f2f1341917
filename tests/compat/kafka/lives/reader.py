"""What a consumer gets to see of a partition, from the beginning of its log to the end."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

import attrs

from logstore.compat.kafka.broker import Broker
from logstore.segments.kafka.control_record import decode_marker
from logstore.segments.kafka.record import decode_records
from logstore.segments.kafka.record_batch import RecordBatch, iterate_batches
from tests.compat.kafka.peer import Peer, fetch_fields

EARLIEST, LATEST = -2, -1


@attrs.frozen
class Seen:
    """One record as a consumer has it."""

    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None


class Reader:
    """Reads partitions of one broker, in pieces of drawn sizes."""

    def __init__(self, broker: Broker, dice: random.Random) -> None:
        self._peer = Peer(broker)
        self._dice = dice

    def offset_at(self, topic: str, index: int, timestamp: int, isolation: int = 0) -> int:
        """Return what ListOffsets says of a timestamp, or of EARLIEST and LATEST."""
        asked = {"partition_index": index, "timestamp": timestamp}
        answer = self._peer.ask(
            "ListOffsets", 6,
            {
                "replica_id": -1, "isolation_level": isolation,
                "topics": [{"name": topic, "partitions": [asked]}],
            },
        ).message  # fmt: skip
        ((found,),) = [one["partitions"] for one in answer["topics"]]
        assert found["error_code"] == 0, f"ListOffsets of {topic}-{index}: {found}"
        offset: int = found["offset"]
        return offset

    def read(self, topic: str, index: int, *, is_committed: bool = False) -> list[Seen]:
        """Return every record that a consumer of this isolation is given, in order."""
        isolation = int(is_committed)
        start = offset = self.offset_at(topic, index, EARLIEST)
        end = self.offset_at(topic, index, LATEST, isolation)
        aborted: set[tuple[int, int]] = set()
        batches: dict[int, RecordBatch] = {}
        while offset < end:
            part = self._fetch(topic, index, offset, isolation)
            for one in part["aborted_transactions"] or ():
                aborted.add((one["first_offset"], one["producer_id"]))
            found = list(iterate_batches(memoryview(part["records"] or b"")))
            assert found, f"{topic}-{index}: nothing at {offset}, which is below the end {end}"
            assert found[-1].last_offset >= offset, f"{topic}-{index}: no way past {offset}"
            batches |= {batch.base_offset: batch for batch in found}
            offset = found[-1].last_offset + 1
        ordered = [batches[base] for base in sorted(batches)]
        return [one for one in _visible(ordered, sorted(aborted)) if start <= one.offset < end]

    def _fetch(self, topic: str, index: int, offset: int, isolation: int) -> dict[str, Any]:
        asked = {
            "partition": index,
            "fetch_offset": offset,
            "partition_max_bytes": self._dice.choice((1, 700, 4000, 1 << 20)),
        }
        fields = fetch_fields([(topic, [asked])], 12, isolation_level=isolation)
        part = self._peer.ask("Fetch", 12, fields).partition
        assert part["error_code"] == 0, f"Fetch of {topic}-{index} at {offset}: {part}"
        assert part["last_stable_offset"] <= part["high_watermark"]
        return part


def _visible(batches: Sequence[RecordBatch], waiting: list[tuple[int, int]]) -> Iterator[Seen]:
    """Yield the records that are neither markers nor of a transaction in the aborted list."""
    skipped: set[int] = set()
    for batch in batches:
        while waiting and waiting[0][0] <= batch.last_offset:
            skipped.add(waiting.pop(0)[1])
        records = list(decode_records(batch.data))
        if batch.is_control:
            marker = decode_marker(records[0]) if records else None
            if marker is not None and marker.is_abort:
                skipped.discard(batch.producer_id)
        elif not (batch.is_transactional and batch.producer_id in skipped):
            for record in records:
                yield Seen(record.offset, record.timestamp_ms, record.key, record.value)
