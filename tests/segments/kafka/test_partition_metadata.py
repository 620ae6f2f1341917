"""partition.metadata."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logstore.errors import CorruptFileError
from logstore.host import read_file, write_file
from logstore.os_host import SystemFileSystem
from logstore.segments.kafka.partition_metadata import FILE_NAME, PartitionMetadata

FS = SystemFileSystem()
TOPIC_ID = bytes.fromhex("0123456789abcdef0fedcba987654321")
GOLDEN = b"version: 0\ntopic_id: ASNFZ4mrze8P7cuph2VDIQ"


def read(directory: Path, content: bytes) -> PartitionMetadata | None:
    """Return what a file of that content says."""
    write_file(FS, str(directory / FILE_NAME), content, sync=False)
    return PartitionMetadata.read(FS, str(directory))


def test_golden_bytes(tmp_path: Path) -> None:
    """The id has the bytes that Kafka writes, and reads back."""
    assert PartitionMetadata.read(FS, str(tmp_path)) is None
    PartitionMetadata(TOPIC_ID).write(FS, str(tmp_path))
    assert read_file(FS, str(tmp_path / FILE_NAME)) == GOLDEN
    assert PartitionMetadata.read(FS, str(tmp_path)) == PartitionMetadata(TOPIC_ID)


def test_golden_files_are_rewritten_identically(golden: Path, tmp_path: Path) -> None:
    """Every file of a real broker comes out as it went in."""
    files = sorted(golden.glob(f"*/data/*/{FILE_NAME}"))
    for file in files:
        found = PartitionMetadata.read(FS, str(file.parent))
        assert found is not None
        found.write(FS, str(tmp_path), sync=False)
        assert read_file(FS, str(tmp_path / FILE_NAME)) == file.read_bytes()
    assert len(files) > 20


def test_what_is_read_too(tmp_path: Path) -> None:
    """Later versions, other white space and a last newline are fine."""
    found = read(tmp_path, b"version: 3\r\ntopic_id: \t ASNFZ4mrze8P7cuph2VDIQ\n")
    assert found == PartitionMetadata(TOPIC_ID, 3)


@pytest.mark.parametrize("content", [b"", bytes(43)])
def test_what_was_never_written_is_missing(tmp_path: Path, content: bytes) -> None:
    """A power loss leaves such files of those that were not synced."""
    assert read(tmp_path, content) is None


@pytest.mark.parametrize(
    "content",
    [
        b"\n",
        b"version: 0",
        b"version: -1\ntopic_id: ASNFZ4mrze8P7cuph2VDIQ",
        b"version:0\ntopic_id: ASNFZ4mrze8P7cuph2VDIQ",
        b"topic_id: ASNFZ4mrze8P7cuph2VDIQ\nversion: 0",
        b"version: 0\ntopic_id: ASNFZ4mrze8P7cuph2VDI",
        b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA",
        b"version: 0\ntopic_id: \xff",
    ],
)
def test_what_is_corrupt(tmp_path: Path, content: bytes) -> None:
    """Missing or swapped lines, bad numbers and ids, and the zero id are refused."""
    with pytest.raises(CorruptFileError, match=FILE_NAME):
        read(tmp_path, content)


@given(cut=st.integers(0, len(GOLDEN)), tail=st.binary(max_size=10))
def test_fuzz(tmp_path_factory: pytest.TempPathFactory, cut: int, tail: bytes) -> None:
    """Any file gives an id or CorruptFileError."""
    with contextlib.suppress(CorruptFileError):
        read(tmp_path_factory.getbasetemp(), GOLDEN[:cut] + tail)
