"""Checkpoint files."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logstore.errors import CorruptFileError
from logstore.host import read_file, write_file
from logstore.os_host import SystemFileSystem
from logstore.segments.kafka.checkpoints import (
    read_checkpoint,
    read_offset_checkpoint,
    write_checkpoint,
    write_offset_checkpoint,
)

FS = SystemFileSystem()


def test_golden_bytes(tmp_path: Path) -> None:
    """Offsets of two partitions have the bytes that Kafka writes."""
    path = str(tmp_path / "checkpoint")
    write_offset_checkpoint(FS, path, {("t", 0): 12, ("u", 1): 0})
    assert read_file(FS, path) == b"0\n2\nt 0 12\nu 1 0\n"
    assert read_offset_checkpoint(FS, path) == {("t", 0): 12, ("u", 1): 0}
    assert not FS.exists(path + ".tmp")


def test_missing_and_empty_files_are_empty_tables(tmp_path: Path) -> None:
    """No file, no bytes, only a version, or what a power loss leaves of one: no entries."""
    path = str(tmp_path / "checkpoint")
    assert read_offset_checkpoint(FS, path) == {}
    for content in (b"", b"0\n", b"0", b"0\n0\n", bytes(8)):
        write_file(FS, path, content, sync=False)
        assert read_offset_checkpoint(FS, path) == {}


def test_any_white_space_is_read(tmp_path: Path) -> None:
    """Fields may be apart by tabs and several spaces, lines by any newline of Java."""
    path = str(tmp_path / "checkpoint")
    write_file(FS, path, b"0\r\n2\rt \t0  12\nu 1 +5", sync=False)
    assert read_offset_checkpoint(FS, path) == {("t", 0): 12, ("u", 1): 5}


@pytest.mark.parametrize(
    "content",
    [
        b"1\n0\n",
        b"x\n0\n",
        b"0\n1\n",
        b"0\n1\nt 0 1\nu 0 1\n",
        b"0\n1\nt 0\n",
        b"0\n1\nt 0 1 2\n",
        b"0\n1\n t 0 1\n",
        b"0\n1\nt 0 1\n\n",
        b"0\n1\nt zero 1\n",
        b"0\n1\nt 0 1_0\n",
        b"0\n1\nt 2147483648 1\n",
        b"0\n1\nt 0 9223372036854775808\n",
        b"0\n1\nt 0 " + b"9" * 10000 + b"\n",
        b"0\n1\nt 0 \xd9\xa3\n",
        b"0\n1\n\xff 0 1\n",
    ],
)
def test_what_is_corrupt(tmp_path: Path, content: bytes) -> None:
    """Another version, wrong counts, malformed lines and numbers out of range are refused."""
    path = str(tmp_path / "checkpoint")
    write_file(FS, path, content, sync=False)
    with pytest.raises(CorruptFileError):
        read_offset_checkpoint(FS, path)


@given(
    offsets=st.dictionaries(
        st.tuples(st.from_regex(r"[a-zA-Z0-9._-]{1,20}", fullmatch=True), st.integers(0, 1000)),
        st.integers(0, 2**63 - 1),
        max_size=20,
    )
)
def test_round_trip(
    tmp_path_factory: pytest.TempPathFactory, offsets: dict[tuple[str, int], int]
) -> None:
    """What is written reads back, in the same order."""
    path = str(tmp_path_factory.getbasetemp() / "checkpoint")
    write_offset_checkpoint(FS, path, offsets, sync=False)
    assert list(read_offset_checkpoint(FS, path).items()) == list(offsets.items())


def test_golden_checkpoints_are_rewritten_identically(golden: Path, tmp_path: Path) -> None:
    """Every checkpoint file of a real broker comes out as it went in."""
    copy = str(tmp_path / "copy")
    files = sorted(golden.glob("*/data/*-offset-checkpoint"))
    for file in files:
        write_offset_checkpoint(FS, copy, read_offset_checkpoint(FS, str(file)))
        assert file.read_bytes() in (read_file(FS, copy), b"")  # b"": never written to
    epochs = sorted(golden.rglob("leader-epoch-checkpoint"))
    for file in epochs:
        write_checkpoint(FS, copy, read_checkpoint(FS, str(file), 2))
        assert file.read_bytes() in (read_file(FS, copy), b"")
    assert len(files) >= 8
    assert len(epochs) >= 20


@given(content=st.binary(max_size=60) | st.text("0123 \nt-", max_size=60).map(str.encode))
def test_fuzz(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    """Any file gives a table or CorruptFileError."""
    path = str(tmp_path_factory.getbasetemp() / "checkpoint")
    write_file(FS, path, content, sync=False)
    with contextlib.suppress(CorruptFileError):
        read_offset_checkpoint(FS, path)
