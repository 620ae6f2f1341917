"""
The process that compacts for a broker: ``python -m logstore.compat.kafka.cleaner_child``.

Plain Python would hold the broker's interpreter up for as long as it compacts, and compiled loops
take a second to load. So this is an interpreter of its own, started when there is something to
clean. A JSON object a line comes in::

    {"plan": ...}       do this pass (CompactionPlan.content)
    {"go": true}        the copy is in its place; go on

and goes out::

    {"read": N}         so many bytes were read
    {"copy": [B, ...]}  a copy of the segments with these base offsets is ready and durable
    {"end": N, "tally": [...]}    the log is clean up to offset N; waits for the next plan
    {"failed": TEXT, "is_gone": ...}    nothing of this pass is left; likewise

It ends when its input does, and when nobody reads what it says, and takes an unfinished copy along.
Only the broker renames files: if this process is killed ``.cleaned`` files are all it leaves, and a
start removes those.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import sys
from collections.abc import Generator, Mapping
from typing import Any

import attrs

from logstore.errors import LogStoreError
from logstore.os_host import system_host
from logstore.segments.kafka.compaction.compaction_pass import CompactionPass
from logstore.segments.kafka.compaction.compaction_plan import CompactionPlan
from logstore.segments.kafka.segment_files import SegmentFiles

#: the broker comes first where both want the processor
_NICENESS = 5


def main() -> None:
    """Do one pass after the other until the input ends."""
    os.nice(_NICENESS)
    with contextlib.suppress(BrokenPipeError):
        while (message := _heard()) is not None:
            _run(CompactionPlan.from_content(message["plan"]))


def _heard() -> Mapping[str, Any] | None:
    line = sys.stdin.buffer.readline()
    return json.loads(line) if line.endswith(b"\n") else None


def _say(message: Mapping[str, object]) -> None:
    sys.stdout.buffer.write(json.dumps(message).encode() + b"\n")
    sys.stdout.buffer.flush()


def _run(plan: CompactionPlan) -> None:
    try:
        with _alone_in(plan.directory):
            _clean(plan)
    except BrokenPipeError:
        raise
    except FileNotFoundError as error:
        _say({"failed": str(error), "is_gone": True})
    except (LogStoreError, OSError) as error:
        _say({"failed": str(error), "is_gone": False})


@contextlib.contextmanager
def _alone_in(directory: str) -> Generator[None]:
    """
    Wait until no other such process works in the directory.

    The broker of the other one was killed, and a new one is there; what the old process still
    writes to must not be what this one writes to.
    """
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with contextlib.suppress(OSError):  # a file system without such locks
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _clean(plan: CompactionPlan) -> None:
    files = SegmentFiles(system_host(), plan.directory, plan.config, is_writable=False)
    missing = {*plan.dirty, *plan.segments}.difference(files.base_offsets())
    if missing:
        raise FileNotFoundError(f"{files.path(min(missing), '.log')} is not there any more")
    segments = {base: files.open(base, is_active=False) for base in plan.segments}
    compaction = CompactionPass(plan, files, segments, is_fast=True)
    try:
        for copy in compaction.steps():
            _say({"read": compaction.bytes_done})
            if copy is None:
                continue
            copy.new.close()
            _say({"copy": [segment.base_offset for segment in copy.old]})
            if _heard() is None:
                raise BrokenPipeError
    except (LogStoreError, OSError):
        compaction.abandon()
        raise
    finally:
        for segment in segments.values():
            segment.close()
    _say({"end": compaction.end_offset, "tally": attrs.astuple(compaction.tally)})


if __name__ == "__main__":
    main()
