"""Rounds, turns, what a failing turn does, and what comes out for people and programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import attrs
import orjson
import pytest
from click.testing import CliRunner
from rich.console import Console

from logstore.tools.bench.cells import Cell
from logstore.tools.bench.figures import Bar, Metric
from logstore.tools.bench.frames import BenchError
from logstore.tools.bench.report import as_json, table, three_digits
from logstore.tools.bench.runner import Outcome, Run, Turn, contestants
from logstore.tools.bench.suite import CELLS, SCENARIOS, chosen
from logstore.tools.bench.targets import Target, parse_address
from logstore.tools.commands.bench import bench

Figures = Mapping[str, Sequence[float | Exception]]


@attrs.define
class Script:
    """A cell's work: figures by target, taken in turn; an exception among them is raised."""

    figures: Figures
    taken: list[str]

    def __call__(self, target: Target, seconds: float) -> Mapping[str, float]:
        """Return the target's next figure."""
        assert seconds == 1.5
        self.taken.append(target.name)
        figure = self.figures[target.name][self.taken.count(target.name) - 1]
        if isinstance(figure, Exception):
            raise figure
        return {"rate": figure}


METRICS = (Metric("rate", "MB/s", Bar("ratio", ">=", 2)),)


def outcome_of(
    directory: Path, figures: Figures, rounds: int
) -> tuple[Outcome, list[str], list[Turn]]:
    """Run one scripted cell; return what came out, whose turns there were, and what was said."""
    taken: list[str] = []
    said: list[Turn] = []
    cell = Cell("scenario", "cell", METRICS, Script(figures, taken), needs_start=True)
    targets = [Target(name, str(directory)) for name in figures]
    run = Run([cell], targets, rounds=rounds, seconds=1.5, say=said.append)
    run.warm_up()
    outcome = run.run()
    for target in targets:
        target.close()
    assert said == run.turns()
    return outcome, taken, said


def test_targets_take_turns_within_each_round(tmp_path: Path) -> None:
    """A B B A A B, so that what changes on the machine changes for both."""
    figures = {"ours": [8.0, 30.0, 4.0], "kafka": [4.0, 10.0, 1.0]}
    outcome, taken, said = outcome_of(tmp_path, figures, 3)
    assert taken == ["ours", "kafka", "kafka", "ours", "ours", "kafka"]
    assert [turn.round for turn in said] == [1, 1, 2, 2, 3, 3]
    (row,) = outcome.rows
    assert row.samples == {"ours": {1: 8, 2: 30, 3: 4}, "kafka": {1: 4, 2: 10, 3: 1}}
    assert (row.ratio, row.verdict, outcome.missed) == (3, True, [])


def test_whoever_is_first_at_one_cell_is_last_at_the_next(tmp_path: Path) -> None:
    """With a single round, too, nobody is always the first to write into new memory."""
    cells = [Cell("scenario", name, METRICS, Script({}, []), needs_start=True) for name in "xyz"]
    targets = [Target(name, str(tmp_path)) for name in ("ours", "kafka")]
    turns = Run(cells, targets, rounds=1, seconds=1, say=lambda _: None).turns()
    assert [(turn.cell.name, turn.target) for turn in turns] == [
        ("x", "ours"), ("x", "kafka"), ("y", "kafka"), ("y", "ours"), ("z", "ours"), ("z", "kafka"),
    ]  # fmt: skip
    for target in targets:
        target.close()


def test_a_failing_turn_is_noted_and_the_run_goes_on(tmp_path: Path) -> None:
    """The error stands in the outcome; the other turns are taken and counted."""
    figures: Figures = {"ours": [BenchError("no such topic"), 3.0], "kafka": [2.0, 2.0]}
    outcome, taken, _ = outcome_of(tmp_path, figures, 2)
    assert taken == ["ours", "kafka", "kafka", "ours"]
    (failure,) = outcome.failures
    assert (failure.turn.round, failure.turn.target) == (1, "ours")
    assert failure.error == "BenchError: no such topic"
    assert outcome.rows[0].samples["ours"] == {2: 3}
    assert outcome.rows[0].ratios == [1.5]


def test_nothing_is_left_on_the_disk(tmp_path: Path) -> None:
    """What a target was given to write in is gone with it."""
    outcome_of(tmp_path, {"ours": [1.0]}, 1)
    assert list(tmp_path.iterdir()) == []


def test_a_broker_at_an_address_is_not_asked_to_start(tmp_path: Path) -> None:
    """Cells that start instances are left out for a target that somebody else runs."""
    cell = Cell("scenario", "cell", METRICS, Script({}, []), needs_start=True)
    target = Target("127.0.0.1:1", str(tmp_path))
    assert Run([cell], [target], rounds=1, seconds=1, say=lambda _: None).turns() == []
    target.close()


@pytest.mark.parametrize(
    ("names", "subject", "baseline"),
    [
        (["ours", "kafka"], "ours", "kafka"),
        (["kafka", "localhost:9092"], "localhost:9092", "kafka"),
        (["ours", "localhost:9092"], "ours", "localhost:9092"),
        (["ours"], "ours", None),
        (["kafka"], None, "kafka"),
    ],
)
def test_who_is_held_against_whom(
    names: list[str], subject: str | None, baseline: str | None
) -> None:
    """The real Kafka is what others are held against, and is never judged itself."""
    assert contestants(names) == (subject, baseline)


def test_addresses_are_read_or_refused() -> None:
    """HOST:PORT with or without a process id, and one clear line for anything else."""
    assert parse_address("localhost:9092") == (("localhost", 9092), 0)
    assert parse_address("::1:9092") == (("::1", 9092), 0)
    for wrong in (
        "localhost",
        ":9092",
        "localhost:http",
        "localhost:9092,x",
        "localhost:1,999999999",
    ):
        with pytest.raises(BenchError, match=r"no target|no process"):
            parse_address(wrong)


def test_every_figure_that_was_promised_has_a_cell() -> None:
    """The suite holds the bars that the README's table is made of."""
    bars = {
        (cell.scenario, metric.name): metric.bar
        for cell in CELLS
        for metric in cell.metrics
        if metric.bar is not None
    }
    assert bars["connections", "p99_ms"] == Bar("ratio", "<=", 0.5)
    assert bars["end-to-end", "p50_us"] == Bar("ratio", "<=", 1 / 1.5)
    assert bars["end-to-end", "p99_us"] == Bar("ratio", "<=", 1 / 3)
    assert bars["raw-fetch", "mb_per_s"] == Bar("ratio", ">=", 0.9)
    assert bars["create-partitions", "seconds"] == Bar("value", "<", 0.5)
    assert bars["memory", "idle_mib"] == Bar("value", "<=", 60)
    assert bars["memory", "loaded_mib"] == Bar("value", "<=", 90)
    assert bars["recovery", "seconds"] == Bar("value", "<=", 1)
    by_cell = {
        cell.name: [metric.bar.limit for metric in cell.metrics if metric.bar is not None]
        for cell in CELLS
    }
    assert [by_cell[name] for name in by_cell if name.endswith("64 in flight")] == [
        [5],
        [2],
        [1.3],
        [1.5],
        [5],  # numbered
    ]
    assert by_cell["1 x 100 B, one in flight"] == [1, 2 / 3]
    assert by_cell["process start to first ack"] == [350]
    assert by_cell["TestBroker() until it answers"] == [50]
    librdkafka = [cell.name for cell in chosen(["librdkafka"])]
    assert len(set(librdkafka)) == 3 * 2 * 2 * 3
    assert all(by_cell[name] == [1, 2 / 3] for name in librdkafka)


def test_an_unknown_scenario_is_answered_with_the_known_ones() -> None:
    """One line names what there is."""
    with pytest.raises(BenchError, match="raw-produce"):
        chosen(["raw-prodoce"])
    with pytest.raises(BenchError, match="'nothing like it'"):
        chosen([], "nothing like it")
    assert {cell.scenario for cell in chosen(["start", "memory"])} == {"start", "memory"}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (149_499.5, "149,000"),
        (1234, "1,230"),
        (999.4, "999"),
        (81.26, "81.3"),
        (1.5, "1.50"),
        (0.01234, "0.0123"),
    ],
)
def test_figures_have_three_digits(value: float, text: str) -> None:
    """As many digits as a benchmark can stand for, and no exponent."""
    assert three_digits(value) == text


def test_the_table_says_what_was_reached(tmp_path: Path) -> None:
    """A row names the cell, both medians, the ratio, the bar and the verdict."""
    outcome, _, _ = outcome_of(tmp_path, {"ours": [300.0], "kafka": [200.0]}, 1)
    console = Console(width=120)
    with console.capture() as captured:
        console.print(table(outcome, ["ours", "kafka"]))
    line = next(line for line in captured.get().splitlines() if "300" in line)
    cells = [cell.strip() for cell in line.split("│")]
    assert cells == ["scenario", "cell", "MB/s", "300", "200", "1.50x", ">= 2x", "FAIL"]


def test_the_table_says_how_far_the_rounds_went_apart(tmp_path: Path) -> None:
    """A ratio near its bar is read differently when the rounds disagree."""
    figures = {"ours": [300.0, 200.0, 100.0], "kafka": [100.0, 100.0, 100.0]}
    outcome, _, _ = outcome_of(tmp_path, figures, 3)
    console = Console(width=120)
    with console.capture() as captured:
        console.print(table(outcome, ["ours", "kafka"]))
    assert "2.00x (1.00-3.00)" in captured.get()


def test_the_json_holds_every_sample(tmp_path: Path) -> None:
    """Programs get the samples, medians, ratio and verdict, and the failures."""
    figures: Figures = {"ours": [300.0, BenchError("gone")], "kafka": [100.0, 200.0]}
    outcome, _, _ = outcome_of(tmp_path, figures, 2)
    document = orjson.loads(
        orjson.dumps(as_json(outcome, ["ours", "kafka"], rounds=2, seconds=1.5))
    )
    (row,) = document["rows"]
    assert row["samples"] == {"ours": [300, None], "kafka": [100, 200]}
    assert (row["ratio"], row["bar"], row["passed"]) == (3, ">= 2x", True)
    assert document["failures"][0]["error"] == "BenchError: gone"
    assert document["machine"]["cpus"] >= 1


def test_the_command_lists_every_scenario_without_starting_anything() -> None:
    """`--list` shows what would be measured, with the bars."""
    done = CliRunner().invoke(bench, ["kafka", "--list"])
    assert done.exit_code == 0
    for scenario in SCENARIOS:
        assert scenario in done.output


def test_a_target_that_is_none_is_one_clear_line() -> None:
    """Nothing is started, and the line says what a target may be."""
    done = CliRunner().invoke(bench, ["kafka", "-t", "somewhere", "-s", "raw-latency"])
    assert done.exit_code == 1
    assert "say ours, kafka or HOST:PORT" in done.output
