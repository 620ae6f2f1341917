"""Batches decoded to columns, held against the decoder of single records."""

from __future__ import annotations

import mmap
import struct
from collections import deque
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from logstore.checksum import crc32c
from logstore.errors import CorruptEntryError
from logstore.os_host import system_host
from logstore.segments.compiled import loops
from logstore.segments.kafka.columns import (
    RecordColumns,
    Selection,
    decode_columns,
    iterate_columns,
    to_arrow,
)
from logstore.segments.kafka.compression import Codec
from logstore.segments.kafka.record import Record, TimestampType, decode_records, encode_batch
from logstore.segments.kafka.record_batch import HEADER_BYTES, iterate_batches
from tests.segments.kafka.columns.batches import NOW_MS, Run, runs

GOLDEN = Path(__file__).resolve().parents[3] / "golden"
#: what a crash left is not to be read, and older formats have tests of their own
LOGS = [
    path
    for path in sorted(GOLDEN.glob("*/data/*/*.log"))
    if path.stat().st_size and not path.parts[-4].startswith(("legacy", "crash"))
]

fixture_is_fine = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(params=["compiled", "plain"], autouse=True)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways to decode: numba's loops, and without numba."""
    if request.param == "plain":
        monkeypatch.setattr(loops, "is_available", lambda: False)
    else:
        assert loops.is_available(), "numba is missing: install the extra `columns`"
    found: str = request.param
    return found


def with_crc(batch: bytearray) -> bytes:
    """Return the batch with a CRC that fits what is in it now."""
    struct.pack_into(">I", batch, 17, crc32c(memoryview(batch)[21:]))
    return bytes(batch)


# what comes out


@fixture_is_fine
@given(run=runs())
def test_columns_hold_what_the_record_decoder_reads(run: Run) -> None:
    """Nulls, headers, codecs, holes, markers and both timestamp types come out the same."""
    columns = decode_columns(run.data)
    assert columns.records() == run.records
    assert columns.next_position == len(run.data)


@fixture_is_fine
@given(run=runs())
def test_every_row_leads_to_its_batch(run: Run) -> None:
    """What the header of a record's batch says is found through the row of the batch."""
    columns = decode_columns(run.data)
    batches = columns.batches
    expected = [
        (batch.leader_epoch, batch.producer_id, batch.producer_epoch, batch.is_control,
         batch.is_transactional, batch.is_log_append_time, batch.codec, batch.last_offset_delta,
         batch.max_timestamp_ms, batch.base_sequence, batch.size_bytes)
        for batch in run.batches
        for _ in range(batch.record_count)
    ]  # fmt: skip
    found = zip(
        *(
            values[columns.batch].tolist()
            for values in (
                batches.leader_epoch, batches.producer_id, batches.producer_epoch,
                batches.is_control, batches.is_transactional, batches.is_log_append_time,
                batches.codec, batches.last_offset_delta, batches.max_timestamp_ms,
                batches.base_sequence, batches.size_bytes,
            )
        ),
        strict=True,
    )  # fmt: skip
    assert list(found) == expected
    starts = np.cumsum([0, *(batch.size_bytes for batch in run.batches)])[:-1]
    assert batches.position.tolist() == starts.tolist()


@pytest.mark.parametrize("log", LOGS, ids=lambda path: f"{path.parts[-4]}/{path.parent.name}")
def test_every_golden_log_reads_equal(log: Path) -> None:
    """Every batch that a real broker stored comes out as the record decoder reads it."""
    data = log.read_bytes()
    expected = [
        record
        for batch in iterate_batches(memoryview(data))
        for record in decode_records(batch.data)
    ]
    assert decode_columns(data, str(log)).records() == expected


def test_nulls_and_empty_strings_are_told_apart() -> None:
    """A null key takes no bytes and is marked; an empty one takes none and is not."""
    records = [Record(0, 1, None, b""), Record(1, 2, b"", None), Record(2, 3, b"ab", b"c")]
    columns = decode_columns(bytes(encode_batch(records)))
    assert columns.key is not None
    assert columns.value is not None
    assert columns.key.is_null.tolist() == [True, False, False]
    assert columns.value.is_null.tolist() == [False, True, False]
    assert columns.key.bounds.tolist() == [0, 0, 0, 2]
    assert columns.key.data.tobytes() == b"ab"
    assert (columns.key.null_count, columns.value.null_count) == (1, 1)
    assert [columns.key[row] for row in range(3)] == [None, b"", b"ab"]


def test_no_batch_is_no_rows() -> None:
    """Nothing decodes to columns of no rows."""
    columns = decode_columns(b"")
    assert len(columns) == 0
    assert columns.records() == []
    assert len(columns.batches) == 0


def test_mapped_memory_is_decoded_in_place(tmp_path: Path) -> None:
    """A mapped file can be decoded, and unmapped afterwards: the columns are copies."""
    records = [Record(offset, NOW_MS, b"k", b"v" * 100) for offset in range(50)]
    path = tmp_path / "mapped.log"
    path.write_bytes(encode_batch(records))
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        columns = decode_columns(mapped)
    assert columns.records() == records


# what was asked for


@fixture_is_fine
@given(run=runs(), data=st.data())
def test_a_span_of_offsets_is_cut_out(run: Run, data: st.DataObject) -> None:
    """Rows outside of the wanted offsets are left out, also within a batch."""
    offsets = [batch.base_offset for batch in run.batches] + [0]
    near = st.integers(min(offsets) - 2, max(offsets) + 12)
    start, end = sorted((data.draw(near), data.draw(near)))
    columns = decode_columns(run.data, selection=Selection(start_offset=start, end_offset=end))
    assert columns.records() == [r for r in run.records if start <= r.offset < end]


@fixture_is_fine
@given(run=runs())
def test_markers_can_be_left_out(run: Run) -> None:
    """Without control batches only data are left."""
    columns = decode_columns(run.data, selection=Selection(has_control=False))
    expected = [
        record
        for batch in run.batches
        if not batch.is_control
        for record in decode_records(batch.data)
    ]
    assert columns.records() == expected


def test_columns_that_nobody_wants_are_not_made() -> None:
    """Keys, values and headers are each left out on request; numbers are always there."""
    batch = bytes(encode_batch([Record(5, NOW_MS, b"k", b"v", (("h", b"x"),))], base_offset=5))
    wanted = Selection(has_keys=False, has_values=False, has_headers=False)
    columns = decode_columns(batch, selection=wanted)
    assert (columns.key, columns.value, columns.headers) == (None, None, None)
    assert columns.records() == [Record(5, NOW_MS)]


@fixture_is_fine
@given(run=runs(), step_bytes=st.integers(1, 2000))
def test_steps_through_a_file_add_up(
    run: Run, step_bytes: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Steps of any size yield the same rows, and say where each ends; none is empty of batches."""
    path = tmp_path_factory.mktemp("steps") / "00000000000000000000.log"
    path.write_bytes(run.data)
    file = system_host().fs.open(str(path), writable=False)
    steps = list(iterate_columns(file, str(path), step_bytes=step_bytes))
    assert [record for step in steps for record in step.records()] == run.records
    starts = [position for step in steps for position in step.batches.position.tolist()]
    sizes = [batch.size_bytes for batch in run.batches]
    assert starts == np.cumsum([0, *sizes])[:-1].tolist()
    assert [step.next_position for step in steps][-1:] == ([len(run.data)] if sizes else [])
    if len(run.batches) > 2:
        second, third = starts[1], starts[2]
        (middle,) = iterate_columns(file, str(path), second, third)
        assert middle.records() == decode_records(run.batches[1].data)


def test_a_step_holds_little_however_far_it_decompresses(tmp_path: Path) -> None:
    """Batches that grow a thousandfold are decoded one a step, not all at once."""
    batch = bytes(encode_batch([Record(0, 1, None, bytes(1 << 20))], codec=Codec.ZSTD))
    path = tmp_path / "bomb.log"
    path.write_bytes(batch * 8)
    file = system_host().fs.open(str(path), writable=False)
    steps = list(iterate_columns(file, str(path), step_bytes=1 << 20))
    assert [len(step) for step in steps] == [1] * 8


@pytest.mark.parametrize("kept", [0, 1, 7], ids=["none", "the last", "many"])
def test_steps_that_are_kept_stay_as_they_are(tmp_path: Path, kept: int) -> None:
    """Whoever keeps steps, or a column of one in Arrow, sees nothing of later ones in them."""
    values = [bytes([number]) * 100_000 for number in range(24)]
    batches = [
        bytes(encode_batch([Record(number, number, b"key", value)], base_offset=number))
        for number, value in enumerate(values)
    ]
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(b"".join(batches))
    file = system_host().fs.open(str(path), writable=False)
    held: deque[tuple[RecordColumns, Any]] = deque(maxlen=kept)
    for step in iterate_columns(file, str(path), step_bytes=250_000):
        held.append((step, to_arrow(step, ["value"]).column(0)))
        for columns, array in held:
            expected: list[bytes] = [values[offset] for offset in columns.offset.tolist()]
            assert [record.value for record in columns.records()] == expected
            assert array.to_pylist() == expected


# damage


def refused(data: bytes, selection: Selection | None = None) -> CorruptEntryError:
    """Return the error that decoding these bytes ends with."""
    with pytest.raises(CorruptEntryError) as caught:
        decode_columns(data, "t-0/7.log", selection=selection or Selection())
    assert caught.value.path == "t-0/7.log"
    return caught.value


GOOD = bytes(encode_batch([Record(0, 1, b"k", b"v", (("h", b"x"),)), Record(1, 2, b"k", b"w")]))


def test_a_wrong_crc_is_told_with_its_position() -> None:
    """The second batch is named by the position at which it starts."""
    bad = bytearray(GOOD)
    bad[-3] ^= 1
    error = refused(GOOD + bytes(bad))
    assert error.position == len(GOOD)
    assert error.reason.startswith("CRC is ")


def test_a_batch_cut_short_is_told() -> None:
    """A tail is an error, less than a header as well as less than its length."""
    assert refused(GOOD + GOOD[:-1]).reason == (
        f"a batch of {len(GOOD)} bytes is cut short after {len(GOOD) - 1}"
    )
    assert refused(GOOD + GOOD[:60]).reason == "60 bytes are less than a batch header"
    assert refused(GOOD[:60]).position == 0


def test_another_magic_is_told() -> None:
    """Formats that do not exist yet are not taken for batches."""
    new = bytearray(GOOD)
    new[16] = 3
    assert refused(bytes(new)).reason == "magic 3, expected 2"


def test_a_length_below_a_header_is_told() -> None:
    """A batch length that cannot be ends the walk instead of sending it in circles."""
    bad = bytearray(GOOD)
    struct.pack_into(">i", bad, 8, -12)
    assert refused(bytes(bad)).reason == "batch length -12 is too small"


@pytest.mark.parametrize(
    ("at", "byte", "compiled", "plain"),
    [
        (0, 0x7E, "has a length that runs out of its batch", "a record of 63 bytes"),
        (0, 0x01, "has a length that runs out of its batch", "a record of -1 bytes"),
        (4, 0x40, "has a field that runs out of it", "a field of 32 bytes"),
        (8, 0x7E, "has more headers than bytes", "63 headers"),
        (9, 0x01, "has a header without a name", "header name is null"),
        (8, 0x00, "is longer than its fields", "takes"),
    ],
)
def test_a_bad_record_is_told_by_its_batch_and_number(
    at: int, byte: int, compiled: str, plain: str, way: str
) -> None:
    """Lengths and counts that contradict each other are errors although the CRC is right."""
    bad = bytearray(GOOD)
    bad[HEADER_BYTES + at] = byte
    error = refused(GOOD + with_crc(bad))
    assert error.position == len(GOOD)
    if way == "compiled":
        assert error.reason == f"record 0 {compiled}"
    else:
        assert plain in error.reason


def test_counts_that_lie_are_refused_before_memory_is_taken() -> None:
    """A header of two billion records in a hundred bytes is an error; so is a negative count."""
    for count in (2**31 - 1, 3, -1):
        bad = bytearray(GOOD)
        struct.pack_into(">i", bad, 57, count)
        assert refused(with_crc(bad)).position == 0
    fewer = bytearray(GOOD)
    struct.pack_into(">i", fewer, 57, 1)
    assert refused(with_crc(fewer)).position == 0


def test_damaged_compressed_records_are_told() -> None:
    """What cannot be decompressed is an error at its batch."""
    for codec in (Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD):
        bad = bytearray(encode_batch([Record(0, 1, b"k", b"v" * 99)], codec=codec))
        bad[HEADER_BYTES : HEADER_BYTES + 8] = bytes(8)
        error = refused(GOOD + with_crc(bad))
        assert error.position == len(GOOD)
        assert codec.name.lower() in error.reason


def test_batches_outside_of_the_span_are_not_looked_at() -> None:
    """A wrong CRC in a batch that is not wanted does no harm; without checks none does."""
    bad = bytearray(encode_batch([Record(2, 1, b"k", b"v")], base_offset=2))
    bad[-2] ^= 1
    data = GOOD + bytes(bad)
    assert len(decode_columns(data, selection=Selection(end_offset=2))) == 2
    assert len(decode_columns(data, selection=Selection(is_checked=False))) == 3
    refused(data, Selection(start_offset=1))


def test_numbers_wrap_as_in_java(way: str) -> None:
    """A sum past 2^63-1 wraps; it neither ends the process nor the decoding."""
    batch = bytearray(encode_batch([Record(0, 5, b"k"), Record(1, 6, b"k")]))
    struct.pack_into(">q", batch, 0, 2**63 - 1)
    struct.pack_into(">q", batch, 27, 2**63 - 1)
    columns = decode_columns(with_crc(batch))
    assert columns.offset.tolist() == [2**63 - 1, -(2**63)]
    assert columns.timestamp_ms.tolist() == [2**63 - 1, -(2**63)]


def test_log_append_time_is_that_of_the_batch() -> None:
    """All records of such a batch have its largest timestamp."""
    batch = encode_batch(
        [Record(0, 5), Record(1, 6)],
        timestamp_type=TimestampType.LOG_APPEND_TIME,
        max_timestamp_ms=NOW_MS,
    )
    columns = decode_columns(bytes(batch))
    assert columns.timestamp_ms.tolist() == [NOW_MS, NOW_MS]
