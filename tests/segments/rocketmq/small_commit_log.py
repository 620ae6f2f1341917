"""A commit log in files of four messages each, on a simulated disk."""

from __future__ import annotations

from logstore.segments.rocketmq.log.commit_log import CommitLog, CommitLogSettings
from logstore.testing import SimulatedHost
from tests.segments.rocketmq.drafts import draft

DIRECTORY = "/store/commitlog"
SIZE = 4096
SETTINGS = CommitLogSettings(file_size_bytes=SIZE)
FIRST = f"{DIRECTORY}/{0:020d}"
#: a record with this body takes 1000 bytes: four of them leave no room for a fifth
BODY = bytes(1000 - 91 - len("TopicTest"))


def opened(
    host: SimulatedHost, settings: CommitLogSettings = SETTINGS, *, is_clean: bool = False
) -> CommitLog:
    """Open and recover the log."""
    log = CommitLog(host, DIRECTORY, settings, is_clean=is_clean)
    log.recover()
    return log


def append(log: CommitLog, count: int = 1, *, body: bytes = BODY, stored_ms: int = 5000) -> int:
    """Append messages; return where the last one stands."""
    physical_offset = -1
    for _ in range(count):
        message = draft(body=body)
        message.stamp(3, stored_ms)
        physical_offset = log.append(message).base_offset
    return physical_offset


def file_names(host: SimulatedHost) -> list[int]:
    """Return the bytes with which the files begin."""
    return [int(entry.name) for entry in host.fs.list_directory(DIRECTORY)]
