"""All that is measured, by scenario, in the order in which it is run."""

from __future__ import annotations

from collections.abc import Sequence

from logstore.tools.bench import (
    scenario_fetch,
    scenario_groups,
    scenario_java,
    scenario_librdkafka,
    scenario_lifecycle,
    scenario_partitions,
    scenario_produce,
    scenario_transactions,
)
from logstore.tools.bench.cells import Cell, pick

CELLS: list[Cell] = [
    *scenario_lifecycle.CELLS,
    *scenario_produce.CELLS,
    *scenario_fetch.CELLS,
    *scenario_partitions.CELLS,
    *scenario_groups.CELLS,
    *scenario_transactions.CELLS,
    *scenario_librdkafka.CELLS,
    *scenario_java.CELLS,
]

#: Names in the order of the first cell of each.
SCENARIOS: list[str] = list(dict.fromkeys(cell.scenario for cell in CELLS))


def chosen(scenarios: Sequence[str], text: str | None = None) -> list[Cell]:
    """
    Return the cells of these scenarios (all where none is named) whose names contain `text`.

    Raises :class:`BenchError` with the names there are, or where nothing is left.
    """
    return pick(CELLS, scenarios, text)
