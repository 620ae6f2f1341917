"""
Passes of the cleaner in a child process, so that the broker's loop goes on meanwhile.

The child is :mod:`logstore.compat.kafka.cleaner_child`. It is started when there is something
worth it to clean, and ended when there is nothing more.
"""

from __future__ import annotations

import json
import logging
import os
import select
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from logstore.errors import LogStoreError
from logstore.host import Host
from logstore.os_host import SystemFileSystem
from logstore.segments.kafka.compaction.batch_filter import Tally
from logstore.segments.kafka.compaction.cleanable import Cleanable
from logstore.segments.kafka.compaction.compaction import Replacement
from logstore.segments.kafka.compaction.compaction_place import (
    CompactionPlace,
    InterruptedPassError,
    InThisProcess,
    PlacedCompaction,
)
from logstore.segments.kafka.compaction.compaction_plan import CompactionLimits, CompactionPlan
from logstore.segments.kafka.crash_leftovers import CLEANED

_log = logging.getLogger(__name__)

_CHILD = "logstore.compat.kafka.cleaner_child"
#: what is compacted here sooner than a child starts
SMALL_BYTES_MAX = 1024 * 1024
#: after so many children were lost in a row, passes are done here
_LOSSES_MAX = 3
#: how long one step waits for the child to say something; a stop of the server waits for a few
_WAIT_SECONDS = 0.05
_READ_BYTES = 64 * 1024


class UncleanableLogError(LogStoreError):
    """The child could not compact a log; the text is its own."""


class CleanerProcess:
    """A child process, and what it has said that nobody has heard yet."""

    def __init__(self) -> None:
        """Start it. Raises OSError where that cannot be done."""
        path = os.pathsep.join(part for part in sys.path if part)
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", _CHILD],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": path},
            start_new_session=True,  # an interrupt from the terminal is the broker's alone
        )
        assert self._process.stdin is not None, "a pipe"
        assert self._process.stdout is not None, "a pipe"
        self._input, self._output = self._process.stdin, self._process.stdout
        self._heard = bytearray()

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """Tell whether it is there."""
        return self._process.poll() is None

    def say(self, message: Mapping[str, Any]) -> None:
        """Send a message. Raises InterruptedPassError if the child is gone."""
        try:
            self._input.write(json.dumps(message).encode() + b"\n")
            self._input.flush()
        except (OSError, ValueError) as error:
            raise InterruptedPassError("the process that compacts is gone") from error

    def hear(self, seconds: float) -> Mapping[str, Any] | None:
        """Return the next message, None if there is none within that time. Raises likewise."""
        while True:
            line, found, rest = self._heard.partition(b"\n")
            if found:
                self._heard = rest
                message: Mapping[str, Any] = json.loads(line)
                return message
            try:
                if not select.select([self._output], [], [], seconds)[0]:
                    return None
                data = os.read(self._output.fileno(), _READ_BYTES)
            except (OSError, ValueError) as error:
                raise InterruptedPassError("the process that compacts is gone") from error
            if not data:
                status = self._process.wait()
                raise InterruptedPassError(f"the process that compacts has ended: {status}")
            self._heard += data

    def kill(self) -> None:
        """End it at once, wherever it is; fine if it has ended."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._input, self._output):
            with suppress(OSError):
                pipe.close()


class ChildCompaction:
    """A pass that a child process does (see :class:`PlacedCompaction`)."""

    def __init__(
        self,
        place: InChildProcess,
        process: CleanerProcess,
        cleanable: Cleanable,
        plan: CompactionPlan,
    ) -> None:
        self.partition = cleanable.partition
        self.end_offset: int = cleanable.first_dirty_offset
        self.tally = Tally()
        self._place = place
        self._process = process
        self._plan = plan
        live = self.partition.log.segments
        self._segments = {base: live[base] for base in plan.segments}

    def steps(self) -> Iterator[Replacement | None]:
        """
        Follow the child; what is yielded must be applied before the next step.

        Raises:
            InterruptedPassError: the child is gone, or a file was gone when it came to it.
            UncleanableLogError: it met damage, or the disk refused.

        """
        try:
            yield from self._follow()
        except InterruptedPassError:
            self._place.lost_child()
            raise

    def _follow(self) -> Iterator[Replacement | None]:
        process, files = self._process, self.partition.files
        process.say({"plan": self._plan.content()})
        while True:
            message = process.hear(_WAIT_SECONDS) or {}
            if "copy" in message:
                old = [self._segments[base] for base in message["copy"]]
                new = files.open_cleaned(old[0].base_offset, old[-1].next_offset)
                yield Replacement(self.partition, old, new)
                process.say({"go": True})
            elif "end" in message:
                self.end_offset, self.tally = message["end"], Tally(*message["tally"])
                self._place.has_done_well()
                return
            elif message.get("is_gone"):
                raise FileNotFoundError(message["failed"])
            elif "failed" in message:
                raise UncleanableLogError(message["failed"])
            else:
                yield None

    def abandon(self) -> None:
        """Kill the child; remove the copy that it was making, if any."""
        self._process.kill()
        fs, directory = self.partition.host.fs, self.partition.files.directory
        with suppress(FileNotFoundError):  # the topic was deleted meanwhile
            for entry in fs.list_directory(directory):
                if entry.name.endswith(CLEANED):
                    fs.remove(f"{directory}/{entry.name}")


class InChildProcess:
    """Begins passes in a child process; those that are too small for one in this process."""

    def __init__(self) -> None:
        self._here = InThisProcess()
        self._process: CleanerProcess | None = None
        self._loss_count = 0

    @property
    def process(self) -> CleanerProcess | None:
        """The child, if there is one."""
        return self._process

    def begin(
        self, cleanable: Cleanable, now_ms: int, limits: CompactionLimits
    ) -> PlacedCompaction:
        """Plan a pass, where it is done best."""
        if cleanable.total_bytes <= SMALL_BYTES_MAX or self._loss_count >= _LOSSES_MAX:
            return self._here.begin(cleanable, now_ms, limits)
        if self._process is not None and not self._process.is_running:
            self.rest()
        if self._process is None:
            try:
                self._process = CleanerProcess()
            except OSError as error:
                _log.warning("no process for the cleaner: %s; it works in this one", error)
                self._loss_count = _LOSSES_MAX
                return self._here.begin(cleanable, now_ms, limits)
        plan = CompactionPlan.of(cleanable, now_ms, limits)
        return ChildCompaction(self, self._process, cleanable, plan)

    def rest(self) -> None:
        """End the child: it holds nothing that is not on disk."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()

    def lost_child(self) -> None:
        """Take note that the child has gone in the middle of a pass."""
        self._loss_count += 1

    def has_done_well(self) -> None:
        """Take note that a pass has come to its end."""
        self._loss_count = 0


def place_for(host: Host) -> CompactionPlace:
    """Return where passes over the files of `host` are done best."""
    # not of one derived from it: what a test plans for its files would not happen in a child
    is_plain = type(host.fs) is SystemFileSystem
    return InChildProcess() if is_plain else InThisProcess()
