"""quorum-state."""

from __future__ import annotations

from pathlib import Path

import pytest

from logstore.errors import CorruptFileError
from logstore.os_host import SystemFileSystem
from logstore.segments.kafka.cluster_metadata.quorum_state import FILE_NAME, QuorumState

FS = SystemFileSystem()
GOLDEN = Path(__file__).resolve().parents[3] / "golden"


@pytest.mark.parametrize(("name", "epoch"), [("epochs-4.3", 6), ("kafka-3.9", 1)])
def test_golden_file(name: str, epoch: int, tmp_path: Path) -> None:
    """The file of a static quorum is read, and written byte for byte."""
    golden = GOLDEN / name / "data" / "__cluster_metadata-0"
    state = QuorumState.read(FS, str(golden))
    assert state == QuorumState(1, epoch)
    assert state is not None
    state.write(FS, str(tmp_path))
    assert (tmp_path / FILE_NAME).read_bytes() == (golden / FILE_NAME).read_bytes()


def test_voters_that_stand_in_the_log(tmp_path: Path) -> None:
    """Version 1 is kept: its voters are not the file's to name."""
    text = (
        '{"leaderId":1,"leaderEpoch":4,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA",'
        '"data_version":1}'
    )
    (tmp_path / FILE_NAME).write_text(text)
    state = QuorumState.read(FS, str(tmp_path))
    assert state == QuorumState(1, 4, 1)
    assert state is not None
    state.write(FS, str(tmp_path))
    assert (tmp_path / FILE_NAME).read_text() == text


def test_never_written(tmp_path: Path) -> None:
    """No file, an empty one, and the zeros of a power loss all say that nobody was elected."""
    assert QuorumState.read(FS, str(tmp_path)) is None
    for content in (b"", bytes(20)):
        (tmp_path / FILE_NAME).write_bytes(content)
        assert QuorumState.read(FS, str(tmp_path)) is None


@pytest.mark.parametrize(
    "content",
    [b"{", b"[]", b"{}", b'{"leaderId":1,"leaderEpoch":"x","data_version":0}', b"\xff",
     b'{"leaderId":1,"leaderEpoch":1,"data_version":2}'],
)  # fmt: skip
def test_what_is_corrupt(content: bytes, tmp_path: Path) -> None:
    """Anything else is refused."""
    (tmp_path / FILE_NAME).write_bytes(content)
    with pytest.raises(CorruptFileError, match=FILE_NAME):
        QuorumState.read(FS, str(tmp_path))
