"""Producer snapshot files."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logstore.errors import CorruptFileError
from logstore.os_host import SystemFileSystem
from logstore.segments.kafka.producer_snapshot import (
    ProducerSnapshotEntry,
    decode_snapshot,
    encode_snapshot,
    list_snapshots,
    snapshot_name,
)

GOLDEN = bytes.fromhex(
    "0001 eccf6379 00000002"
    "0000000000000007 0000 00000009 0000000000000009 00000001 0000018bcfe56bb7"
    "ffffffff ffffffffffffffff"
    "0000000000000009 0001 00000000 000000000000000a 00000000 0000018bcfe56be8"
    "ffffffff 000000000000000a"
)
ENTRIES = [
    ProducerSnapshotEntry(7, 0, 9, 9, 1, 1700000000951, -1, -1),
    ProducerSnapshotEntry(9, 1, 0, 10, 0, 1700000001000, -1, 10),
]


def test_golden_bytes() -> None:
    """Two producers have the bytes that Kafka wrote for them."""
    assert encode_snapshot(ENTRIES) == GOLDEN
    assert decode_snapshot(GOLDEN) == ENTRIES


def test_golden_snapshots_are_rewritten_identically(golden: Path) -> None:
    """Every snapshot of a real broker comes out as it went in."""
    files = sorted(golden.glob("*/data/*/*.snapshot"))
    files = [file for file in files if not file.parent.name.startswith("__cluster_metadata")]
    for file in files:
        assert encode_snapshot(decode_snapshot(file.read_bytes())) == file.read_bytes()
    assert len(files) > 20


INTEGERS = {bits: st.integers(-(1 << bits - 1), (1 << bits - 1) - 1) for bits in (16, 32, 64)}


@given(
    st.lists(
        st.builds(
            ProducerSnapshotEntry,
            *(INTEGERS[bits] for bits in (64, 16, 32, 64, 32, 64, 32, 64)),
        ),
        max_size=5,
    )
)
def test_round_trip(entries: list[ProducerSnapshotEntry]) -> None:
    """Any entries read back."""
    assert decode_snapshot(encode_snapshot(entries)) == entries


@pytest.mark.parametrize("position", [0, 1, 2, 5, 9, 10, 101])
def test_a_flipped_bit_is_found(position: int) -> None:
    """A wrong bit anywhere in the file is found."""
    data = bytearray(GOLDEN)
    data[position] ^= 0x10
    with pytest.raises(CorruptFileError, match="the file"):
        decode_snapshot(bytes(data), "the file")


def test_cut_files_are_found() -> None:
    """A file of any smaller length is corrupt."""
    for size in range(len(GOLDEN)):
        with pytest.raises(CorruptFileError):
            decode_snapshot(GOLDEN[:size])


def test_names(tmp_path: Path) -> None:
    """Snapshots are listed by the offset in their name; other files are not snapshots."""
    names = [snapshot_name(11), snapshot_name(2), "x.snapshot", snapshot_name(5) + ".deleted"]
    for name in names:
        (tmp_path / name).touch()
    assert snapshot_name(11) == "00000000000000000011.snapshot"
    assert list_snapshots(SystemFileSystem(), str(tmp_path)) == [2, 11]


@given(st.binary(max_size=120))
def test_fuzz(data: bytes) -> None:
    """Any bytes give entries or CorruptFileError."""
    with contextlib.suppress(CorruptFileError):
        decode_snapshot(data)
