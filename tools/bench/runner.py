"""Runs cells in rounds, the targets in turns within each, and collects what they say."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from functools import partial

import attrs

from logstore.errors import LogStoreError
from logstore.tools.bench.cells import Cell
from logstore.tools.bench.figures import Row
from logstore.tools.bench.frames import BenchError
from logstore.tools.bench.scenario_fetch import deliver, fetch_stored
from logstore.tools.bench.scenario_librdkafka import Mix
from logstore.tools.bench.scenario_produce import KB_10, ONE_SMALL, produce_windowed
from logstore.tools.bench.targets import KAFKA, Target, settle
from logstore.tools.dev.rocketmq_jars import VERSION_5


@attrs.frozen
class Turn:
    """One target's turn at one cell: what a progress display shows."""

    round: int
    cell: Cell
    target: str


@attrs.frozen
class Failure:
    """A turn that ended with an error."""

    turn: Turn
    error: str


@attrs.frozen
class Outcome:
    """Rows in the order of the cells, and what failed."""

    rows: list[Row]
    failures: list[Failure]

    @property
    def missed(self) -> list[Row]:
        """Rows whose bar is not met."""
        return [row for row in self.rows if row.verdict is False]


class Run:
    """
    One run of the benchmark; `say` is called before each turn.

    `warm` loads a target beforehand, for so many seconds; without it that is done as Kafka is.
    """

    def __init__(
        self,
        cells: Sequence[Cell],
        targets: Sequence[Target],
        *,
        rounds: int,
        seconds: float,
        say: Callable[[Turn], None],
        warm: Callable[[Target, float], object] | None = None,
    ) -> None:
        self._cells = cells
        self._targets = targets
        self._rounds = rounds
        self._seconds = seconds
        self._say = say
        self._warm = warm
        self._samples: dict[tuple[int, str, str], dict[int, float]] = {}
        self._failures: list[Failure] = []

    def turns(self) -> list[Turn]:
        """
        Return all turns in order: round by round, cell by cell, target by target.

        Who comes first changes from round to round and from cell to cell: the first writes into
        memory that was never used, or given back to a virtual machine's host, and the next into
        what the first has just let go of.
        """
        return [
            Turn(number + 1, cell, target.name)
            for number in range(self._rounds)
            for at, cell in enumerate(self._cells)
            for target in self._targets[:: -1 if (number + at) % 2 else 1]
            if target.can_start or not cell.needs_start
        ]

    def warm_up(self) -> None:
        """
        Load every target with a little of everything, where there is a load to come.

        Ten times a cell's length: the JVM compiles what is hot, and its first seconds are nobody's
        steady state.
        """
        if not any(cell.is_load for cell in self._cells):
            return
        if self._warm is not None:
            for target in self._targets:
                with contextlib.suppress(BenchError, OSError):  # its own turn will tell
                    self._warm(target, self._seconds * 2)
            return
        seconds = self._seconds * 2
        librdkafka = Mix(record_bytes=1024, acks=-1, partition_count=6, codec="lz4")
        works: list[Callable[[Target, float], object]] = [
            partial(produce_windowed, ONE_SMALL),
            partial(produce_windowed, KB_10),
            fetch_stored,
            deliver,
            librdkafka,
        ]
        for target in self._targets:
            for work in works:
                with contextlib.suppress(BenchError, OSError):  # its own turn will tell
                    work(target, seconds)

    def run(self) -> Outcome:
        """Take all turns; a turn that fails is noted and the run goes on."""
        by_name = {target.name: target for target in self._targets}
        for turn in self.turns():
            self._say(turn)
            self._take(turn, by_name[turn.target])
        return Outcome(self._rows(), self._failures)

    def _take(self, turn: Turn, target: Target) -> None:
        try:
            settle(list(self._targets))
            figures = turn.cell.run(target, self._seconds)
        except (LogStoreError, OSError) as error:
            words = target.last_words()
            said = f"; the server's last line is: {words}" if words else ""
            self._failures.append(Failure(turn, f"{type(error).__name__}: {error}{said}"))
            target.forget_if_dead()
            return
        at = self._cells.index(turn.cell)
        for name, value in figures.items():
            self._samples.setdefault((at, name, target.name), {})[turn.round] = value

    def _rows(self) -> list[Row]:
        subject, baseline = contestants([target.name for target in self._targets])
        rows: list[Row] = []
        for at, cell in enumerate(self._cells):
            for metric in cell.metrics:
                samples = {
                    target.name: self._samples[at, metric.name, target.name]
                    for target in self._targets
                    if (at, metric.name, target.name) in self._samples
                }
                if samples:
                    rows.append(Row(cell.scenario, cell.name, metric, samples, subject, baseline))
        return rows


def contestants(names: Sequence[str]) -> tuple[str | None, str | None]:
    """
    Return who is held against the bars, and who stands for the ratios.

    The original, the newest of several, is the baseline where it takes part, else the last of
    several targets is; the subject is the first of the others.
    """
    originals = [name for name in (KAFKA, VERSION_5) if name in names]
    last = names[-1] if len(names) > 1 else None
    baseline = originals[0] if originals else last
    subject = next((name for name in names if name != baseline), None)
    return subject, baseline
