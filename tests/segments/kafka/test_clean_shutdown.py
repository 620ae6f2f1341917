"""The marker of a clean stop."""

from __future__ import annotations

from pathlib import Path

import pytest

from logstore.host import read_file, write_file
from logstore.os_host import SystemFileSystem
from logstore.segments.kafka import clean_shutdown

FS = SystemFileSystem()


def test_golden_bytes(tmp_path: Path) -> None:
    """The marker has the bytes that Kafka writes, and tells the epoch."""
    directory = str(tmp_path)
    assert not clean_shutdown.exists(FS, directory)
    clean_shutdown.write(FS, directory, 42)
    assert clean_shutdown.exists(FS, directory)
    path = str(tmp_path / clean_shutdown.FILE_NAME)
    assert read_file(FS, path) == b'{"version":0,"brokerEpoch":42}'
    assert clean_shutdown.read_broker_epoch(FS, directory) == 42
    clean_shutdown.remove(FS, directory)
    clean_shutdown.remove(FS, directory)
    assert not clean_shutdown.exists(FS, directory)
    assert clean_shutdown.read_broker_epoch(FS, directory) is None


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"{}", b"5", b'{"brokerEpoch":"x"}', b'{"brokerEpoch":null}', b"\xff"],
)
def test_what_cannot_be_read_still_means_clean(tmp_path: Path, content: bytes) -> None:
    """Only the existence counts; content of older or broken writers tells no epoch."""
    write_file(FS, str(tmp_path / clean_shutdown.FILE_NAME), content, sync=False)
    assert clean_shutdown.exists(FS, str(tmp_path))
    assert clean_shutdown.read_broker_epoch(FS, str(tmp_path)) is None


def test_golden_markers(golden: Path) -> None:
    """The markers of real brokers are found and read."""
    directories = [path.parent for path in golden.glob(f"*/data/{clean_shutdown.FILE_NAME}")]
    assert directories
    for directory in directories:
        assert clean_shutdown.read_broker_epoch(FS, str(directory)) is not None
