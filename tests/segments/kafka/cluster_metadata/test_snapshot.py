"""Snapshots of the metadata, and the one that a new cluster starts with."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logstore.errors import CorruptFileError
from logstore.os_host import SystemFileSystem
from logstore.segments.kafka.cluster_metadata.records import FeatureLevelRecord
from logstore.segments.kafka.cluster_metadata.release import MetadataVersion, parse_release
from logstore.segments.kafka.cluster_metadata.snapshot import (
    SnapshotId,
    encode_bootstrap,
    newest_snapshot,
    read_snapshot,
)
from logstore.segments.kafka.record_batch import iterate_batches

FS = SystemFileSystem()
GOLDEN = Path(__file__).resolve().parents[3] / "golden"


def timeless(data: bytes) -> list[bytes]:
    """Return the batches without both timestamps, and without the CRC that covers them."""
    batches = [bytes(b.data) for b in iterate_batches(memoryview(bytearray(data)))]
    return [batch[:17] + batch[21:27] + batch[43:] for batch in batches]


@pytest.mark.parametrize(("name", "release"), [("kafka-4.3", "4.3"), ("kafka-3.9", "3.9")])
def test_the_bootstrap_snapshot_is_kafkas(name: str, release: str) -> None:
    """What is written for a release is what ``kafka-storage format`` wrote, but for the times."""
    content = (GOLDEN / name / "data" / "bootstrap.checkpoint").read_bytes()
    ours = encode_bootstrap(parse_release(release).features, 0)
    assert len(ours) == len(content)
    found = [timeless(data) for data in (content, ours)]
    assert found[0] == found[1]


def test_reading(tmp_path: Path) -> None:
    """All records come, at their offsets in the snapshot."""
    path = tmp_path / "bootstrap.checkpoint"
    path.write_bytes(encode_bootstrap(MetadataVersion(25).features, 5))
    found = [(entry.offset, entry.record) for entry in read_snapshot(FS, str(path))]
    assert found == [
        (1, FeatureLevelRecord("metadata.version", 25)),
        (2, FeatureLevelRecord("group.version", 1)),
        (3, FeatureLevelRecord("transaction.version", 2)),
    ]


def test_names(tmp_path: Path) -> None:
    """The newest whole snapshot counts; parts, removed ones and others do not."""
    assert newest_snapshot(FS, str(tmp_path)) is None
    assert SnapshotId(7113, 4).file_name == "00000000000000007113-0000000004.checkpoint"
    for name in (
        SnapshotId(0, 0).file_name,
        SnapshotId(900, 9).file_name,
        SnapshotId(7113, 4).file_name,
        SnapshotId(8000, 4).file_name + ".part",
        SnapshotId(8000, 4).file_name + ".deleted",
        "00000000000000009000-0000000004-123.checkpoint.part",
        "leader-epoch-checkpoint",
        "00000000000000009999.snapshot",
    ):
        (tmp_path / name).touch()
    assert newest_snapshot(FS, str(tmp_path)) == SnapshotId(7113, 4)


@pytest.mark.parametrize("lost_bytes", [1, 74, 75, 80])
def test_a_snapshot_must_be_whole(tmp_path: Path, lost_bytes: int) -> None:
    """Cut short anywhere, also between two batches, it is refused: metadata would be missing."""
    path = tmp_path / "x.checkpoint"
    path.write_bytes(encode_bootstrap(MetadataVersion(30).features, 0)[:-lost_bytes])
    with pytest.raises(CorruptFileError, match=r"x\.checkpoint"):
        list(read_snapshot(FS, str(path)))


@settings(max_examples=50)
@given(st.binary(max_size=200), st.integers(0, 400))
def test_fuzz(tmp_path_factory: pytest.TempPathFactory, noise: bytes, position: int) -> None:
    """Any file gives records or CorruptFileError."""
    path = tmp_path_factory.getbasetemp() / "fuzz.checkpoint"
    content = bytearray(encode_bootstrap(MetadataVersion(30).features, 0))
    content[position : position + len(noise)] = noise
    path.write_bytes(content)
    with contextlib.suppress(CorruptFileError):
        list(read_snapshot(FS, str(path)))
