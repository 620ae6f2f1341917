"""What the messages of today are as the batches of a recipe, and whether that is what they were."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from logstore.compat.record_mapping import MessageParts, message_parts, restored_record
from logstore.compat.spark.convert.batch_packing import Rests
from logstore.compat.spark.convert.kafka_segment_task import KafkaSegmentTask
from logstore.compat.spark.convert.preserve.batch_fingerprint import fingerprint, written_records
from logstore.compat.spark.convert.queue_units import UnitArrays
from logstore.compat.spark.convert.record_packing import RecordBatches
from logstore.compat.spark.convert.restored_records import KeptRests
from logstore.os_host import system_host
from logstore.segments.kafka.record import CorruptRecordError, Record, encode_batch
from logstore.segments.kafka.record_batch import HEADER_BYTES
from logstore.segments.rocketmq.columns import MessageColumns
from logstore.segments.rocketmq.messages.properties import parse_properties

_BASE_TIMESTAMP = slice(27, 35)
#: less than what a reader takes in one step
_RUN_BYTES = 3 * 1024 * 1024

Row = dict[str, Any]


@attrs.frozen(eq=False)
class TodaysBatch:
    """A batch, and for each of its records the offset, the queue offset and where it stood."""

    data: bytes
    offsets: NDArray[np.int64]
    queue_offsets: NDArray[np.int64]
    physical_offsets: NDArray[np.int64]
    is_unchanged: bool


class TodaysQueue:
    """
    A queue whose messages were the records of a partition.

    Compiled loops make batches of messages that are what they were; what they do not make, or not
    as it was, is looked at record by record.
    """

    def __init__(self, reader: KafkaSegmentTask) -> None:
        self._reader = reader
        directory = str(Path(reader.commit_log).parent)
        self._rests = KeptRests(directory, reader.source_topic, reader.partition)
        units = reader.units
        self.start, self.end = units.first, units.first + units.count

    def unchanged_batches(self, rows: Sequence[Row]) -> dict[int, TodaysBatch]:
        """Return batches that are what they were, by the places of their rows."""
        numbers = [
            number
            for number, row in enumerate(rows)
            if row["count"]
            and row["queue_offset"] >= self.start
            and row["queue_offset"] + row["count"] <= self.end
        ]
        if not numbers:
            return {}
        first = rows[numbers[0]]["queue_offset"]
        units = self._units(first, rows[numbers[-1]]["queue_offset"] + rows[numbers[-1]]["count"])
        sizes = np.concatenate([[0], np.cumsum(units.size_bytes)])
        found: dict[int, TodaysBatch] = {}
        run: list[int] = []
        for number in numbers:
            row = rows[number]
            end = row["queue_offset"] + row["count"] - first
            if run and sizes[end] - sizes[rows[run[0]]["queue_offset"] - first] > _RUN_BYTES:
                found.update(self._run(rows, run, units, first))
                run = []
            run.append(number)
        found.update(self._run(rows, run, units, first))
        return found

    def _units(self, first: int, last: int) -> UnitArrays:
        return attrs.evolve(self._reader.units, first=first, count=last - first).read(
            system_host().fs
        )

    def _run(
        self, rows: Sequence[Row], run: Sequence[int], units: UnitArrays, first: int
    ) -> Iterator[tuple[int, TodaysBatch]]:
        """Yield batches of neighbours, of which all messages are read in one step."""
        start = rows[run[0]]["queue_offset"] - first
        cuts = np.cumsum([rows[number]["count"] for number in run], dtype=np.int64)
        part = slice(start, start + int(cuts[-1]))
        wanted = UnitArrays(
            units.physical_offset[part], units.size_bytes[part], units.queue_offset[part]
        )
        steps = list(self._reader.steps(wanted))
        if len(steps) != 1 or len(steps[0][0]) != len(wanted):
            return
        columns, queue_offsets = steps[0]
        offsets = np.concatenate([_offsets(rows[number]) for number in run])
        times = columns.born_timestamp_ms
        batches = RecordBatches(columns).batches(offsets, self._rests.of(queue_offsets), cuts)
        for number, batch in zip(run, batches, strict=True):
            row, span = rows[number], slice(batch.first, batch.last)
            written = bytes(batch.data[HEADER_BYTES:])
            base_timestamp_ms = int(times[batch.first])
            if row["base_offset"] != offsets[batch.first]:
                continue
            if row["header"] is not None and _base_timestamp(row) != base_timestamp_ms:
                continue
            if fingerprint(written, base_timestamp_ms) == row["fingerprint"]:
                data = row["kept"] if row["header"] is None else row["header"] + written
                yield (
                    number,
                    TodaysBatch(
                        data,
                        offsets[span],
                        queue_offsets[span],
                        columns.physical_offset[span].astype(np.int64),
                        is_unchanged=True,
                    ),
                )

    def batch_of_today(self, row: Row) -> TodaysBatch | None:
        """Return a batch as it was, or of what its records are now; None if there are none."""
        first = max(row["queue_offset"], self.start)
        last = min(row["queue_offset"] + row["count"], self.end)
        if first >= last:
            return None
        records: list[Record] = []
        places: list[NDArray[np.int64]] = []
        offsets = _offsets(row)[first - row["queue_offset"] :]
        for columns, queue_offsets in self._reader.steps(self._units(first, last)):
            there = offsets[queue_offsets - first].tolist()
            records += self._records(columns, queue_offsets, there)
            places.append(columns.physical_offset.astype(np.int64))
        data = _unchanged(row, records)
        is_unchanged = data is not None
        if data is None:
            epoch = max(0, self._reader.leader_epoch)
            base_offset, codec = records[0].offset, self._reader.codec
            data = bytes(
                encode_batch(records, base_offset=base_offset, codec=codec, leader_epoch=epoch)
            )
        return TodaysBatch(
            data,
            np.array([record.offset for record in records], dtype=np.int64),
            np.arange(first, last, dtype=np.int64),
            np.concatenate(places),
            is_unchanged,
        )

    def _records(
        self, columns: MessageColumns, queue_offsets: NDArray[np.int64], offsets: list[int]
    ) -> Iterator[Record]:
        """Yield the records that messages are."""
        bodies, texts = list(RecordBatches(columns).bodies), list(columns.properties_text)
        times = columns.born_timestamp_ms.tolist()
        rests = self._rests.of(queue_offsets)
        for row, offset in enumerate(offsets):
            parts = MessageParts(bodies[row] or b"", parse_properties(texts[row] or b""))
            rest = _rest(rests, row)
            record = Record(offset, times[row], *restored_record(parts, rest))
            if rest is not None and message_parts(record) != (parts, rest):
                # The queue was made anew: it is the rest of a message that is there no more.
                record = Record(offset, times[row], *restored_record(parts, None))
            yield record


def _rest(rests: Rests | None, row: int) -> bytes | None:
    if rests is None or rests.rows[row] < 0:
        return None
    found = int(rests.rows[row])
    return rests.data[rests.bounds[found] : rests.bounds[found + 1]].tobytes()


def _offsets(row: Row) -> NDArray[np.int64]:
    """Return the offsets of a batch's records."""
    base_offset: int = row["base_offset"]
    if row["deltas"] is None:
        return np.arange(base_offset, base_offset + row["count"], dtype=np.int64)
    return base_offset + np.frombuffer(row["deltas"], dtype="<i4").astype(np.int64)


def _base_timestamp(row: Row) -> int:
    return int.from_bytes(row["header"][_BASE_TIMESTAMP], "big", signed=True)


def _unchanged(row: Row, records: Sequence[Record]) -> bytes | None:
    """Return a batch as it was, None if its records are not what they were."""
    if len(records) != row["count"]:
        return None
    is_kept = row["header"] is None
    base_timestamp_ms = records[0].timestamp_ms if is_kept else _base_timestamp(row)
    try:
        written = written_records(records, row["base_offset"], base_timestamp_ms)
    except CorruptRecordError:
        return None
    if fingerprint(written, base_timestamp_ms) != row["fingerprint"]:
        return None
    data: bytes = row["kept"] if is_kept else row["header"] + written
    return data
