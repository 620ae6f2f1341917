"""The archive of classes that runs of Kafka's tools share."""

from __future__ import annotations

from pathlib import Path

from logstore.tools.dev.class_archive import ClassArchive


def test_the_first_run_writes_what_the_others_read(tmp_path: Path) -> None:
    """Written under another name until the run has ended, so that nobody reads half of it."""
    archive = ClassArchive(tmp_path)
    assert archive.flags(may_write=False) == ""
    (flag, *_) = archive.flags(may_write=True).split()
    option, _, path = flag.partition("=")
    assert option == "-XX:ArchiveClassesAtExit"
    archive.settle()
    assert list(tmp_path.iterdir()) == []
    Path(path).write_bytes(b"classes")
    assert archive.flags(may_write=False) == ""
    archive.settle()
    (found,) = tmp_path.iterdir()
    assert found.read_bytes() == b"classes"
    for may_write in (False, True):
        (flag, *_) = archive.flags(may_write=may_write).split()
        assert flag == f"-XX:SharedArchiveFile={found}"
