"""``logstore dump --format kafka`` of batches whose records are damaged: what the tool says."""

from __future__ import annotations

from pathlib import Path

import pytest

from logstore.segments.kafka.compression import Codec
from logstore.segments.kafka.control_record import ControlType, encode_control
from logstore.segments.kafka.record import Record, encode_batch
from logstore.segments.kafka.record_batch import HEADER_BYTES
from tests.tools.command_line import CommandLine, Outcome

RECORDS = [Record(0, 1000, b"key", b"value"), Record(1, 1001, b"k", b"v" * 20, (("h", b"1"),))]
FIRST = "| offset: 0 CreateTime: 1000 keySize: 3 valueSize: 5 sequence: -1 headerKeys: []"
INVALID = "org.apache.kafka.common.InvalidRecordException: "
SIZE = "Invalid record size: "
ONLY_45 = "but instead the buffer has only 45 remaining bytes."
READ_31 = "but instead read 31"
TOO_MANY = "is larger than the remaining size of the buffer"
KAFKA = "org.apache.kafka.common.KafkaException: "
RUNTIME = f"{KAFKA}java.lang.RuntimeException: "
TOO_LARGE = "[FAILED_TO_UNCOMPRESS] Received chunkSize"
THAN_MAX = "is greater than max configured chunk size"
COLLECTION = "Tried to allocate a collection of size"
NULL_ENTRIES = "non-nullable field producerEntries was serialized as null"
SNAPPY = "org.xerial.snappy.SnappyError: "
#: where the second record starts, behind the header
SECOND = 15


def dumped(
    logstore: CommandLine, folder: Path, at: int, data: bytes, codec: Codec = Codec.NONE
) -> Outcome:
    """Dump a batch with some of its bytes replaced, counted from behind its header."""
    batch = encode_batch(RECORDS, codec=codec)
    place = HEADER_BYTES + at if at >= 0 else len(batch) + at
    batch[place : place + len(data)] = data
    log = folder / f"{0:020d}.log"
    log.write_bytes(batch)
    return logstore("dump", "--format", "kafka", "--deep-iteration", log)


@pytest.mark.parametrize(
    ("at", "data", "shown", "said"),
    [
        (0, b"\x1a", 0, f"{SIZE}expected to read 13 bytes in record payload, but instead read 14"),
        (0, b"\xfe\x7f", 0, f"{SIZE}expected 8191 bytes in record payload, {ONLY_45}"),
        (SECOND, b"\x3c", 1, f"{SIZE}expected to read 30 bytes in record payload, {READ_31}"),
        (SECOND + 4, b"\x7e", 1, "Found invalid record structure"),
        (SECOND + 27, b"\x01", 1, "Found invalid number of record headers -1"),
        (SECOND + 27, b"\x7e", 1, f"Found invalid number of record headers. 63 {TOO_MANY}"),
        (SECOND + 28, b"\x01", 1, "Invalid negative header key size -1"),
        (-47 - 4, b"\0\0\0\x01", 0,
         "Incorrect declared batch size, records still remaining in file"),
        (-47 - 4, b"\0\0\0\x03", 2, "Incorrect declared batch size, premature EOF reached"),
        (-47 - 4, b"\xff\xff\xff\xfe", 0, "Found invalid record count -2 in magic v2 batch"),
    ],
)  # fmt: skip
def test_records_before_the_damage_are_shown(
    at: int, data: bytes, shown: int, said: str, tmp_path: Path, logstore: CommandLine
) -> None:
    """Of a batch without a codec; then the exception, in the tool's words."""
    outcome = dumped(logstore, tmp_path, at, data)
    assert outcome.err == f'Exception in thread "main" {INVALID}{said}\n'
    assert outcome.exit_code == 1
    lines = [line for line in outcome.lines if line.startswith("| ")]
    assert len(lines) == shown
    assert lines[:1] == [FIRST][:shown]


@pytest.mark.parametrize(
    ("codec", "at", "data", "said"),
    [
        (Codec.GZIP, 0, b"\0", f"{KAFKA}java.util.zip.ZipException: Not in GZIP format"),
        (Codec.GZIP, -8, b"\0\0\0\0",
         f"{KAFKA}Error checking for remaining bytes after reading batch"),
        (Codec.SNAPPY, 0, b"\0", f"{KAFKA}java.io.IOException: FAILED_TO_UNCOMPRESS(5)"),
        (Codec.SNAPPY, 20, b"\xff\xff", f"{KAFKA}Failed to decompress record stream"),
        (Codec.LZ4, 0, b"\0",
         f"{KAFKA}java.io.IOException: Stream unsupported (invalid magic bytes)"),
        (Codec.ZSTD, 0, b"\0", f"{KAFKA}Failed to decompress record stream"),
        (Codec.ZSTD, 0, b"", ""),
        (Codec.GZIP, 2, b"\x07",
         f"{KAFKA}java.util.zip.ZipException: Unsupported compression method"),
        (Codec.GZIP, 3, b"\x02", f"{KAFKA}java.util.zip.ZipException: Corrupt GZIP header"),
        (Codec.GZIP, 3, b"\x04", f"{KAFKA}java.io.EOFException"),
        (Codec.LZ4, 4, b"\x61", f"{RUNTIME}Reserved bits must be 0"),
        (Codec.LZ4, 4, b"\x40", f"{RUNTIME}Dependent block stream is unsupported"),
        (Codec.LZ4, 4, b"\xe0", f"{RUNTIME}Version 3 is unsupported"),
        (Codec.LZ4, 5, b"\x41", f"{RUNTIME}Reserved2 field must be 0"),
        (Codec.LZ4, 5, b"\x30", f"{RUNTIME}Block size value must be between 4 and 7"),
        (Codec.LZ4, 5, b"\xc0", f"{RUNTIME}Reserved3 field must be 0"),
        (Codec.LZ4, 6, b"\0", f"{KAFKA}java.io.IOException: Stream frame descriptor corrupted"),
        (Codec.LZ4, 7, b"\xff\xff\x7f\0", f"{KAFKA}Failed to decompress record stream"),
        (Codec.SNAPPY, 0, b"\xff\xff\xff\xff\x0f",
         f"{KAFKA}java.lang.NegativeArraySizeException: -1"),
        (Codec.SNAPPY, 0, b"\xff\xff\xff\xff\x7f",
         f"{KAFKA}java.io.IOException: PARSING_ERROR(2)"),
        (Codec.SNAPPY, 0, b"\xff\xff\xff\xff\x07",
         f"{KAFKA}java.lang.OutOfMemoryError: Requested array size exceeds VM limit"),
        (Codec.SNAPPY, 0, b"\xff\xff\xff\xff\x06",
         f"{KAFKA}java.lang.OutOfMemoryError: Java heap space"),
        (Codec.SNAPPY, 16, b"\x80\0\0\0",
         f"{SNAPPY}[INVALID_CHUNK_SIZE] chunkSize is too big or negative : -2147483648"),
        (Codec.SNAPPY, 16, b"\x7f\0\0\0",
         f"{SNAPPY}{TOO_LARGE} 2,130,706,432 {THAN_MAX} 536,870,912"),
        (Codec.SNAPPY, 16, b"\x10\0\0\0", f"{SNAPPY}[INVALID_CHUNK_SIZE] Java heap space"),
    ],
)  # fmt: skip
def test_a_compressed_batch_is_shown_whole_or_not_at_all(
    codec: Codec, at: int, data: bytes, said: str, tmp_path: Path, logstore: CommandLine
) -> None:
    """The tool unpacks all of it before it prints the first record."""
    outcome = dumped(logstore, tmp_path, at, data, codec)
    assert outcome.err == (f'Exception in thread "main" {said}\n' if said else "")
    shown = [line for line in outcome.lines if line.startswith("| ")]
    assert len(shown) == (0 if said else 2)


def test_offsets_and_sequences_below_zero_are_shown(tmp_path: Path, logstore: CommandLine) -> None:
    """A damaged header says them, and the tool prints what it says."""
    batch = encode_batch(RECORDS)
    batch[0:8] = (-5).to_bytes(8, "big", signed=True)
    batch[53:57] = (-9).to_bytes(4, "big", signed=True)
    log = tmp_path / f"{0:020d}.log"
    log.write_bytes(batch)
    outcome = logstore("dump", "--format", "kafka", "--deep-iteration", log)
    assert outcome.exit_code == 0
    assert "baseOffset: -5 lastOffset: -4 count: 2 baseSequence: -9 lastSequence: -8" in outcome.out
    assert "| offset: -5 " in outcome.out


@pytest.mark.parametrize(
    ("at", "byte", "last", "said"),
    [
        (16, 0xFF, "offset: 0", "Invalid magic used in LegacyRecord: -1"),
        (22, 0x07, "deleteHorizonMs: OptionalLong.empty", "Unknown compression type id: 7"),
    ],
)
def test_the_tool_ends_in_the_middle_of_a_line(
    at: int, byte: int, last: str, said: str, tmp_path: Path, logstore: CommandLine
) -> None:
    """Where a header's magic or codec is none; what it has printed of the batch is shown."""
    batch = encode_batch(RECORDS)
    batch[at] = byte
    log = tmp_path / f"{0:020d}.log"
    log.write_bytes(batch)
    outcome = logstore("dump", "--format", "kafka", log)
    assert outcome.exit_code == 1
    assert outcome.lines[-1].endswith(last)
    assert outcome.err == (
        f'Exception in thread "main" java.lang.IllegalArgumentException: {said}\n'
    )


def test_a_control_record_needs_a_key(tmp_path: Path, logstore: CommandLine) -> None:
    """A flipped bit makes one of any batch: the record is shown, and then the exception."""
    log = tmp_path / f"{0:020d}.log"
    log.write_bytes(encode_batch(RECORDS, is_control=True))
    outcome = logstore("dump", "--format", "kafka", "--deep-iteration", log)
    assert outcome.lines[-1] == FIRST
    assert outcome.err == (
        f'Exception in thread "main" {INVALID}Invalid value size found for control record key. '
        "Must have at least 4 bytes, but found only 3\n"
    )


@pytest.mark.parametrize(
    ("codec", "more", "said"),
    [
        (Codec.GZIP, b"more", ""),
        (Codec.GZIP, b"x" * 30, ""),
        (Codec.LZ4, b"more", ""),
        (Codec.SNAPPY, b"abc", ""),
        (Codec.SNAPPY, b"\0\0\0\x09", f"{KAFKA}Failed to decompress record stream"),
        (Codec.ZSTD, b"\x5f", ""),
        (Codec.ZSTD, b"more", f"{KAFKA}Error checking for remaining bytes after reading batch"),
    ],
)
def test_what_follows_a_stream(
    codec: Codec, more: bytes, said: str, tmp_path: Path, logstore: CommandLine
) -> None:
    """Java reads no further than it must: most of what follows the records' stream is not seen."""
    batch = encode_batch(RECORDS, codec=codec) + more
    batch[8:12] = (len(batch) - 12).to_bytes(4, "big")
    log = tmp_path / f"{0:020d}.log"
    log.write_bytes(batch)
    outcome = logstore("dump", "--format", "kafka", "--deep-iteration", log)
    assert outcome.err == (f'Exception in thread "main" {said}\n' if said else "")
    assert outcome.out.count("| offset") == (0 if said else 2)


@pytest.mark.parametrize(
    ("count", "said"),
    [
        (2**31 - 1, "Requested array size exceeds VM limit"),
        (2**28, "Java heap space"),
    ],
)
def test_a_list_for_so_many_records_has_no_room(
    count: int, said: str, tmp_path: Path, logstore: CommandLine
) -> None:
    """The tool makes one as long as a compressed batch's header says."""
    where, data = -4, count.to_bytes(4, "big")
    batch = encode_batch(RECORDS, codec=Codec.LZ4)
    batch[HEADER_BYTES + where : HEADER_BYTES] = data
    log = tmp_path / f"{0:020d}.log"
    log.write_bytes(batch)
    outcome = logstore("dump", "--format", "kafka", "--deep-iteration", log)
    assert outcome.err == f'Exception in thread "main" java.lang.OutOfMemoryError: {said}\n'


def test_a_batch_smaller_than_its_header(tmp_path: Path, logstore: CommandLine) -> None:
    """What follows serves as its header, but not where its records are read; the end does not."""
    small, whole = encode_batch(RECORDS)[:50], encode_batch(RECORDS)
    small[8:12] = (len(small) - 12).to_bytes(4, "big")
    log = tmp_path / f"{0:020d}.log"
    log.write_bytes(small + whole)
    outcome = logstore("dump", "--format", "kafka", log)
    assert outcome.exit_code == 0
    assert len(outcome.lines) == 4
    outcome = logstore("dump", "--format", "kafka", "--deep-iteration", log)
    assert outcome.err == 'Exception in thread "main" java.lang.IndexOutOfBoundsException\n'
    log.write_bytes(small)
    outcome = logstore("dump", "--format", "kafka", log)
    assert outcome.err == (
        f'Exception in thread "main" {KAFKA}Failed to load record batch at position 0 from '
        f"FileRecords(size=50, file={log}, start=0, end=50)\n"
    )


@pytest.mark.parametrize(
    ("at", "said"),
    [
        (5, "Invalid version found for control record: -32768."),
        (10, "Invalid version found for end transaction marker: -32768."),
    ],
)
def test_a_marker_of_no_version(at: int, said: str, tmp_path: Path, logstore: CommandLine) -> None:
    """The tool ends behind the record's own fields."""
    batch = encode_control(
        ControlType.COMMIT, timestamp_ms=5, producer_id=1, producer_epoch=0, coordinator_epoch=0
    )
    batch[HEADER_BYTES + at : HEADER_BYTES + at + 2] = b"\x80\0"
    log = tmp_path / f"{0:020d}.log"
    log.write_bytes(batch)
    outcome = logstore("dump", "--format", "kafka", "--deep-iteration", log)
    said = f"{said} May indicate data corruption"
    assert outcome.err == f'Exception in thread "main" {INVALID}{said}\n'
    assert outcome.lines[-1].startswith("| offset: 0 CreateTime: 5 keySize: 4 valueSize: 6")


def test_numbers_wrap_as_javas_do(tmp_path: Path, logstore: CommandLine) -> None:
    """Offsets behind the largest, and a last sequence of a delta below 0."""
    batch = encode_batch(RECORDS)
    batch[0:8] = (2**63 - 1).to_bytes(8, "big")
    log = tmp_path / f"{0:020d}.log"
    log.write_bytes(batch)
    outcome = logstore("dump", "--format", "kafka", "--deep-iteration", log)
    assert f"baseOffset: {2**63 - 1} lastOffset: {-(2**63)} " in outcome.out
    assert f"| offset: {-(2**63)} " in outcome.out
    assert outcome.err.endswith(f"  -1 is followed by {2**63 - 1}\n")
    batch = encode_batch(RECORDS, producer_id=1, producer_epoch=0, base_sequence=47)
    batch[23:27] = (-2).to_bytes(4, "big", signed=True)
    log.write_bytes(batch)
    outcome = logstore("dump", "--format", "kafka", log)
    assert "baseSequence: 47 lastSequence: -2147483603 " in outcome.out


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"\0\1\0\0\0\0\0", "null"),
        (b"\0\1\0\0\0\0\0\0\0\1" + bytes(45), "null"),
        (b"\0\1\0\0\0\0\0\0\0\x09", f"{COLLECTION} 9, but there are only 0 bytes remaining."),
        (b"\0\1\0\0\0\0\xff\xff\xff\xff", NULL_ENTRIES),
    ],
)
def test_a_snapshots_entries_are_read_before_its_crc_is(
    data: bytes, said: str, tmp_path: Path, logstore: CommandLine
) -> None:
    """Where they are not all there the tool says so in the words of its codec."""
    snapshot = tmp_path / f"{0:020d}.snapshot"
    snapshot.write_bytes(data)
    outcome = logstore("dump", "--format", "kafka", snapshot)
    assert outcome.err == f"Snapshot failed schema validation: {said}\n"


def test_an_index_leads_to_a_log_by_its_absolute_path(
    tmp_path: Path, logstore: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the tool opens it, and not as it was named."""
    (tmp_path / f"{0:020d}.index").write_bytes(bytes.fromhex("0000000100000000"))
    (tmp_path / f"{0:020d}.log").write_bytes(bytes(70))
    monkeypatch.chdir(tmp_path)
    outcome = logstore("dump", "--format", "kafka", f"{0:020d}.index")
    assert outcome.err.endswith(f" in file {tmp_path}/{0:020d}.log.\n")


def test_a_control_record_that_cannot_be_read(tmp_path: Path, logstore: CommandLine) -> None:
    """What stands before its message is shown; a buffer that is at its end has no words."""
    leader_change = Record(0, 1, b"\0\0\0\2", b"\0\0\0\0")
    log = tmp_path / f"{0:020d}.log"
    log.write_bytes(encode_batch([leader_change], is_control=True))
    outcome = logstore("dump", "--format", "kafka", "--deep-iteration", log)
    assert outcome.err == 'Exception in thread "main" java.nio.BufferUnderflowException\n'
    assert outcome.lines[-1].startswith("| offset: 0 CreateTime: 1 keySize: 4 valueSize: 4")
