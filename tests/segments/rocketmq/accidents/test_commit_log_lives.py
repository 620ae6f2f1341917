"""
A commit log through random work, power losses and deaths, life after life.

The contracts (``tests/contract/test_rocketmq_logs.py``) take every single power loss; here it is
the whole commit log: first file and spares, write buffers, flushes by pages, and accidents that
follow upon a recovery.
"""

from __future__ import annotations

import errno
import os
import random
from contextlib import suppress

import attrs
import pytest

from logstore.errors import StorageError
from logstore.segments.rocketmq.log.commit_log import CommitLog, CommitLogSettings
from logstore.segments.rocketmq.messages.message import decode_message
from logstore.segments.rocketmq.messages.message_layout import PHYSICAL_OFFSET_POSITION, PREFIX
from logstore.testing import PowerLoss, SimulatedHost
from logstore.testing.disk_faults import FaultKind
from tests.segments.rocketmq.drafts import draft

DIRECTORY = "/store/commitlog"
SIZE = 1400
LIVES = max(60, int(os.environ.get("LOGSTORE_DOUBLE_LOSSES", "0")) // 10)
PARTS = 4


@attrs.define
class Witness:
    """What was appended and not cut off: (physical offset, size, body), and what is promised."""

    entries: list[tuple[int, int, bytes]] = attrs.field(factory=list[tuple[int, int, bytes]])
    #: being appended when the accident happened: may be there or not
    in_flux: list[tuple[int, int, bytes]] = attrs.field(factory=list[tuple[int, int, bytes]])
    durable: int = 0
    #: files below may be gone
    removed_below: int = 0
    number: int = 0

    def check(self, found: list[tuple[int, int, bytes]], log: CommitLog) -> None:
        """Hold a recovered log to it: a run of what was appended, with all that was promised."""
        assert log.max_physical_offset >= self.durable
        start = log.min_physical_offset
        assert start <= max(self.removed_below, 0)
        offered = [entry for entry in self.entries if entry[0] >= start] + self.in_flux
        assert found == offered[: len(found)], "not what was appended, in order"
        promised = [entry for entry in self.entries if entry[0] + entry[1] <= self.durable]
        assert all(entry in found for entry in promised if entry[0] >= self.removed_below)

    def adopt(self, found: list[tuple[int, int, bytes]], log: CommitLog) -> None:
        """Go on from what a recovery left."""
        self.entries, self.in_flux = found, []
        self.durable = min(self.durable, log.max_physical_offset)
        self.removed_below = log.min_physical_offset


def opened(
    host: SimulatedHost, *, has_pool: bool
) -> tuple[CommitLog, list[tuple[int, int, bytes]]]:
    """Recover the log; return it with every record it holds."""
    settings = CommitLogSettings(
        SIZE, has_transient_store_pool=has_pool, verifies_property_crc=True
    )
    log = CommitLog(host, DIRECTORY, settings, is_clean=False)
    found: list[tuple[int, int, bytes]] = []

    def visit(physical_offset: int, records: memoryview) -> None:
        position = 0
        while position < len(records):
            size_bytes = PREFIX.unpack_from(records, position)[0]
            body = bytes(decode_message(records, position).body)
            found.append((physical_offset + position, size_bytes, body))
            position += size_bytes

    log.recover(visit=visit)
    return log, found


def append(log: CommitLog, witness: Witness) -> None:
    """Append one message."""
    witness.number += 1
    body = b"%d " % witness.number + bytes(witness.number * 37 % 90)
    message = draft(body=body, properties={"TAGS": "a"}, has_property_crc=True)
    message.stamp(3, 1_700_000_000_000 + witness.number)
    start = log.wrote_where
    rest = SIZE - start % SIZE
    if message.size_bytes + 8 > rest:
        start += rest
    witness.in_flux = [(start, message.size_bytes, body)]
    try:
        assert log.append(message).base_offset == start
    except StorageError:
        witness.in_flux = []
        raise
    witness.entries += witness.in_flux
    witness.in_flux = []


def do_something(log: CommitLog, witness: Witness, dice: random.Random) -> None:
    """Do one random thing."""
    kind = dice.choices(
        ("append", "flush", "commit", "delete", "truncate"), weights=(8, 3, 2, 1, 1)
    )[0]
    if kind == "append":
        for _ in range(dice.randrange(1, 9)):
            append(log, witness)
    elif kind == "flush":
        log.flush()
        witness.durable = log.flushed_where
    elif kind == "commit":
        log.commit()
    elif kind == "delete":
        bases = log.file_bases()
        if bases:
            witness.removed_below = max(witness.removed_below, dice.choice(bases))
            log.delete_below(witness.removed_below)
    else:
        kept = [entry for entry in witness.entries if entry[0] >= log.min_physical_offset]
        if kept:
            offset = dice.choice(kept)[0]
            witness.durable = min(witness.durable, offset)
            log.truncate(offset)
            witness.entries = [entry for entry in witness.entries if entry[0] < offset]


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("has_pool", [False, True], ids=["files", "pool"])
def test_random_lives_keep_every_promise(part: int, *, has_pool: bool) -> None:
    """Whatever was flushed is there, in order, and what was cut off never comes back."""
    for seed in range(part, LIVES, PARTS):
        dice = random.Random(seed)
        host = SimulatedHost(seed, sector_bytes=16)
        witness = Witness()
        for life in range(5):
            try:
                log, found = opened(host, has_pool=has_pool)
                witness.check(found, log)
                witness.adopt(found, log)
                for _ in range(dice.randrange(12)):
                    do_something(log, witness, dice)
            except BaseException as error:
                error.add_note(f"seed {seed}, life {life}")
                raise
            if has_pool:  # what waits is lost with the process, however it ends
                end = log.committed_where
                witness.entries = [entry for entry in witness.entries if entry[0] < end]
            if dice.random() < 0.3:
                host.fs.process_death()
            else:
                host.power_loss(PowerLoss.random(dice.randrange(1 << 30)))


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("has_pool", [False, True], ids=["files", "pool"])
def test_a_disk_that_fails_breaks_no_promise(part: int, *, has_pool: bool) -> None:
    """Whichever operation it refuses: all that was promised is there after the next start."""
    kinds: tuple[FaultKind, ...] = ("open", "write", "truncate", "sync", "sync_directory", "remove")
    struck = 0
    for seed in range(part, LIVES, PARTS):
        dice = random.Random(seed)
        host = SimulatedHost(seed, sector_bytes=16)
        witness = Witness()
        log, _ = opened(host, has_pool=has_pool)
        host.fs.faults.fail_next(
            dice.choice(kinds), errno.EIO, path="/store*", after=dice.randrange(12)
        )
        planned = host.fs.faults.planned[-1]
        try:
            for _ in range(12):
                with suppress(OSError, StorageError):
                    do_something(log, witness, dice)
        except AssertionError as error:
            error.add_note(f"seed {seed}")
            raise
        struck += planned.has_struck
        host.fs.faults.clear()
        if has_pool:
            end = log.committed_where
            witness.entries = [entry for entry in witness.entries if entry[0] < end]
        host.power_loss(PowerLoss.random(seed))
        log, found = opened(host, has_pool=has_pool)
        try:
            witness.check(found, log)
        except AssertionError as error:
            error.add_note(f"seed {seed}, {planned.kind}")
            raise
    assert struck > LIVES // PARTS // 3


@pytest.mark.parametrize("part", range(PARTS))
def test_a_flipped_bit_costs_what_is_behind_it_and_nothing_before(part: int) -> None:
    """
    Of every byte of a log with checksums of everything: a run of what was put, told about.

    The place that a record names has no checksum, but is known if the log goes on behind it.
    """
    host = SimulatedHost()
    witness = Witness()
    log, _ = opened(host, has_pool=False)
    for _ in range(22):
        append(log, witness)
    log.flush()
    host.fs.process_death()
    for base, (physical_offset, size_bytes, _) in enumerate(witness.entries):
        if base % PARTS != part:
            continue
        for position in range(0, size_bytes, 3):
            fork = host.fork()
            place = physical_offset + position
            path = f"{DIRECTORY}/{place - place % SIZE:020d}"
            fork.fs.flip(path, place % SIZE, (place + base) % 8)
            again, found = opened(fork, has_pool=False)
            is_place = 0 <= position - PHYSICAL_OFFSET_POSITION < 8
            if is_place and base + 1 < len(witness.entries):
                assert found == witness.entries, (base, position)
                continue
            assert found == witness.entries[:base], (base, position)
            assert again.max_physical_offset == physical_offset
