"""The archive of classes that runs of a JVM share."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from logstore.tools.dev.class_archive import ClassArchive

#: what is asked as `jcmd PID VM.cds dynamic_dump FILE`
JCMD = '#!/bin/sh\nprintf "%s" "classes of $1" > "$4"\n'


@pytest.fixture
def jcmd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program that stands for the one of a JDK."""
    path = tmp_path / "bin" / "jcmd"
    path.parent.mkdir()
    path.write_text(JCMD)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(path.parent), prepend=os.pathsep)
    return path


def test_the_first_run_writes_what_the_others_read(tmp_path: Path, jcmd: Path) -> None:
    """Only a run that may write is made ready for it, and nobody reads half of an archive."""
    archive = ClassArchive(tmp_path, "broker")
    assert archive.flags(may_write=False) == ""
    assert archive.flags(may_write=True).split()[0] == "-XX:+RecordDynamicDumpInfo"
    archive.write(4711)
    found = tmp_path / "broker.jsa"
    assert found.read_text() == "classes of 4711"
    for may_write in (False, True):
        (flag, *_) = archive.flags(may_write=may_write).split()
        assert flag == f"-XX:SharedArchiveFile={found}"
    archive.write(4712)
    assert found.read_text() == "classes of 4711"


def test_one_at_a_time_writes(tmp_path: Path, jcmd: Path) -> None:
    """While one process is at it the others go on without, and one that failed is followed."""
    first, second = ClassArchive(tmp_path, "broker"), ClassArchive(tmp_path, "broker")
    assert first.flags(may_write=True) != ""
    assert first.flags(may_write=True) != "", "the run may have to be started once more"
    assert second.flags(may_write=True) == ""
    jcmd.write_text("#!/bin/sh\nexit 1\n")
    first.write(4711)
    assert second.flags(may_write=True) != ""


def test_without_a_jdk_there_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A runtime that brings no `jcmd` runs as it always did."""
    monkeypatch.setenv("PATH", str(tmp_path))
    assert ClassArchive(tmp_path, "broker").flags(may_write=True) == ""
    assert list(tmp_path.iterdir()) == []
