"""meta.properties."""

from __future__ import annotations

import contextlib
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logstore.errors import CorruptFileError
from logstore.host import read_file, write_file
from logstore.os_host import SystemFileSystem
from logstore.segments.kafka.meta_properties import FILE_NAME, MetaProperties

FS = SystemFileSystem()

GOLDEN = (
    b"#\n#Sat Nov 21 03:40:42 UTC 2026\nnode.id=1\ndirectory.id=eHwpBKwYCHLonlMREhFidg\n"
    b"version=1\ncluster.id=d2d02pMQRdKX_i8LoYQXuQ\n"
)


def read(directory: Path, content: bytes) -> MetaProperties:
    """Return what a file of that content says."""
    write_file(FS, str(directory / FILE_NAME), content, sync=False)
    return MetaProperties.read(FS, str(directory))


def test_golden_file(tmp_path: Path) -> None:
    """The file of a real broker is read, and written byte for byte."""
    meta = read(tmp_path, GOLDEN)
    assert meta.node_id == 1
    assert meta.cluster_id == "d2d02pMQRdKX_i8LoYQXuQ"
    assert meta.directory_id is not None
    assert meta.directory_id.hex() == "787c2904ac180872e89e531112116276"
    meta.write(FS, str(tmp_path), 1795232442000)
    assert read_file(FS, str(tmp_path / FILE_NAME)) == GOLDEN


def test_version_0(tmp_path: Path) -> None:
    """Before KRaft the node is the broker, and nothing is guaranteed."""
    meta = read(tmp_path, b"broker.id=7\ncluster.id=abc\n")
    assert meta == MetaProperties("abc", 7, None, version=0)
    meta.write(FS, str(tmp_path), 0)
    assert MetaProperties.read(FS, str(tmp_path)) == meta
    assert read(tmp_path, b"") == MetaProperties(None, None, None, version=0)


@pytest.mark.parametrize(
    "content", [b"", b"\xff\x00garbage\n", b"directory.id=AAAAAAAAAAAAAAAAAAAAAQ\n"]
)
def test_a_file_that_says_nothing_is_told_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, content: bytes
) -> None:
    """Of version 0 there may be such a one: it is anybody's, and most likely damaged."""
    meta = read(tmp_path, content)
    assert (meta.cluster_id, meta.node_id) == (None, None)
    assert f"{tmp_path}/{FILE_NAME}: names neither a node nor a cluster" in caplog.text
    caplog.clear()
    read(tmp_path, b"broker.id=7\n")
    assert not caplog.records


def test_generate(tmp_path: Path) -> None:
    """New properties follow from the random source, and read back."""
    meta = MetaProperties.generate(3, random.Random(1))
    assert meta == MetaProperties.generate(3, random.Random(1))
    assert meta != MetaProperties.generate(3, random.Random(2))
    meta.write(FS, str(tmp_path), 0)
    assert MetaProperties.read(FS, str(tmp_path)) == meta
    assert MetaProperties.generate(3, random.Random(1), cluster_id="x").cluster_id == "x"


@pytest.mark.parametrize(
    "content",
    [
        b"version=2\n",
        b"version=one\n",
        b"version=1\nnode.id=1\n",
        b"version=1\ncluster.id=a\n",
        b"version=1\ncluster.id=a\nnode.id=x\n",
        b"version=1\ncluster.id=a\nnode.id=1\ndirectory.id=short\n",
        b"version=1\ncluster.id=\\u12\n",
    ],
)
def test_what_is_corrupt(tmp_path: Path, content: bytes) -> None:
    """Unknown versions, missing fields and values that are none are refused."""
    with pytest.raises(CorruptFileError, match=FILE_NAME):
        read(tmp_path, content)


@given(st.binary(max_size=60))
def test_fuzz(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    """Any file gives properties or CorruptFileError."""
    for prefix in (b"", b"version=1\nnode.id=1\ncluster.id=a\n"):
        with contextlib.suppress(CorruptFileError):
            read(tmp_path_factory.getbasetemp(), prefix + content)
