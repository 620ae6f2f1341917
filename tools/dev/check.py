"""
Every check that a change must pass: format, lint, types (twice), import contracts.

All of them run, or those that are named; all failures are shown, and the exit status is 1 if there
is one. `./dev check`, the pre-commit hook and CI run this same file.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import attrs
import click

ROOT = Path(__file__).resolve().parents[2]


@attrs.frozen
class Check:
    """One command, and what to run when it fails and can be repaired by a tool."""

    name: str
    command: tuple[str, ...]
    repair: str = ""


@attrs.frozen
class Outcome:
    """What one check said. `output` is its stdout and stderr."""

    check: Check
    status: int
    output: str
    seconds: float


def module(*arguments: str) -> tuple[str, ...]:
    """Return the command that runs a module of this very environment."""
    return (sys.executable, "-m", *arguments)


# The slow ones first, so that two cores end at the same time.
CHECKS = (
    Check("mypy", module("mypy")),
    Check("pyright", module("pyright", "--threads", "2")),
    Check(
        "imports",
        (sys.executable, "-c", "from importlinter.cli import lint_imports_command as c; c()"),
    ),
    Check("format", module("ruff", "format", "--check"), "./dev run ruff format"),
    Check("lint", module("ruff", "check"), "./dev run ruff check --fix"),
)


def run(check: Check) -> Outcome:
    """Run one check in the root of the repository."""
    began = time.monotonic()
    done = subprocess.run(
        check.command,
        cwd=ROOT,
        env={**os.environ, "FORCE_COLOR": "1"} if sys.stdout.isatty() else None,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    return Outcome(check, done.returncode, done.stdout.strip(), time.monotonic() - began)


def show(outcomes: Iterable[Outcome]) -> bool:
    """Print what each check said as it ends, and what is wrong below all; return if all passed."""
    failed: list[Outcome] = []
    for outcome in outcomes:
        word = "FAILED" if outcome.status else "ok"
        print(f"{outcome.check.name:<8} {word:<7} {outcome.seconds:5.1f} s", flush=True)
        if outcome.status:
            failed.append(outcome)
    for outcome in failed:
        print(f"\n--- {outcome.check.name}\n{outcome.output}")
        if outcome.check.repair:
            print(f"(most of this is repaired by `{outcome.check.repair}`)")
    return not failed


@click.command(
    help="Run the checks of these names, all if none is given, e.g. ./dev check pyright lint.",
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.argument("names", nargs=-1, type=click.Choice([check.name for check in CHECKS]))
def main(names: tuple[str, ...]) -> None:
    """Run checks beside one another; end with status 1 if one failed."""
    chosen = [check for check in CHECKS if not names or check.name in names]
    with ThreadPoolExecutor(max_workers=min(len(chosen), os.cpu_count() or 1)) as pool:
        is_well = show(pool.map(run, chosen))
    sys.exit(0 if is_well else 1)


if __name__ == "__main__":
    main()
