"""``logstore dump --format kafka`` of batches whose records are damaged: what the tool says."""

from __future__ import annotations

from pathlib import Path

import pytest

from logstore.segments.kafka.compression import Codec
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
