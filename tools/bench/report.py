"""What was measured, as a table for people and as JSON for programs."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from pathlib import Path

from rich.table import Table

from logstore.tools.bench.figures import Row
from logstore.tools.bench.runner import Outcome


def three_digits(value: float) -> str:
    """Return a figure with three significant digits, in full: ``149,000``, ``81.3``, ``0.0123``."""
    if value == 0:
        return "0"
    digits = 2
    magnitude = abs(value)
    while magnitude >= 10 and digits > 0:
        magnitude /= 10
        digits -= 1
    while magnitude < 1 and digits < 6:
        magnitude *= 10
        digits += 1
    if abs(value) >= 1000:
        return f"{float(f'{value:.3g}'):,.0f}"
    return f"{value:.{digits}f}"


def table(outcome: Outcome, targets: Sequence[str]) -> Table:
    """Return the rows that are shown, a section per scenario, with their bars and verdicts."""
    made = Table(title_justify="left", show_edge=False, pad_edge=False)
    made.add_column("scenario", style="bold")
    made.add_column("cell")
    made.add_column("figure")
    for name in targets:
        made.add_column(name, justify="right")
    made.add_column("ratio", justify="right")
    made.add_column("bar", justify="right")
    made.add_column("")
    before = ("", "")
    for row in outcome.rows:
        if not row.metric.is_shown:
            continue
        if before[0] and before[0] != row.scenario:
            made.add_section()
        made.add_row(
            row.scenario if before[0] != row.scenario else "",
            row.cell if before != (row.scenario, row.cell) else "",
            row.metric.unit,
            *(_cell(row.median(name)) for name in targets),
            _ratio(row),
            "" if row.metric.bar is None else row.metric.bar.text(row.metric.unit.split()[0]),
            {True: "[green]pass[/]", False: "[red]FAIL[/]", None: ""}[row.verdict],
        )
        before = (row.scenario, row.cell)
    return made


def _ratio(row: Row) -> str:
    """Return the median ratio, and from where to where it went where there were several rounds."""
    if row.ratio is None:
        return ""
    span = f" ({min(row.ratios):.2f}-{max(row.ratios):.2f})" if len(row.ratios) > 1 else ""
    return f"{row.ratio:.2f}x{span}"


def _cell(value: float | None) -> str:
    return "" if value is None else three_digits(value)


def as_json(
    outcome: Outcome, targets: Sequence[str], *, rounds: int, seconds: float
) -> dict[str, object]:
    """Return everything that was measured, a sample or null for every round, as plain values."""
    return {
        "machine": machine(),
        "targets": list(targets),
        "rounds": rounds,
        "seconds": seconds,
        "rows": [_row_as_json(row, targets, rounds) for row in outcome.rows],
        "failures": [
            {
                "round": failure.turn.round,
                "scenario": failure.turn.cell.scenario,
                "cell": failure.turn.cell.name,
                "target": failure.turn.target,
                "error": failure.error,
            }
            for failure in outcome.failures
        ],
    }


def _row_as_json(row: Row, targets: Sequence[str], rounds: int) -> dict[str, object]:
    return {
        "scenario": row.scenario,
        "cell": row.cell,
        "figure": row.metric.name,
        "unit": row.metric.unit,
        "samples": {
            name: [row.samples.get(name, {}).get(number) for number in range(1, rounds + 1)]
            for name in targets
        },
        "median": {name: row.median(name) for name in targets},
        "ratio": row.ratio,
        "ratios": row.ratios,
        "bar": None if row.metric.bar is None else row.metric.bar.text(row.metric.unit.split()[0]),
        "passed": row.verdict,
    }


def machine() -> dict[str, object]:
    """Return what the figures depend on: processors, kernel, Python."""
    model = ""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        lines = cpuinfo.read_text().splitlines()
        model = next(
            (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), ""
        )
    return {
        "cpus": len(os.sched_getaffinity(0)),
        "model": model,
        "kernel": platform.release(),
        "python": platform.python_version(),
    }
