"""Transaction markers and other control records."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logstore.segments.kafka.control_record import (
    ControlType,
    EndTransactionMarker,
    control_type,
    decode_marker,
    encode_control,
)
from logstore.segments.kafka.record import CorruptRecordError, Record, decode_records

GOLDEN = {
    ControlType.COMMIT: "000000000000002a000000420000000702f26e31a90030000000000000018bcfe56800000"
    "0018bcfe5680000000000000000090003ffffffff000000012000000008000000010c00000000000b00",
    ControlType.ABORT: "000000000000002a0000004200000007020650e7e10030000000000000018bcfe568000000"
    "018bcfe5680000000000000000090003ffffffff000000012000000008000000000c00000000000b00",
}


@pytest.mark.parametrize("kind", GOLDEN)
def test_golden_markers(kind: ControlType) -> None:
    """Markers have the bytes that a broker gives them, and read back."""
    batch = encode_control(
        kind,
        base_offset=42,
        timestamp_ms=1700000000000,
        leader_epoch=7,
        producer_id=9,
        producer_epoch=3,
        coordinator_epoch=11,
    )
    assert batch.hex() == GOLDEN[kind]
    (record,) = decode_records(batch)
    assert record.offset == 42
    assert decode_marker(record) == EndTransactionMarker(kind, 11)
    assert EndTransactionMarker(kind, 11).is_abort == (kind is ControlType.ABORT)


def test_newer_versions_are_read_as_version_0() -> None:
    """A longer value of a later version gives its epoch; an unknown type is no marker."""
    record = Record(0, 0, bytes.fromhex("00000001"), bytes.fromhex("00030000000bffff"))
    assert decode_marker(record) == EndTransactionMarker(ControlType.COMMIT, 11)
    assert control_type(Record(0, 0, bytes.fromhex("00000063"))) is ControlType.UNKNOWN
    assert decode_marker(Record(0, 0, bytes.fromhex("00000002"), b"")) is None


@pytest.mark.parametrize("key", [None, b"", b"\0\0\0", b"\xff\xff\0\0"])
def test_bad_keys(key: bytes | None) -> None:
    """A key that is null, cut or of a negative version is refused."""
    with pytest.raises(CorruptRecordError):
        control_type(Record(0, 0, key, b"\0\0\0\0\0\0"))


@pytest.mark.parametrize("value", [None, b"", b"\0\0\0\0\0", b"\xff\xff\0\0\0\0"])
def test_bad_values(value: bytes | None) -> None:
    """A marker's value that is null, cut or of a negative version is refused."""
    with pytest.raises(CorruptRecordError):
        decode_marker(Record(0, 0, b"\0\0\0\1", value))


@given(key=st.none() | st.binary(max_size=8), value=st.none() | st.binary(max_size=8))
def test_fuzz(key: bytes | None, value: bytes | None) -> None:
    """Any key and value give a marker, none, or CorruptRecordError."""
    record = Record(0, 0, key, value)
    with contextlib.suppress(CorruptRecordError):
        decode_marker(record)
