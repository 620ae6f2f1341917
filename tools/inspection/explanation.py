"""
How an offset or a time is found: the segment, the index entry, the walk, the batch, the record.

The steps are those of a read in :class:`logstore.segments.kafka.segment.KafkaSegment` and of
Kafka's ``LogSegment.read`` and ``findOffsetByTimestamp``, taken one by one and put in words.
"""

from __future__ import annotations

from bisect import bisect_right
from operator import itemgetter

from logstore.errors import CorruptEntryError, StorageError
from logstore.segments.kafka.record import CorruptRecordError, Record, decode_records
from logstore.segments.kafka.record_batch import MAGIC, RecordBatch
from logstore.tools.inspection.batch_walk import FoundBatch, walk_batches, whole_batch
from logstore.tools.inspection.log_dump import codec_name, control_fields, timestamp_type
from logstore.tools.inspection.rendering import header_name, json_bytes, json_headers, quoted
from logstore.tools.inspection.road import Explanation, Fields
from logstore.tools.inspection.stored_partition import StoredPartition, StoredSegment
from logstore.tools.inspection.times import iso_time

_TEXT_CHARACTERS = 120


def explain_offset(partition: StoredPartition, offset: int) -> Explanation:
    """Return how a read finds `offset`, or why there is nothing to find."""
    found = Explanation()
    start, end = partition.start_offset, partition.end_offset
    if offset < start:
        return found.end("below-start", _below_start(partition, offset))
    if offset > end:
        return found.end("above-end", f"the log ends at {end}: nobody wrote offset {offset} yet")
    if offset == end:
        return found.end("at-end", f"{end} is the log end: the next record gets it")
    segment = partition.segment_of(offset)
    _add_segment(found, partition, segment, f"the last one that starts at or below {offset}")
    position = _add_index_lookup(found, segment, offset)
    batch = _walk(found, segment, position, offset, -(2**63))
    if batch is not None:
        return _add_record(found, segment, batch, offset)
    following = [s for s in partition.segments if s.base_offset > offset]
    if found.outcome == "damaged" or not following:
        return found
    return found.end(
        "hole",
        f"no batch of the segment reaches offset {offset}: compaction removed it; "
        f"a reader goes on in {following[0].name}",
    )


def explain_time(partition: StoredPartition, timestamp_ms: int) -> Explanation:
    """Return how the first record that is at least that young is found."""
    found = Explanation()
    when = f"{iso_time(timestamp_ms)} ({timestamp_ms})"
    skipped = 0
    for segment in partition.segments:
        newest_ms = segment.end.largest_timestamp_ms
        if newest_ms < timestamp_ms:
            skipped += 1
            continue
        why = f"the first one with a timestamp at or after {when}; {skipped} older ones are skipped"
        _add_segment(found, partition, segment, why)
        offset = _add_time_lookup(found, segment, timestamp_ms)
        asked = max(offset, partition.start_offset)
        position = _add_index_lookup(found, segment, asked)
        batch = _walk(found, segment, position, partition.start_offset, timestamp_ms)
        while batch is not None and _is_emptied(segment, batch, partition, timestamp_ms):
            place = batch.end_position
            batch = _walk(found, segment, place, partition.start_offset, timestamp_ms)
        if batch is not None:
            return _add_record(found, segment, batch, partition.start_offset, timestamp_ms)
        if found.outcome == "damaged":
            return found
        skipped += 1
    newest_ms = partition.largest_timestamp_ms
    newest = (
        "there is no record with a timestamp"
        if newest_ms < 0
        else (f"the newest timestamp is {iso_time(newest_ms)} ({newest_ms})")
    )
    return found.end("too-young", f"every record is older than {when}: {newest}")


def _is_emptied(
    segment: StoredSegment, walked: FoundBatch, partition: StoredPartition, timestamp_ms: int
) -> bool:
    """Tell whether compaction removed what made the batch so young: the search goes on then."""
    try:
        _, records = _decoded(segment, walked.position)
    except (StorageError, CorruptRecordError):
        return False  # to be said by who looks for the record
    return not any(
        record.offset >= partition.start_offset and record.timestamp_ms >= timestamp_ms
        for record in records
    )


def _below_start(partition: StoredPartition, offset: int) -> str:
    start = partition.start_offset
    first = partition.segments[0].base_offset if partition.segments else start
    if offset >= first:
        return (
            f"the log starts at {start}: offset {offset} was deleted (DeleteRecords), though its "
            "segment is still there"
        )
    return f"the log starts at {start}: offset {offset} was deleted, its segment is gone"


def _add_segment(
    found: Explanation, partition: StoredPartition, segment: StoredSegment, why: str
) -> None:
    end = segment.end.next_offset
    fields: Fields = {
        "file": segment.path,
        "start": segment.base_offset,
        "end": end,
        "bytes": segment.size_bytes,
        "segmentCount": len(partition.segments),
        "largestTimestamp": _number(segment.end.largest_timestamp_ms),
    }
    place = f"{segment.name} [{segment.base_offset}, {end}), {segment.size_bytes} bytes"
    found.add("segment", fields, f"{place}: of {len(partition.segments)} {why}")


def _add_index_lookup(found: Explanation, segment: StoredSegment, offset: int) -> int:
    """Say which offset index entry leads to `offset`; return the position to start from."""
    entries = list(segment.offset_index.entries())
    slot = bisect_right(entries, offset, key=itemgetter(0)) - 1
    fields: Fields = {"entryCount": len(entries), "slot": None, "offset": None, "position": 0}
    if slot < 0:
        why = f"starts with offset {entries[0][0]}" if entries else _nothing(segment.has_index)
        found.add("index", fields, f"{why}: the walk starts at position 0")
        return 0
    entry_offset, position = entries[slot]
    fields.update(slot=slot, offset=entry_offset, position=position)
    found.add(
        "index",
        fields,
        f"slot {slot} of {len(entries)}: offset {entry_offset} is in the batch at position "
        f"{position}; the last entry not above {offset}",
    )
    return position


def _nothing(has_index: bool) -> str:
    return "is empty" if has_index else "is not on disk (a broker may still have it in memory)"


def _add_time_lookup(found: Explanation, segment: StoredSegment, timestamp_ms: int) -> int:
    """Say which time index entry is the last one not above the time; return its offset."""
    entries = list(segment.time_index.entries())
    slot = bisect_right(entries, timestamp_ms, key=itemgetter(0)) - 1
    fields: Fields = {"entryCount": len(entries), "slot": None, "timestamp": None}
    fields["offset"] = segment.base_offset
    if slot < 0:
        why = f"starts with {iso_time(entries[0][0])}" if entries else _nothing(segment.has_index)
        found.add("timeindex", fields, f"{why}: nothing is known to be older")
        return segment.base_offset
    entry_ms, offset = entries[slot]
    fields.update(slot=slot, timestamp=entry_ms, offset=offset)
    found.add(
        "timeindex",
        fields,
        f"slot {slot} of {len(entries)}: before offset {offset} no record is younger than "
        f"{iso_time(entry_ms)} ({entry_ms})",
    )
    return offset


def _walk(
    found: Explanation, segment: StoredSegment, position: int, offset: int, timestamp_ms: int
) -> FoundBatch | None:
    """Walk to the first batch that ends at `offset` or above and has a time of `timestamp_ms`."""
    count, place = 0, position
    file = segment.open()
    try:
        for walked in walk_batches(file, position):
            count, place = count + 1, walked.end_position
            batch = walked.batch
            if batch.last_offset >= offset and batch.max_timestamp_ms >= timestamp_ms:
                _add_walk(found, position, walked.position, count)
                _add_batch(found, walked)
                return walked
    except CorruptEntryError as error:
        found.end("damaged", str(error))
    finally:
        file.close()
    _add_walk(found, position, place, count)
    return None


def _add_walk(found: Explanation, start: int, end: int, count: int) -> None:
    fields: Fields = {"batches": count, "from": start, "to": end}
    plural = "batch" if count == 1 else "batches"
    found.add("walk", fields, f"{count} {plural} looked at from position {start} on")


def _add_batch(found: Explanation, walked: FoundBatch) -> None:
    batch = walked.batch
    is_wrapper = batch.record_count < 0  # of magic 0 or 1: its header tells the last offset only
    fields: Fields = {
        "position": walked.position,
        "baseOffset": None if is_wrapper else batch.base_offset,
        "lastOffset": batch.last_offset,
        "count": _number(batch.record_count),
        "bytes": batch.size_bytes,
        "maxTimestamp": _number(batch.max_timestamp_ms),
        "timestampType": timestamp_type(batch),
        "codec": codec_name(batch),
        "leaderEpoch": batch.leader_epoch,
        "producerId": _number(batch.producer_id),
        "isTransactional": batch.is_transactional,
        "isControl": batch.is_control,
    }
    producer = "" if batch.producer_id < 0 else f", producer {batch.producer_id}"
    holds = f"offsets {batch.base_offset} to {batch.last_offset}, {_records(batch.record_count)}"
    if batch.magic < MAGIC:
        holds = f"magic {batch.magic}, a message at offset {batch.last_offset}"
        if is_wrapper:
            holds = f"magic {batch.magic}, messages up to offset {batch.last_offset}"
    found.add(
        "batch",
        fields,
        f"position {walked.position}: {holds}, {batch.size_bytes} bytes, "
        f"codec {codec_name(batch)}, {_time(batch, batch.max_timestamp_ms, ' up to')}, "
        f"leader epoch {batch.leader_epoch}{producer}",
    )


def _time(batch: RecordBatch, timestamp_ms: int, how: str = "") -> str:
    """Say whose time it is and what, or that there is none."""
    if timestamp_ms < 0:
        return "no time"
    return f"{timestamp_type(batch)}{how} {iso_time(timestamp_ms)}"


def _add_record(
    found: Explanation,
    segment: StoredSegment,
    walked: FoundBatch,
    offset: int,
    timestamp_ms: int | None = None,
) -> Explanation:
    """Say which record of the batch it is: the one at `offset`, or the first of that age."""
    try:
        batch, records = _decoded(segment, walked.position)
    except (StorageError, CorruptRecordError) as error:
        return found.end("damaged", str(error))
    if timestamp_ms is None:
        matching = [record for record in records if record.offset >= offset]
    else:
        matching = [
            record
            for record in records
            if record.offset >= offset and record.timestamp_ms >= timestamp_ms
        ]
    if not matching or (timestamp_ms is None and matching[0].offset != offset):
        return found.end("hole", _hole(batch, matching, offset))
    record = matching[0]
    if batch.is_control:
        return _add_marker(found, batch, record)
    _add_plain_record(found, batch, record)
    return found.end("found", f"offset {record.offset}")


def _decoded(segment: StoredSegment, position: int) -> tuple[RecordBatch, list[Record]]:
    file = segment.open()
    try:
        batch = whole_batch(file, position)
    finally:
        file.close()
    crc = batch.computed_crc()
    if crc != batch.crc:
        reason = f"CRC is {crc:#010x}, header says {batch.crc:#010x}"
        raise CorruptEntryError(segment.path, position, reason)
    return batch, decode_records(batch.data)


def _hole(batch: RecordBatch, following: list[Record], offset: int) -> str:
    if batch.magic < MAGIC:
        return (
            f"no message has offset {offset}: compaction removed it; the next one has "
            f"{following[0].offset}"
        )
    if batch.base_offset > offset:
        return (
            f"no batch holds offset {offset}: compaction removed it; a reader goes on with the "
            f"batch at {batch.base_offset}"
        )
    rest = f"the next record is {following[0].offset}" if following else "it has no record behind"
    return f"the batch covers offset {offset}, but compaction removed its record; {rest}"


def _add_marker(found: Explanation, batch: RecordBatch, record: Record) -> Explanation:
    said = control_fields(record)
    fields: Fields = {"offset": record.offset, "timestamp": _number(record.timestamp_ms), **said}
    fields.update(producerId=batch.producer_id, producerEpoch=batch.producer_epoch)
    kind = str(said.get("endTxnMarker", said.get("controlType")))
    found.add(
        "marker",
        fields,
        f"offset {record.offset}: {kind} of producer {batch.producer_id}, epoch "
        f"{batch.producer_epoch}, at {iso_time(record.timestamp_ms)}",
    )
    return found.end(
        "marker", f"offset {record.offset} is a transaction marker: consumers never see it"
    )


def _add_plain_record(found: Explanation, batch: RecordBatch, record: Record) -> None:
    fields: Fields = {
        "offset": record.offset,
        "timestamp": _number(record.timestamp_ms),
        "timestampType": timestamp_type(batch),
        "sequence": _number(record.sequence),
        **json_bytes("key", record.key),
        **json_bytes("value", record.value),
        "headers": json_headers(record.headers),
    }
    headers = ", ".join(
        f"{header_name(name)}={quoted(value, _TEXT_CHARACTERS)}" for name, value in record.headers
    )
    found.add(
        "record",
        fields,
        f"offset {record.offset}, {_time(batch, record.timestamp_ms)}, "
        f"key {quoted(record.key, _TEXT_CHARACTERS)}, "
        f"value {quoted(record.value, _TEXT_CHARACTERS)}"
        + (f", headers {headers}" if headers else ""),
    )


def _records(count: int) -> str:
    return "1 record" if count == 1 else f"{count} records"


def _number(value: int) -> int | None:
    return None if value < 0 else value
