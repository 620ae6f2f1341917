"""The facts of a ``.log`` file: its batches and, on demand, their records."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from logstore.errors import CorruptEntryError
from logstore.host import File
from logstore.segments.kafka.compression import Codec
from logstore.segments.kafka.control_record import control_type, decode_marker
from logstore.segments.kafka.record import CorruptRecordError, Record, decode_records
from logstore.segments.kafka.record_batch import MAGIC, RecordBatch
from logstore.tools.inspection.batch_walk import FoundBatch, walk_batches
from logstore.tools.inspection.facts import (
    Decoded,
    Fact,
    Finding,
    MaybeOffset,
    Names,
    Payload,
    Problem,
    Timestamp,
    Value,
)
from logstore.tools.inspection.record_decoders import MissingKeyError, RecordDecoder


@attrs.frozen
class LogSelection:
    """
    What of a log is asked for.

    Batches that hold offsets of ``[start_offset, end_offset)``; of their records nothing, what
    can be told without their content (`has_records`), or key and value too (`has_payload`), made
    readable by a `decoder` if they are the broker's own.
    """

    start_offset: int = -(2**63)
    end_offset: int = 2**63
    has_records: bool = False
    has_payload: bool = False
    decoder: RecordDecoder | None = None

    def takes(self, batch: RecordBatch) -> bool:
        """Tell whether the batch holds an offset that is asked for."""
        return batch.last_offset >= self.start_offset and batch.base_offset < self.end_offset


def dump_log(file: File, name: str, selection: LogSelection) -> Iterator[Finding]:
    """Yield every batch that `selection` takes; at bytes that are none, say so and end."""
    size_bytes = file.size()
    position = 0
    try:
        for found in walk_batches(file, 0, size_bytes, is_whole=True):
            position = found.end_position
            if selection.takes(found.batch):
                yield from _batch_findings(found, file.path, selection)
    except CorruptEntryError as error:
        yield Fact("end", {"invalidBytes": size_bytes - position, "name": name})
        yield Problem(file.path, error.position, error.reason)


def _batch_findings(found: FoundBatch, path: str, selection: LogSelection) -> Iterator[Finding]:
    batch = found.batch
    crc = batch.computed_crc()
    yield Fact("batch", batch_fields(found, is_valid=crc == batch.crc))
    if crc != batch.crc:
        reason = f"CRC is {crc:#010x}, header says {batch.crc:#010x}"
        yield Problem(path, found.position, reason)
    if not selection.has_records:
        return
    try:
        for record in decode_records(batch.data):
            if selection.start_offset <= record.offset < selection.end_offset:
                yield Fact("record", record_fields(batch, record, selection))
    except MissingKeyError as error:
        yield Problem(path, found.position, str(error))
    except CorruptRecordError as error:
        yield Problem(path, found.position, f"the records cannot be read: {error}")


def timestamp_type(batch: RecordBatch) -> str:
    """Return Kafka's word for whose clock a batch's timestamps are of."""
    if batch.magic == 0:
        return "NoTimestampType"
    return "LogAppendTime" if batch.is_log_append_time else "CreateTime"


def codec_name(batch: RecordBatch) -> str:
    """Return Kafka's word for the codec of a batch."""
    try:
        return Codec(batch.codec).name.lower()
    except ValueError:
        return f"unknown({batch.codec})"


def batch_fields(found: FoundBatch, *, is_valid: bool) -> dict[str, Value]:
    """Return the fields of a batch's line."""
    batch = found.batch
    if batch.magic < MAGIC:
        return {
            "offset": batch.last_offset,
            "position": found.position,
            "timestamp": Timestamp(batch.max_timestamp_ms, timestamp_type(batch)),
            "size": batch.size_bytes,
            "magic": batch.magic,
            "compresscodec": codec_name(batch),
            "crc": batch.crc,
            "isvalid": is_valid,
        }
    return {
        "baseOffset": batch.base_offset,
        "lastOffset": batch.last_offset,
        "count": batch.record_count,
        "baseSequence": batch.base_sequence,
        "lastSequence": batch.last_sequence,
        "producerId": batch.producer_id,
        "producerEpoch": batch.producer_epoch,
        "partitionLeaderEpoch": batch.leader_epoch,
        "isTransactional": batch.is_transactional,
        "isControl": batch.is_control,
        "deleteHorizonMs": MaybeOffset(batch.delete_horizon_ms),
        "position": found.position,
        "timestamp": Timestamp(batch.max_timestamp_ms, timestamp_type(batch)),
        "size": batch.size_bytes,
        "magic": batch.magic,
        "compresscodec": codec_name(batch),
        "crc": batch.crc,
        "isvalid": is_valid,
    }


def record_fields(batch: RecordBatch, record: Record, selection: LogSelection) -> dict[str, Value]:
    """Return the fields of a record's line; a control record has no key and value to print."""
    key, value = record.key, record.value
    fields: dict[str, Value] = {
        "offset": record.offset,
        "timestamp": Timestamp(record.timestamp_ms, timestamp_type(batch)),
        "keySize": -1 if key is None else len(key),
        "valueSize": -1 if value is None else len(value),
    }
    if batch.magic >= MAGIC:
        fields.update(sequence=record.sequence, headerKeys=Names(record.headers))
    if batch.is_control:
        fields.update(control_fields(record))
    elif selection.decoder is not None:
        key_text, payload_text = selection.decoder(record)
        fields.update(key=Decoded(key_text), payload=Decoded(payload_text))
    elif selection.has_payload:
        fields.update(key=Payload(key), payload=Payload(value))
    return fields


def control_fields(record: Record) -> dict[str, Value]:
    """Return what a control record says."""
    kind = control_type(record)
    marker = decode_marker(record)
    if marker is not None:
        return {"endTxnMarker": kind.name, "coordinatorEpoch": marker.coordinator_epoch}
    number = int.from_bytes((record.key or b"")[2:4], "big", signed=True)
    return {"controlType": f"{kind.name}({number})"}
