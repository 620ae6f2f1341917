"""
The options of Spark's Kafka source, and what ours makes of them: the same rows, or both refuse.

Spark's source reads from a broker of ours, ours the broker's files. Where they differ on purpose
the last test says how.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from logstore.tools.bench.spark_peer import kafka_jars, spark_packages
from logstore.tools.dev.maven import PeerUnavailable
from tests.interop.conftest import missing
from tests.interop.spark_source_session import T

pytestmark = [pytest.mark.interop, pytest.mark.slow]


def of(places: Any) -> str:
    """Return an option's JSON."""
    return json.dumps(places)


THREE = {"subscribe": "three"}
ALL_THREE = of({"three": {"0": 10, "1": 20, "2": -2}})
GAP = {"subscribe": "gap", "startingOffsets": of({"gap": {"0": 0, "1": 0}})}
TIMES = of({"three": {"0": T + 10_000, "1": T + 20_000, "2": T + 30_000}})
#: both give the same rows
SAME: list[dict[str, str]] = [
    {"subscribe": "one"},
    {"subscribe": "one", "includeHeaders": "true"},
    {"subscribe": "one, three ,"},
    {"subscribe": "empty"},
    {"subscribePattern": "t.*"},
    {"subscribePattern": ".*"},
    {"subscribePattern": " t.* "},
    {"subscribePattern": "nothing"},
    {"assign": of({"three": [0, 2]})},
    {"assign": of({"three": [0, 7]})},
    {"assign": "{}"},
    {"subscribe": "one", "startingOffsets": " Earliest ", "endingOffsets": "LATEST"},
    {"subscribe": "one", "startingOffsets": of({"one": {"0": 100}})},
    {"subscribe": "one", "startingOffsets": of({"one": {"0": 600}})},
    {"subscribe": "one", "endingOffsets": of({"one": {"0": 100}})},
    {"subscribe": "one", "endingOffsets": of({"one": {"0": 9000}}), "failOnDataLoss": "false"},
    THREE | {"startingOffsets": ALL_THREE},
    THREE
    | {"startingOffsets": ALL_THREE, "endingOffsets": of({"three": {"0": 15, "1": -1, "2": 9}})},
    {"subscribe": "gap"},
    GAP | {"failOnDataLoss": "false"},
    {"subscribe": "txn"},
    {"subscribe": "txn", "kafka.isolation.level": "read_committed"},
    THREE | {"startingTimestamp": f" {T + 30_000} "},
    THREE | {"startingTimestamp": str(T + 55_000), "startingOffsetsByTimestampStrategy": "latest"},
    THREE | {"endingTimestamp": str(T + 30_000)},
    THREE | {"endingTimestamp": str(T + 99_000)},
    THREE | {"startingTimestamp": str(T + 10_000), "endingTimestamp": str(T + 30_000)},
    THREE | {"startingOffsetsByTimestamp": TIMES},
    THREE | {"endingOffsetsByTimestamp": TIMES},
    {
        "subscribe": "one",
        "startingTimestamp": str(T + 10_000),
        "startingOffsetsByTimestamp": of({"one": {"0": T + 20_000}}),
        "startingOffsets": of({"one": {"0": 300}}),
    },
    {
        "subscribe": "one",
        "startingOffsetsByTimestamp": of({"one": {"0": T + 20_000}}),
        "startingOffsets": of({"one": {"0": 300}}),
    },
]  # fmt: skip
#: both give the same rows, in as many tasks
SAME_TASKS: list[dict[str, str]] = [
    THREE | {"minPartitions": "7"},
    THREE | {"minPartitions": "2"},
    {"subscribe": "one", "minPartitions": "50"},
    THREE | {"maxRecordsPerPartition": "50", "minPartitions": "30"},
    THREE
    | {"maxRecordsPerPartition": "50", "endingOffsets": of({"three": {"0": 99, "1": 101, "2": 7}}),
       "startingOffsets": of({"three": {"0": 0, "1": 0, "2": 0}})},
]  # fmt: skip
#: both refuse
REFUSED: list[dict[str, str]] = [
    {"subscribe": ""},
    {"subscribe": ","},
    {"subscribe": "nosuch"},
    {"subscribe": "one,nosuch"},
    {"subscribePattern": "["},
    {"subscribePattern": ""},
    {"assign": "three"},
    {"assign": of({"three": ["0"]})},
    {"assign": of({"three": 0})},
    {"subscribe": "one", "assign": of({"three": [0]})},
    {"subscribe": "one", "subscribePattern": "t.*"},
    {"subscribe": "one", "startingOffsets": "latest"},
    {"subscribe": "one", "endingOffsets": "earliest"},
    {"subscribe": "one", "startingOffsets": "junk"},
    {"subscribe": "one", "startingOffsets": of({"one": {"0": -1}})},
    {"subscribe": "one", "startingOffsets": of({"one": {"0": -3}})},
    {"subscribe": "one", "endingOffsets": of({"one": {"0": -2}})},
    {"subscribe": "one", "startingOffsets": of({"one": {"0": 700}})},
    {"startingOffsets": of({"one": {"0": 100}}), "endingOffsets": of({"one": {"0": 50}}),
     "subscribe": "one"},
    {"subscribe": "one", "endingOffsets": of({"one": {"0": 9000}}), "failOnDataLoss": "true"},
    GAP | {"failOnDataLoss": "true"},
    {"subscribe": "gap", "failOnDataLoss": "no"},
    THREE | {"startingOffsets": of({"three": {"0": 10, "1": 20, "2": -2, "3": 4}})},
    THREE | {"startingOffsets": of({"three": {"0": 1, "1": 2, "2": -2}, "one": {"0": 4}})},
    THREE | {"startingTimestamp": str(T + 55_000), "startingOffsetsByTimestampStrategy": "Error"},
    THREE | {"startingOffsetsByTimestampStrategy": "junk"},
    THREE | {"startingTimestamp": "junk"},
    THREE | {"startingTimestamp": "-5"},
    THREE | {"startingTimestamp": str(T + 30_000), "endingTimestamp": str(T + 10_000)},
    THREE | {"startingOffsetsByTimestamp": "x"},
    THREE | {"minPartitions": "0"},
    THREE | {"maxRecordsPerPartition": "0"},
    THREE | {"maxRecordsPerPartition": "x"},
    {"subscribe": "one", "minOffsetsPerTrigger": "50", "maxOffsetsPerTrigger": "20"},
    {"subscribe": "one", "includeHeaders": "yes"},
]  # fmt: skip
#: ours gives so many rows where Spark's source refuses: files lie still, and nothing is waited for
LENIENT: list[tuple[dict[str, str], int]] = [
    ({}, 1671),
    ({"subscribe": "one", "endingOffsets": of({"one": {"0": 9000}})}, 600),
    (GAP, 430),
    (THREE | {"startingOffsets": of({"three": {"0": 10}})}, 590),
    (THREE | {"startingTimestamp": str(T + 55_000)}, 50),
]


@pytest.fixture(scope="module")
def answers() -> dict[str, list[Any]]:
    """What both say to every question, by the question's JSON."""
    try:
        packages, jars = spark_packages(), kafka_jars()
    except PeerUnavailable as error:
        missing(f"Spark's Kafka source: {error}")
    asked = [*SAME, *SAME_TASKS, *REFUSED, *(options for options, _ in LENIENT)]
    questions = [of(options) for options in asked]
    path = os.pathsep.join([packages, os.getcwd(), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path.rstrip(os.pathsep)}
    environment["PYSPARK_PYTHON"] = sys.executable
    environment.pop("SPARK_HOME", None)
    done = subprocess.run(
        [sys.executable, "-m", "tests.interop.spark_source_session", ",".join(jars)],
        input="".join(f"{question}\n" for question in questions),
        capture_output=True, text=True, env=environment, check=False, timeout=900,
    )  # fmt: skip
    assert not done.returncode, done.stderr[-2000:]
    found = [json.loads(line) for line in done.stdout.splitlines()]
    return dict(zip(questions, found, strict=True))


@pytest.mark.timeout(900)
@pytest.mark.parametrize("options", SAME, ids=of)
def test_rows_are_the_same(options: dict[str, str], answers: dict[str, list[Any]]) -> None:
    """All columns of all rows; a task more or less does not matter."""
    theirs, ours = answers[of(options)]
    assert len(theirs) == 3
    assert ours[1:] == theirs[1:]


@pytest.mark.timeout(900)
@pytest.mark.parametrize("options", SAME_TASKS, ids=of)
def test_so_many_tasks_are_made(options: dict[str, str], answers: dict[str, list[Any]]) -> None:
    """As those who say so expect."""
    theirs, ours = answers[of(options)]
    assert len(theirs) == 3
    assert ours == theirs


@pytest.mark.timeout(900)
@pytest.mark.parametrize("options", REFUSED, ids=of)
def test_both_refuse(options: dict[str, str], answers: dict[str, list[Any]]) -> None:
    """Ours names the option."""
    theirs, ours = answers[of(options)]
    assert len(theirs) == 1
    assert "OptionError: option " in ours[0] or "DataLossError: " in ours[0]


@pytest.mark.timeout(900)
@pytest.mark.parametrize(("options", "row_count"), LENIENT, ids=lambda one: of(one))
def test_ours_reads_what_is_there(
    options: dict[str, str], row_count: int, answers: dict[str, list[Any]]
) -> None:
    """Where Spark's source wants more to be said, or waits."""
    theirs, ours = answers[of(options)]
    assert len(theirs) == 1
    assert ours[1] == row_count
