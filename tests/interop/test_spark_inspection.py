"""``verify`` and ``stats`` as Spark jobs: they say what they say without Spark."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from logstore.compat.spark import read
from logstore.os_host import system_host
from logstore.tools.inspection.rocketmq.verification.spark_walks import SparkWalks
from logstore.tools.inspection.rocketmq.verification.store_check import StoreCheck
from logstore.tools.inspection.stats.store_stats import StatsOptions, measure_store
from logstore.tools.inspection.stats.topic_stats import topics_of
from logstore.tools.inspection.verification.directory_check import DirectoryCheck
from logstore.tools.inspection.verification.spark_scans import SparkScans
from tests.segments.kafka.golden_case import GOLDEN
from tests.segments.rocketmq.golden_case import GoldenCase, golden_cases
from tests.tools.rocketmq.damaged_store import damage

pytestmark = [pytest.mark.interop, pytest.mark.slow]
DATA = GOLDEN / "kafka-4.3" / "data"
RECOVERED = [
    ("crash", "5.5.0", False),
    ("flipped-body", "4.9.8", True),
    ("consumequeue-behind", "5.5.0", True),
]


def store_of(layout: str) -> Path:
    """Return a store that a real broker has left."""
    return DATA if layout == "kafka" else GoldenCase("plain", "5.5.0").store


@pytest.mark.parametrize("data", [GOLDEN / "crash-4.3" / "data-before", DATA])
def test_workers_find_the_same_damage(data: Path, spark: SparkSession) -> None:
    """Every finding, in the same order, with the same words; all bytes are told as done."""
    told: list[tuple[int, int]] = []
    check = DirectoryCheck(system_host().fs, str(data))

    there = list(check.findings(lambda done, total: told.append((done, total)), SparkScans(spark)))

    assert there == list(check.findings())
    assert told == sorted(told)


@pytest.mark.parametrize(("name", "version", "is_damaged"), RECOVERED)
def test_workers_find_the_same_in_a_rocketmq_store(
    name: str, version: str, is_damaged: bool, spark: SparkSession
) -> None:
    """What a crash of a real broker left, a body and queues that are damaged; all is told."""
    (store,) = (
        pair.before
        for case in golden_cases("crash", "damage", version=version)
        for pair in case.pairs
        if pair.name == name
    )
    check = StoreCheck(system_host().fs, str(store), {})
    told: list[tuple[int, int]] = []

    walks = SparkWalks(spark, range_bytes=30_011)
    there = list(check.findings(lambda done, total: told.append((done, total)), walks))

    assert there == list(check.findings())
    assert any(finding.is_damage for finding in there) == is_damaged
    assert told == sorted(told)


def test_the_command_says_and_exits_alike_with_a_master(tmp_path: Path) -> None:
    """``logstore verify --master local[2]`` of a damaged RocketMQ store: same lines, same exit."""
    store = GoldenCase("plain", "5.5.0").copy_store(tmp_path / "store")
    damage(store, random.Random(2))

    plain, named = (
        subprocess.run(
            [sys.executable, "-m", "logstore.tools.cli", "verify", store, "--json", *options],
            capture_output=True,
            check=False,
        )
        for options in ((), ("--master", "local[2]"))
    )

    assert (named.stdout, named.returncode) == (plain.stdout, plain.returncode)
    assert plain.stdout
    assert plain.returncode == 1


@pytest.mark.parametrize("layout", ["kafka", "rocketmq"])
def test_workers_measure_the_same(layout: str, spark: SparkSession) -> None:
    """Every number of every topic and partition; estimates too, as the sketches are the same."""
    options = StatsOptions(str(store_of(layout)))

    there = [topic.content() for topic in topics_of(measure_store(options, spark))]
    here = [topic.content() for topic in topics_of(measure_store(options))]

    assert there == here
    assert len(here) > 1


@pytest.mark.parametrize("layout", ["kafka", "rocketmq"])
def test_a_url_loads_in_spark(layout: str, spark: SparkSession) -> None:
    """``file://`` stands for any URL that driver and workers can both open."""
    directory = store_of(layout)
    columns = ["topic", "partition", "offset"]

    found = sorted(map(tuple, read(spark, f"file://{directory}", columns).collect()))

    assert found == sorted(map(tuple, read(spark, str(directory), columns).collect()))
    assert len(found) > 100
