"""Runs the layout's cells in rounds and collects what they say."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from logstore.tools.bench.figures import Row
from logstore.tools.bench.frames import BenchError
from logstore.tools.bench.layout_cells import CELLS, LayoutCell, Workplace
from logstore.tools.bench.rocketmq_layout_cells import ROCKETMQ_CELLS
from logstore.tools.bench.runner import Outcome

#: both layouts' cells, Kafka's first
ALL_CELLS: list[LayoutCell] = [*CELLS, *ROCKETMQ_CELLS]
#: what stands over the column of figures
SUBJECT = "logstore"


def chosen(scenarios: Sequence[str]) -> list[LayoutCell]:
    """Return the cells of these scenarios, all where none is named. Raises BenchError."""
    known = list(dict.fromkeys(cell.scenario for cell in ALL_CELLS))
    for name in scenarios:
        if name not in known:
            raise BenchError(f"no scenario {name!r}; there are {', '.join(known)}")
    return [cell for cell in ALL_CELLS if not scenarios or cell.scenario in scenarios]


def measure(
    cells: Sequence[LayoutCell],
    workplace: Workplace,
    *,
    rounds: int,
    say: Callable[[str], None],
) -> Outcome:
    """
    Run every cell `rounds` times, cell by cell: what one made is there for its next round.

    `say` is told before each what comes.
    """
    rows: list[Row] = []
    for cell in cells:
        samples: dict[str, dict[int, float]] = {}
        for number in range(1, rounds + 1):
            say(f"round {number}: {cell.scenario}, {cell.name}")
            for name, value in cell.run(workplace).items():
                samples.setdefault(name, {})[number] = value
        rows += [
            Row(cell.scenario, cell.name, metric, {SUBJECT: samples[metric.name]}, SUBJECT, None)
            for metric in cell.metrics
            if metric.name in samples
        ]
    return Outcome(rows, [])
