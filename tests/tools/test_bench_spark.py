"""``logstore bench spark``: what is wanted of it has a row, what is left out is said."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="pyspark is missing: extra `spark`")

from logstore.tools.bench import spark_peer
from logstore.tools.bench.layout_data import TOPIC, BatchShape
from logstore.tools.bench.spark_cells import CELLS, Plan, SparkPlace, read_window
from logstore.tools.bench.spark_data import make_day
from logstore.tools.dev.maven import PeerUnavailable
from tests.tools.command_line import CommandLine

WANTED = {
    ("read", "every column, 100 B", "share"): ">= 70 % of ready batches",
    ("read", "every column, 1 KiB", "share"): ">= 70 % of ready batches",
    ("read", "without values, 100 B", "records"): ">= 5 M records/s",
    ("kafka-source", "every column, 100 B", "times"): ">= 2 x Spark's Kafka source",
    ("kafka-source", "every column, 1 KiB", "times"): ">= 1 x Spark's Kafka source",
    ("count", "by topic and partition", "seconds"): "< 5 s",
    ("window", "a minute of a day", "share"): "< 1 % read",
    ("convert", "1 KiB", "there"): ">= 300 MB/s to RocketMQ, two cores",
    ("convert", "1 KiB", "back"): ">= 300 MB/s to Kafka, two cores",
    ("convert", "1 KiB", "there-times"): ">= 1.8 x one core, to RocketMQ",
    ("convert", "1 KiB", "back-times"): ">= 1.8 x one core, to Kafka",
    ("kafka-sink", "keys and values, 100 B", "times"): ">= 1 x Spark's Kafka sink",
    ("kafka-sink", "keys and values, 1 KiB", "times"): ">= 1 x Spark's Kafka sink",
    ("verify", "1 KiB, two cores", "rate"): ">= 1 GB/s",
    ("memory", "one task after the other", "there"): "< 400 MB to RocketMQ",
    ("memory", "one task after the other", "back"): "< 400 MB to Kafka",
    ("plan", "10,000 segments", "seconds"): "< 5 s",
    ("plan", "10,000 segments", "grown"): "<= 200 MB more",
    ("plan", "100,000 segments", "seconds"): "< 60 s",
    ("plan", "100,000 segments", "grown"): "<= 200 MB more",
}


def test_all_that_is_wanted_has_a_row_with_its_bar() -> None:
    """Speed, scaling, bytes read, memory and planning: each is measured and held to a limit."""
    bars = {
        (cell.scenario, cell.name, metric.name): metric.bar.text(metric.unit)
        for cell in CELLS
        for metric in cell.metrics
        if metric.bar is not None
    }

    assert bars == WANTED


def test_what_is_left_out_is_said(tmp_path: Path, logstore: CommandLine) -> None:
    """Without Spark's own Kafka source the table says so, and why."""
    outcome = logstore(
        "bench", "spark", "-s", "kafka-source", "--no-kafka-source", "--dir", tmp_path
    )

    assert outcome.exit_code == 0, outcome.err
    assert "left out: kafka-source: --no-kafka-source" in outcome.out


def test_scenarios_may_be_joined_by_commas(tmp_path: Path, logstore: CommandLine) -> None:
    """As in the other benchmarks; a wrong one among them is named, and nothing is measured."""
    outcome = logstore("bench", "spark", "-s", "kafka-source,cuont", "--dir", tmp_path)

    assert outcome.exit_code == 2
    assert "no scenario 'cuont'" in outcome.err


def test_help_names_every_scenario(logstore: CommandLine) -> None:
    """It is written out there, so that asking for help loads nothing."""
    outcome = logstore("bench", "spark", "--help")

    told = " ".join(outcome.out.split()).partition("or with commas: ")[2].partition(".")[0]
    assert told.split(", ") == list(dict.fromkeys(cell.scenario for cell in CELLS))


def test_a_peer_that_cannot_be_had_is_said(
    tmp_path: Path, logstore: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where pip or Maven cannot fetch it the rest is measured, and the reason stands below."""

    def unavailable() -> str:
        raise PeerUnavailable("no network today")

    monkeypatch.setattr(spark_peer, "spark_packages", unavailable)
    outcome = logstore("bench", "spark", "-s", "kafka-source", "--dir", tmp_path)

    assert outcome.exit_code == 0, outcome.err
    assert "left out: kafka-source: no network today" in outcome.out


def test_the_broker_is_given_a_copy_that_costs_no_disk(tmp_path: Path) -> None:
    """Logs are links, which a broker only reads; all that it writes to is its own."""
    make_day(str(tmp_path / "data"), BatchShape(100, 10), 10_000, 2)
    copy = spark_peer.served_copy(str(tmp_path / "data"), str(tmp_path / "copy"))

    def inodes(name: str) -> set[int]:
        return {os.stat(f"{place}/{name}").st_ino for place in (tmp_path / "data", copy)}

    assert len(inodes(f"{TOPIC}-1/{0:020d}.log")) == 1
    assert len(inodes(f"{TOPIC}-1/{0:020d}.index")) == 2
    assert len(inodes(f"__cluster_metadata-0/{0:020d}.log")) == 2


def test_what_warms_up_is_a_part_of_what_is_measured(tmp_path: Path) -> None:
    """A store of its own, or the first records of each partition; neither has more records."""
    place = SparkPlace(str(tmp_path), 300_000)

    warm_path, warm_count = place.warm("1 KiB")
    path, count, _ = place.day("1 KiB")

    assert warm_path != path
    assert 0 < warm_count <= count
    offsets = dict.fromkeys("0123", 7)
    assert json.loads(spark_peer.first_offsets(path, 7)) == {TOPIC: offsets}


def test_plans_and_windows_are_measured_without_spark(tmp_path: Path) -> None:
    """Their cells look at what was planned, and read: figures of nothing would be none."""
    place = SparkPlace(str(tmp_path), 2_000_000)

    planned, read = Plan(200)(place), read_window(place)

    assert planned["seconds"] > 0
    assert 0 < read["share"] < 100
