"""Kafka's share-partition and ours live the same lives: who gets what, and what becomes of it."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple, cast

import pytest

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.groups.share.settings import ShareGroupSettings
from logstore.compat.kafka.refused_request import RefusedRequestError
from logstore.compat.kafka.share_reads.acknowledgement import AcknowledgementBatch
from logstore.compat.kafka.share_reads.acquisition import Acquirer
from logstore.compat.kafka.share_reads.fetched_batches import FetchedBatches
from logstore.compat.kafka.share_reads.in_flight_state import RecordState
from logstore.compat.kafka.share_reads.share_partition import SharePartition
from logstore.compat.kafka.share_state.persister import (
    DeliveryState,
    Outcome,
    Persister,
    SharePartitionKey,
    SharePartitionState,
    StateBatch,
)
from logstore.compat.waiting import Timers
from logstore.host import File
from logstore.segment import Extent
from logstore.segments.kafka.control_record import ControlType, encode_control
from logstore.segments.kafka.partition import KafkaPartition
from logstore.segments.kafka.record import Record, encode_batch
from logstore.segments.kafka.record_batch import RecordBatch
from logstore.segments.kafka.transaction_index import AbortedTransaction
from logstore.testing.manual_clock import ManualClock
from tests.interop.java_programs import kafka_program

pytestmark = [pytest.mark.interop, pytest.mark.slow]

ASKED = Path(__file__).with_name("SharePartitions.java")
LIFE_COUNT, STEP_COUNT = 400, 40
LOCK_MS = 30_000


class Stored(NamedTuple):
    """A batch of the log."""

    base: int
    last: int
    producer: int = -1
    is_abort: bool = False

    def __str__(self) -> str:
        producer = "" if self.producer < 0 else f"-{self.producer}"
        return f"{self.base}-{self.last}{producer}{'-A' if self.is_abort else ''}"

    def data(self) -> bytes:
        """Return its bytes."""
        if self.is_abort:
            made = encode_control(
                ControlType.ABORT, timestamp_ms=0, producer_id=self.producer, producer_epoch=0,
                coordinator_epoch=0,
            )  # fmt: skip
        else:
            records = [Record(i, 0, None, None) for i in range(self.last - self.base + 1)]
            is_transactional = self.producer >= 0
            made = encode_batch(
                records, producer_id=self.producer, producer_epoch=0 if is_transactional else -1,
                base_sequence=0 if is_transactional else -1, is_transactional=is_transactional,
            )  # fmt: skip
        data = bytearray(made)
        RecordBatch(data, len(data)).stamped(self.base)
        return bytes(data)


class Bytes:
    """As much of a file as a share fetch reads of."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def read(self, position: int, size_bytes: int) -> bytes:
        """Return bytes."""
        return self.data[position : position + size_bytes]


class FakeLog:
    """As much of a log as a share-partition knows of."""

    topic, index, leader_epoch = "t", 0, 0
    start_offset = 0
    end_offset = 1 << 40


class Keeper:
    """Reads what it was given; writes are noted, or refused."""

    def __init__(self, start: int, kept: tuple[StateBatch, ...]) -> None:
        self.state = SharePartitionState(ErrorCode.NONE, None, 1, start, kept)
        self.refuses = False
        self.writes: list[str] = []

    def read(self, key: SharePartitionKey, leader_epoch: int) -> SharePartitionState:
        """Return what was kept."""
        del key, leader_epoch
        return self.state

    def write(self, key: SharePartitionKey, **given: object) -> Outcome:
        """Take note."""
        del key
        batches = cast("list[StateBatch]", given["state_batches"])
        shown = [f"{b.first_offset}-{b.last_offset}={b[2]:d}*{b.delivery_count}" for b in batches]
        head = f"{given['start_offset']}/{given['delivery_complete_count']}"
        self.writes.append(",".join([head, *shown]))
        return Outcome(ErrorCode.COORDINATOR_NOT_AVAILABLE if self.refuses else ErrorCode.NONE)


class Life:
    """A share-partition whose members do this and that."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.clock = ManualClock()
        self.log: list[Stored] = []
        self.aborted: list[AbortedTransaction] = []
        self.has_transactions = rng.random() < 0.3
        self.settings = ShareGroupSettings(
            delivery_count_limit=rng.choice([2, 3, 5, 6]),
            partition_max_record_locks=4000 if self.has_transactions else rng.choice([15, 40, 200]),
            record_lock_duration_ms=LOCK_MS,
        )
        start = rng.choice([0, 0, 7])
        kept = tuple(self._kept(start)) if rng.random() < 0.5 else ()
        self.keeper = Keeper(start, kept)
        self.timers = Timers(self.clock)
        self.partition = SharePartition(
            SharePartitionKey("g", bytes(16), 0), cast(KafkaPartition, FakeLog()),
            cast(Persister, self.keeper), lambda: self.settings, self.timers,
        )  # fmt: skip
        shown = ",".join(f"{a}-{b}-{s:d}-{c}" for a, b, s, c in kept) or "-"
        limits = f"{self.settings.delivery_count_limit} {self.settings.partition_max_record_locks}"
        self.opening = f"open {start} {limits} {LOCK_MS} {shown}"
        self.partition.initialize()

    def _kept(self, start: int) -> Iterator[StateBatch]:
        rng, offset = self.rng, start
        for _ in range(rng.choice([1, 2, 5])):
            offset += rng.choice([0, 0, 1, 4])
            last = offset + rng.choice([0, 2, 6])
            yield StateBatch(offset, last, rng.choice(list(DeliveryState)), rng.choice([1, 1, 2]))
            offset = last + 1

    def _grow(self, end: int) -> None:
        """Append to the log until it has that offset."""
        rng = self.rng
        while not self.log or self.log[-1].last < end:
            base = self.log[-1].last + 1 if self.log else 0
            last = base + rng.choice([0, 0, 2, 4, 9])
            if not self.has_transactions or rng.random() < 0.5:
                self.log.append(Stored(base, last))
                continue
            self.log.append(Stored(base, last, 7))
            if rng.random() < 0.5:
                self.log.append(
                    Stored(last + 1, last + 1 + rng.choice([0, 3]), rng.choice([-1, 8]))
                )
            marker = self.log[-1].last + 1
            self.log.append(Stored(marker, marker, 7, is_abort=True))
            self.aborted.append(AbortedTransaction(7, base, marker, marker + 1))

    def step(self) -> tuple[str, str]:
        """Do something; return the question that asks the real one to, and our answer."""
        self.keeper.writes.clear()
        kind = self.rng.choices(
            [self.acquire, self.say, self.release, self.start, self.pass_, self.refuse],
            [10, 9, 1, 0.6, 1.5, 0.5],
        )[0]
        asked, result = kind()
        written = ";".join(self.keeper.writes) or "-"
        if asked.startswith("pass"):
            written = "-"
        records = self.partition.records
        next_offset = records.next_fetch_offset()
        can = self.partition.next_fetch_offset() is not None
        bounds = f"{records.start_offset} {records.end_offset} {next_offset}"
        return asked, (
            f"{result} {written} {bounds} {str(can).lower()} {records.delivery_complete_count} "
            f"{self._states()}"
        )

    def _states(self) -> str:
        shown: list[str] = []
        for batch in self.partition.records.batches.values():
            shown += [
                f"{first}-{last}={state.state.name}{state.member_id}*{state.delivery_count}"
                for first, last, state in batch.runs()
            ]
        return ",".join(shown) or "-"

    def acquire(self) -> tuple[str, str]:
        """Let a member fetch."""
        rng = self.rng
        offset = self.partition.next_fetch_offset()
        if offset is None:
            return self.pass_()
        self._grow(offset + rng.choice([0, 10, 30]))
        first = next(i for i, stored in enumerate(self.log) if stored.last >= offset)
        stored = self.log[first : first + rng.choice([1, 1, 2, 3, 8])]
        member, is_limit = rng.choice("AB"), rng.random() < 0.4
        acquirer = Acquirer(
            member, rng.choice([1, 2, 5, 12, 50]), rng.choice([1, 3, 100]), is_limit
        )
        data = b"".join(one.data() for one in stored)
        extent = Extent(cast(File, Bytes(data)), 0, len(data))
        fetched = FetchedBatches.read(
            extent, offset, self.partition.records.end_offset, acquirer.record_count_max
        )
        assert fetched is not None
        last = stored[-1].last
        aborted = [a for a in self.aborted if a.first_offset <= last and a.last_offset >= offset]
        got = self.partition.acquire(acquirer, offset, fetched, aborted)
        shown = ",".join(f"{first}-{last}*{count}" for first, last, count in got) or "-"
        asked = (
            f"acquire {member} {is_limit:d} {acquirer.batch_size} {acquirer.record_count_max} "
            f"{offset} {','.join(map(str, stored))} "
            f"{','.join(f'{a.producer_id}-{a.first_offset}' for a in aborted) or '-'}"
        )
        return asked, shown

    def say(self) -> tuple[str, str]:
        """Let a member acknowledge, as a rule something that it has."""
        rng, member = self.rng, self.rng.choice("AB")
        runs = [
            (run.first_offset, run.last_offset)
            for batch in self.partition.records.batches.values()
            for run in batch.runs()
            if run.state.state is RecordState.ACQUIRED and run.state.member_id == member
        ]
        said: list[AcknowledgementBatch] = []
        if self.has_transactions and not runs:
            return self.pass_()
        if not self.has_transactions and (not runs or rng.random() < 0.1):
            first = rng.randrange(30)
            said.append(AcknowledgementBatch(first, first + rng.randrange(5), (1,)))
        else:
            index = rng.randrange(len(runs))
            for first, last in runs[index : index + rng.choice([1, 1, 2, 6])]:
                if rng.random() < 0.2:
                    first = rng.randint(first, last)
                    last = rng.randint(first, last)
                kinds = [0, 1, 1, 1, 2, 2, 3, 4]
                count = last - first + 1 if rng.random() < 0.5 else 1
                said.append(AcknowledgementBatch(first, last, tuple(rng.choices(kinds, k=count))))
        shown = ",".join(f"{a}-{b}-{'.'.join(map(str, types))}" for a, b, types in said)
        return f"say {member} {shown}", self._outcome(
            lambda: self.partition.acknowledge(member, said)
        )

    def release(self) -> tuple[str, str]:
        """Let a member go."""
        member = self.rng.choice("AB")
        return f"release {member}", self._outcome(lambda: self.partition.release(member))

    def _outcome(self, change: object) -> str:
        try:
            change()  # type: ignore[operator]
        except RefusedRequestError as error:
            return error.code.name
        return "NONE"

    def start(self) -> tuple[str, str]:
        """Let records be deleted; Kafka reads a gap for ever of which it was told to."""
        records = self.partition.records
        if records.gap_window is not None:
            return self.pass_()
        offset = self.rng.randint(records.start_offset, max(records.end_offset, 1))
        self.partition.move_start(offset)
        return f"start {offset}", "-"

    def pass_(self) -> tuple[str, str]:
        """Let time pass."""
        delay_ms = self.rng.choice([1000, LOCK_MS // 2, LOCK_MS])
        self.clock.advance(delay_ms)
        self.timers.run()
        return f"pass {delay_ms}", "-"

    def refuse(self) -> tuple[str, str]:
        """Let writes be refused, or no longer."""
        self.keeper.refuses = not self.keeper.refuses
        return f"refuse {str(self.keeper.refuses).lower()}", "-"


class Seen(NamedTuple):
    """What can be seen of a step's outcome, wherever batches are split."""

    result: str
    written: str
    bounds: tuple[str, ...]
    states: Mapping[int, str]

    @classmethod
    def of(cls, line: str, *, has_transactions: bool) -> Seen:
        """
        Read an answer.

        Records of aborted transactions stay in flight in Kafka until the next acknowledgement;
        ours leave at once, so that they cannot fill up what may be in flight.
        """
        result, written, start, end, next_offset, can, count, states = line.split()
        if result == "NullPointerException":  # Kafka's, where nothing at all is in flight
            result = "INVALID_RECORD_STATE"
        found: dict[int, str] = {}
        for one in states.split(",") if states != "-" else ():
            offsets, _, state = one.partition("=")
            first, last = map(int, offsets.split("-"))
            found |= dict.fromkeys(range(max(first, int(start)), last + 1), state)
        if not has_transactions:
            return cls(result, written, (start, end, next_offset, can, count), found)
        found = {
            offset: state
            for offset, state in found.items()
            if not state.startswith(("ARCH", "ACKN"))
        }
        written = ";".join(one.partition(",")[2] for one in written.split(";"))
        return cls(result, written, (next_offset, can), found)


def test_the_same_lives() -> None:
    """Step by step both hand out, keep, write and refuse the same."""
    lives: list[tuple[bool, list[str], list[str]]] = []
    for seed in range(LIFE_COUNT):
        life = Life(random.Random(seed))
        steps = [life.step() for _ in range(STEP_COUNT)]
        questions = [life.opening, *(asked for asked, _ in steps)]
        lives.append((life.has_transactions, questions, [answer for _, answer in steps]))
    done = subprocess.run(
        kafka_program(ASKED),
        input="\n".join(asked for _, questions, _ in lives for asked in questions) + "\n",
        capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    told = iter(done.stdout.splitlines())
    for has_transactions, questions, answers in lives:
        theirs = [next(told) for _ in questions][1:]
        for number, (our, their) in enumerate(zip(answers, theirs, strict=True)):
            if their.startswith("IllegalStateException"):
                break  # Kafka stumbles over an aborted batch that the start lies in
            assert Seen.of(our, has_transactions=has_transactions) == Seen.of(
                their, has_transactions=has_transactions
            ), "\n".join(questions[: number + 2])
    assert next(told, None) is None
